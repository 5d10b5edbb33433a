"""The spanning tree and the addresses of a run's bridges."""

from __future__ import annotations

from dataclasses import dataclass

from polypath.results.recording import Recording


@dataclass(frozen=True)
class Bridges:
    """The tree at the end, and totals over all bridges."""

    #: The roots by name, one for each part of the network.
    roots: list[str]
    bridges: int
    #: Ports at the end that are neither forwarding nor without a link, as (bridge, interface).
    blocked: list[tuple[str, str]]
    #: When a port last took another role or state.
    changed_ns: int
    bpdus: int
    learned: int
    flushed: int
    #: The most addresses that a bridge knew at once.
    most_addresses: int
    flooded_packets: int
    dropped_packets: int


def of(recording: Recording) -> Bridges | None:
    """None where there are no bridges."""
    ends = recording.table("bridge_ends")
    if ends.is_empty():
        return None
    names = dict(zip(ends["switch"].to_list(), ends["name"].cast(str).to_list(), strict=True))
    ports = recording.table("bridge_ports")
    last: dict[tuple[int, str], tuple[str, str]] = {}
    for row in ports.iter_rows(named=True):
        last[row["switch"], str(row["interface"])] = (str(row["role"]), str(row["state"]))
    blocked = [
        (names[switch], interface)
        for (switch, interface), (role, state) in last.items()
        if role != "disabled" and state != "forwarding"
    ]
    changed = ports["time_ns"].max()
    return Bridges(
        roots=[str(row["name"]) for row in ends.iter_rows(named=True) if row["root"]],
        bridges=len(ends),
        blocked=blocked,
        changed_ns=0 if changed is None else int(str(changed)),
        bpdus=int(ends["bpdus_sent"].sum()),
        learned=int(ends["learned"].sum()),
        flushed=int(ends["flushed"].sum()),
        most_addresses=max(ends["max_addresses"].to_list()),
        flooded_packets=int(ends["flooded_packets"].sum()),
        dropped_packets=int(ends["dropped_packets"].sum()),
    )
