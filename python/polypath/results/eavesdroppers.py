"""The possible places of an eavesdropper, and the connections that pass there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from polypath.plan.routing import PathOfSubflow, Routing, Undetermined
from polypath.results import client_addresses, metrics
from polypath.results.errors import MetricError
from polypath.results.metrics import Side
from polypath.results.ranges import Numbers
from polypath.results.recording import Recording

if TYPE_CHECKING:
    from polypath.plan.data import PlanData

MOST_SETS: Final = 20_000
"""Sets of links that are looked at."""


SIDES: Final[tuple[Side, Side]] = ("client", "server")


class Flow(NamedTuple):
    """What a side sends on a subflow; of one that migrates, on one leg."""

    connection: int
    subflow: int
    side: Side
    leg: int = 0


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

    plan: PlanData
    hops: Mapping[Flow, Sequence[int]]
    #: All flows, and when each begins, in ns; 0 unless another leg came before.
    begins: Mapping[Flow, int]
    #: The client and server of each connection.
    ends: Mapping[int, frozenset[int]]

    def links(self, connection: int, subflow: int) -> frozenset[int] | None:
        """The links that a subflow uses in either direction; None where that is not known."""
        own = [flow for flow in self.begins if (flow.connection, flow.subflow) == (connection, subflow)]
        if not all(flow in self.hops for flow in own):
            return None
        return frozenset(link for flow in own for link in self.hops[flow])

    def legs(self, connection: int, side: Side, subflows: Numbers, times: Numbers) -> Numbers:
        """On which leg of its subflow each packet goes that a side sends at a time, in ns."""
        found = np.zeros(len(subflows), dtype=np.int64)
        for flow, begin in self.begins.items():
            if flow.leg and (flow.connection, flow.side) == (connection, side):
                found += (subflows == flow.subflow) & (times >= begin)
        return found


def ways(recording: Recording) -> Ways:
    """Each subflow's way in both directions, by the plan at the start of the run."""
    return recording.once("ways", lambda: _ways(recording))


def _ways(recording: Recording) -> Ways:
    hops: dict[Flow, Sequence[int]] = {}
    begins: dict[Flow, int] = {}
    ends: dict[int, frozenset[int]] = {}
    plan = recording.plan
    routing = Routing(plan)
    for connection in metrics.connections(recording):
        if connection.id is None:
            continue
        application = plan["applications"][connection.application]
        ends[connection.id] = frozenset((application["client"], application["server"]))
        for (subflow, side), own in client_addresses.of_connection(recording, connection).items():
            for leg, (client, begin) in enumerate(zip(own.clients, (0, *own.turns), strict=True)):
                flow = Flow(connection.id, subflow, side, leg)
                begins[flow] = begin
                found = _way(routing, *((client, own.server) if side == "client" else (own.server, client)))
                if found is not None:
                    hops[flow] = [hop.link for hop in found.hops]
    return Ways(plan, hops, begins, ends)


def _way(routing: Routing, here: str, there: str) -> PathOfSubflow | None:
    try:
        return routing.between(here, there)
    except Undetermined:
        return None


def of_paths(recording: Recording, known: Ways) -> Iterator[Tap]:
    """One for each subflow: what its own packets show."""
    own: dict[tuple[int, int], set[Flow]] = {}
    for flow in known.begins:
        own.setdefault((flow.connection, flow.subflow), set()).add(flow)
    for connection in metrics.connections(recording):
        if connection.id is None:
            continue
        for subflow in metrics.subflows(recording, connection):
            yield Tap("path", f"{connection.name}, {subflow.label}", frozenset(own[connection.id, subflow.id]))


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
                if node not in known.ends[flow.connection]:
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
