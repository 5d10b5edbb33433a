"""The pairs of hosts in a plan and the paths between them, before the run.

A path is a pair of addresses between which a path manager may open a subflow. The run decides which of them it opens,
and when.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from polypath.plan.access import SIDES, stack
from polypath.plan.routing import PathOfSubflow, Routing, Undetermined

if TYPE_CHECKING:
    from polypath.plan.data import PlanData
    from polypath.plan.types import Application

MULTIPATH: Final = frozenset({"mptcp", "mpquic"})

FIRST_PAIR: Final = frozenset({"default", "ndiffports"})
"""Path managers that use the connection's first two addresses only; at the server, that announce no other one."""

GATEWAYS: Final = frozenset({"binder"})
"""Path managers whose subflows leave the shortest path."""


@dataclass(frozen=True)
class Route:
    """A pair of addresses of one application, and the way between them."""

    application: int
    source: str
    destination: str
    #: The client's interface.
    interface: str
    #: Whether the connection begins here.
    first: bool
    #: Whether the interface at either end is a backup.
    backup: bool
    #: From client to server, and from server to client; None: the run chooses among several, or none leads there.
    there: PathOfSubflow | None
    back: PathOfSubflow | None

    def rate_bps(self, plan: PlanData, *, reverse: bool = False) -> int | None:
        """The least rate of the links in one direction, headers included; None where none has a rate."""
        path = self.back if reverse else self.there
        rates = [plan["links"][hop.link][hop.direction]["rate_bps"] for hop in path.hops] if path is not None else []
        return min((int(rate) for rate in rates if rate is not None), default=None)

    @property
    def rtt_s(self) -> float | None:
        """Propagation alone, there and back."""
        return None if self.there is None else self.there.rtt_s


def routes(plan: PlanData) -> list[Route]:
    """Every route of every application, in the plan's order, an application's first pair first."""
    known = _Known(Routing(plan))
    return [route for index in range(len(plan["applications"])) for route in _of_application(plan, index, known)]


def is_determined(plan: PlanData, found: Sequence[Route]) -> bool:
    """Whether every packet's way is known before the run."""
    steered = any(
        each is not None and each["path_manager"]["name"] in GATEWAYS
        for each in [stack(plan, application, side) for application in plan["applications"] for side in SIDES]
    )
    return not steered and all(route.there is not None and route.back is not None for route in found)


def idle_links(plan: PlanData, found: Sequence[Route]) -> list[int]:
    """Links that no route leads over in either direction; none where a route is not known before the run."""
    if not is_determined(plan, found):
        return []
    used = {hop.link for route in found for path in (route.there, route.back) if path is not None for hop in path.hops}
    return [index for index in range(len(plan["links"])) if index not in used]


class _Known:
    """Ways that were asked for; None where the run chooses among several, or none leads there."""

    def __init__(self, routing: Routing) -> None:
        self.owner = routing.owner
        self._routing = routing
        self._found: dict[tuple[str, str], PathOfSubflow | None] = {}

    def way(self, source: str, destination: str) -> PathOfSubflow | None:
        key = (source, destination)
        if key not in self._found:
            try:
                self._found[key] = self._routing.between(source, destination)
            except Undetermined:
                self._found[key] = None
        return self._found[key]


def _of_application(plan: PlanData, index: int, known: _Known) -> Iterator[Route]:
    application = plan["applications"][index]
    source, destination = application.get("source"), application.get("destination")
    assert source is not None
    assert destination is not None
    first = (source, destination)
    for source, destination in _pairs(plan, application, first):
        here, there = known.owner(source), known.owner(destination)
        if here is None or there is None:
            continue
        near, far = (plan["nodes"][node]["interfaces"][number] for node, number in (here, there))
        yield Route(
            application=index,
            source=source,
            destination=destination,
            interface=near["name"],
            first=(source, destination) == first,
            backup=bool(near["backup"] or far["backup"]),
            there=known.way(source, destination),
            back=known.way(destination, source),
        )


def _pairs(plan: PlanData, application: Application, first: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """The first pair, and the others that client and server may use besides."""
    yield first
    if application["transport"] not in MULTIPATH:
        if application["transport"] == "quic":
            yield from _migrated(plan, application, first)
        return
    managers = [found and found["path_manager"]["name"] for found in (stack(plan, application, side) for side in SIDES)]
    if managers[0] in FIRST_PAIR | GATEWAYS:
        return
    sources = _addresses(plan, application["client"])
    # no frame of QUIC announces an address
    alone = application["transport"] == "mpquic" or managers[1] in FIRST_PAIR | GATEWAYS
    destinations = [first[1]] if alone else _addresses(plan, application["server"])
    for source in sources:
        for destination in _matching(destinations, source):
            if (source, destination) != first:
                yield source, destination


def _migrated(plan: PlanData, application: Application, first: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """What scheduled migrations make of the first pair (RFC 9000 section 9)."""
    for event in plan.get("events", ()):
        action = event["action"]
        if action["kind"] == "migrate" and action["node"] == application["client"]:
            interface = plan["nodes"][action["node"]]["interfaces"][action["to"]]
            yield from ((address, first[1]) for address in _matching(interface["addresses"], first[1]))


def _matching(addresses: Sequence[str], other: str) -> list[str]:
    """Those of the same IP version."""
    return [each for each in addresses if ipaddress.ip_address(each).version == ipaddress.ip_address(other).version]


def _addresses(plan: PlanData, node: int) -> list[str]:
    return [address for each in plan["nodes"][node]["interfaces"] for address in each["addresses"]]
