"""What captures of a run tell of it."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import polypath
from polypath import Recording

from .case import Case
from .relation import need, relation, require

_FIGURES = [f"{side}_{what}_bytes" for side in ("client", "server") for what in ("sent", "received", "retransmitted")]


def _subflows(recording: Recording) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {
        (row["source"], row["source_port"], row["destination"], row["destination_port"]): row
        for row in recording.table("subflow_ends").iter_rows(named=True)
        if row["established_ns"] is not None
    }


def _crosses(plan: Mapping[str, Any], source: str, destination: str) -> bool:
    """Whether two addresses at one link's ends are not what a subflow between neighbours has: it comes by one
    interface and goes by another."""
    known = {
        address: (node["name"], interface["name"])
        for node in plan["nodes"]
        for interface in node["interfaces"]
        for address in interface["addresses"]
    }
    several = [len(node["interfaces"]) > 1 for node in plan["nodes"] if node["kind"] == "host"]
    pairs = {
        frozenset(
            (plan["nodes"][end["node"]]["name"], plan["nodes"][end["node"]]["interfaces"][end["interface"]]["name"])
            for end in (link["a"], link["b"])
        )
        for link in plan["links"]
    }
    return all(several) and frozenset((known[source], known[destination])) not in pairs


@relation(
    "If links lose nothing, captures of both hosts give each subflow's bytes: sent, received and repeated.",
    "A capture sees everything that its host sends and receives.",
    weight=20,
)
def trace_of_hosts(case: Case, random: Random) -> None:
    plan = case.plan.data
    need(all(each["transport"] in ("tcp", "mptcp") for each in plan["applications"]))
    need(not plan["events"] and not any(link.get("middleboxes") for link in plan["links"]))
    ends = case.recording.table("link_ends")
    need(not ends["dropped_packets"].sum() and not ends["lost_packets"].sum())
    channels = [link[way] for link in plan["links"] for way in ("forward", "backward")]
    need(not any(channel[name] for channel in channels for name in ("duplicate", "corrupt", "reorder", "jitter_ns")))
    # A ring of switches without a spanning tree multiplies frames.
    need((plan.get("bridging") or {}).get("protocol", {}).get("name") != "none")
    need(not any(_crosses(plan, row[0], row[2]) for row in _subflows(case.recording)))
    folder = case.folder()
    known = polypath.run(case.plan, captures="hosts", directory=folder)
    told = _subflows(polypath.from_pcap(*sorted(folder.glob("*.pcapng"))))
    for ends_of, row in _subflows(known).items():
        require(ends_of in told, f"the trace lacks subflow {ends_of}")
        other = told[ends_of]
        for name in _FIGURES:
            require(other[name] == row[name], f"{ends_of}: {name} is {row[name]}, by the trace {other[name]}")
