"""Where an eavesdropper can be, and whose data passes there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, Final

from polypath.results import metrics
from polypath.results.errors import MetricError
from polypath.results.metrics import Side
from polypath.results.recording import Recording
from polypath.results.routing import PathOfSubflow, Routing, Undetermined

#: A connection, a subflow, and the side that sends.
Flow = tuple[int, int, Side]

MOST_SETS: Final = 20_000
"""Sets of links that are looked at."""


SIDES: Final[tuple[Side, Side]] = ("client", "server")


@dataclass(frozen=True)
class Tap:
    """A place, and the flows whose packets pass it."""

    #: path (where one subflow passes and no other), link, node, or links (several at once).
    kind: str
    name: str
    covers: frozenset[Flow]


@dataclass(frozen=True)
class Ways:
    """The links that each flow's packets take, in order; flows whose way is chosen in the run are not in it."""

    plan: Mapping[str, Any]
    hops: Mapping[Flow, Sequence[int]]
    #: The client and server of each connection.
    ends: Mapping[int, frozenset[int]]

    def links(self, connection: int, subflow: int) -> frozenset[int] | None:
        """The links that a subflow uses in either direction; None where that is not known."""
        found = [self.hops.get((connection, subflow, side)) for side in SIDES]
        if None in found:
            return None
        return frozenset(link for hops in found if hops is not None for link in hops)


def ways(recording: Recording) -> Ways:
    """Each subflow's way in both directions, by the plan at the start of the run."""
    hops: dict[Flow, Sequence[int]] = {}
    ends: dict[int, frozenset[int]] = {}
    plan = recording.plan
    routing = Routing(plan)
    for connection in metrics.connections(recording):
        if connection.id is None:
            continue
        application = plan["applications"][connection.application]
        ends[connection.id] = frozenset((application["client"], application["server"]))
        for row in recording.table("subflow_ends").filter(connection=connection.id).iter_rows(named=True):
            addresses = (row["source"], row["destination"])
            for side, (here, there) in zip(SIDES, (addresses, addresses[::-1]), strict=True):
                found = _way(routing, here, there)
                if found is not None:
                    hops[connection.id, row["subflow"], side] = [hop.link for hop in found.hops]
    return Ways(plan, hops, ends)


def _way(routing: Routing, here: str, there: str) -> PathOfSubflow | None:
    try:
        return routing.between(here, there)
    except Undetermined:
        return None


def of_paths(recording: Recording) -> Iterator[Tap]:
    """One for each subflow: what its own packets show."""
    for connection in metrics.connections(recording):
        if connection.id is None:
            continue
        for subflow in metrics.subflows(recording, connection):
            flows = frozenset((connection.id, subflow.id, side) for side in SIDES)
            yield Tap("path", f"{connection.name}, {subflow.label}", flows)


def of_links(known: Ways) -> Iterator[Tap]:
    """One for each link that some flow passes."""
    for link, flows in _by_link(known).items():
        yield Tap("link", known.plan["links"][link]["name"], flows)


def of_nodes(known: Ways) -> Iterator[Tap]:
    """One for each node between the ends of some flow, in the plan's order."""
    passing: dict[int, set[Flow]] = {}
    for flow, hops in known.hops.items():
        for link in hops:
            for end in ("a", "b"):
                node = known.plan["links"][link][end]["node"]
                if node not in known.ends[flow[0]]:
                    passing.setdefault(node, set()).add(flow)
    for node, flows in sorted(passing.items()):
        yield Tap("node", known.plan["nodes"][node]["name"], frozenset(flows))


def of_sets(known: Ways, count: int) -> Iterator[Tap]:
    """One for each set of so many links that flows pass. Raises MetricError for more sets than can be looked at."""
    passing = _by_link(known)
    if count > len(passing):
        raise MetricError(f"a set of {count} links was asked for, and packets pass {len(passing)} links")
    if comb(len(passing), count) > MOST_SETS:
        sets = f"{count} of {len(passing)} links are {comb(len(passing), count):,} sets"
        raise MetricError(f"{sets}, and {MOST_SETS:,} at most are taken")
    for chosen in combinations(passing, count):
        flows = frozenset(flow for link in chosen for flow in passing[link])
        yield Tap("links", " + ".join(known.plan["links"][link]["name"] for link in chosen), flows)


def _by_link(known: Ways) -> dict[int, frozenset[Flow]]:
    passing: dict[int, set[Flow]] = {}
    for flow, hops in known.hops.items():
        for link in hops:
            passing.setdefault(link, set()).add(flow)
    return {link: frozenset(flows) for link, flows in sorted(passing.items())}
