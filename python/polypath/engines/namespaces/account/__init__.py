"""Accounts of the connections of a run on a real kernel, as rows of the table `account`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Final, Protocol

from polypath.engines.namespaces.account.book import Book, Sender
from polypath.engines.namespaces.account.lanes import Ends
from polypath.engines.namespaces.account.network import Network
from polypath.engines.namespaces.algorithms import PACING
from polypath.engines.namespaces.logs import AppLog
from polypath.plan.access import own_stack, settings_of_host
from polypath.plan.routing import Hop
from polypath.results.errors import MetricError

if TYPE_CHECKING:
    from polypath.plan.data import PlanData

Row = dict[str, Any]

_OTHER: Final = {"client": "server", "server": "client"}
#: A packet's headers: IP's by version, TCP's with timestamps, and what Multipath TCP adds (RFC 8684 section 3.3).
_IP_HEADER: Final = {4: 20, 6: 40}
_TCP_HEADER: Final = 32
_DSS: Final = 20


class Told(Protocol):
    """A connection's number, its application's settings, and what its two ends wrote."""

    @property
    def application(self) -> int: ...
    @property
    def number(self) -> int: ...
    @property
    def settings(self) -> Mapping[str, Any]: ...
    @property
    def log(self) -> Mapping[str, AppLog]: ...


def rows(
    plan: PlanData,
    rates: Mapping[tuple[int, str], list[tuple[int, int | None]]],
    tables: Mapping[str, Sequence[Row]],
    connections: Sequence[Told],
    end_ns: int,
) -> Iterator[Row]:
    """The rows of both sides of each connection, as far as they send. `tables` are the other tables of the run."""
    network = Network(plan, tables["links"], rates)
    alone = len(plan["applications"]) == 1 and not plan.get("programs")
    interval = int(plan["record"]["interval_ns"])
    for told in connections:
        ends = next(row for row in tables["connection_ends"] if row["connection"] == told.number)
        subflows = [row for row in tables["subflow_ends"] if row["connection"] == told.number]
        for side in _OTHER:
            try:
                sender = _sender(network, told, side, ends, subflows, end_ns)
            except MetricError:
                continue  # Which way its packets took is up to the run.
            if sender.ways:
                yield from Book(sender, network, interval, alone).rows()


def _sender(network: Network, told: Told, side: str, ends: Row, subflows: Sequence[Row], end_ns: int) -> Sender:
    multipath = ends["transport"] == "mptcp"
    nodes, plan = network.plan["nodes"], network.plan
    addresses = {
        each: [address for it in nodes[told.settings[each]]["interfaces"] for address in it["addresses"]]
        for each in _OTHER
    }
    pairs = [(row["source"], row["destination"]) for row in subflows]
    if multipath:
        pairs = [(a, b) for a, b in product(addresses["client"], addresses["server"]) if (":" in a) == (":" in b)]
    stack = own_stack(plan["applications"][told.application], side) or settings_of_host(nodes[told.settings[side]])
    family = 6 if any(":" in row["source"] for row in subflows) else 4
    return Sender(
        connection=told.number,
        side=side,
        multipath=multipath,
        paces=stack["congestion"]["name"] in PACING,
        start_ns=int(ends["start_ns"]),
        until_ns=max(int(ends["start_ns"]) + 1, end_ns if ends["end_ns"] is None else int(ends["end_ns"])),
        established_ns=ends["established_ns"],
        delivered_bytes=int(ends[f"{_OTHER[side]}_received_bytes"]),
        header_bytes=_IP_HEADER[family] + _TCP_HEADER + (_DSS if multipath else 0),
        samples=told.log[side].connections,
        subflows=[_ends(network, told, side, row, end_ns) for row in subflows],
        ways=[way for pair in dict.fromkeys(pairs) if (way := _way(network, side, *pair)) and network.is_there(way)],
    )


def _ends(network: Network, told: Told, side: str, row: Row, end_ns: int) -> Ends:
    client = (row["source"], row["source_port"]), (row["destination"], row["destination_port"])
    own = {"client": client, "server": (client[1], client[0])}
    samples = {each: [it for it in told.log[each].subflows if (it.local, it.remote) == own[each]] for each in _OTHER}
    total = int(row[f"{_OTHER[side]}_received_bytes"])
    arrived = [(each.time_ns, min(each.received, total)) for each in samples[_OTHER[side]]]
    return Ends(
        route=_way(network, side, row["source"], row["destination"]),
        established_ns=row["established_ns"],
        closed_ns=row["closed_ns"],
        backup=bool(row["backup"]),
        sender=samples[side],
        received=[*arrived, (max(end_ns, arrived[-1][0] if arrived else 0), total)],
        offered=[(each.time_ns, each.window) for each in samples[_OTHER[side]]],
    )


def _way(network: Network, side: str, client: str, server: str) -> tuple[Hop, ...]:
    """From the side that sends to the other; nothing where no way leads there. Raises MetricError."""
    found = network.routing.between(client, server)
    if found is None:
        return ()
    return found.hops if side == "client" else found.back
