"""The route of packets by a plan: the simulator's answer, as links in order, with their delay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from polypath import _core
from polypath.errors import MetricError
from polypath.plan.shared import encoded
from polypath.units import SECOND

if TYPE_CHECKING:
    from polypath.plan.data import PlanData

Direction = Literal["forward", "backward"]

_READ = ("nodes", "links", "routes", "routing", "controller", "bridging")
"""What of a plan is about ways."""


@dataclass(frozen=True)
class Hop:
    """A link in the direction in which packets cross it."""

    link: int
    direction: Direction


@dataclass(frozen=True)
class PathOfSubflow:
    """The way of one subflow, from client to server, and of what answers."""

    hops: tuple[Hop, ...]
    #: Where the run chooses among several, or none leads there, the way there once more.
    back: tuple[Hop, ...]
    rtt_s: float


def address_of(end: str) -> str:
    """The address in address:port, or in [address]:port for IPv6."""
    return end.rpartition(":")[0].strip("[]")


class Undetermined(MetricError):
    """Which of several equal paths is taken is up to the run."""


class Routing:
    """The ways in a plan's network; made once for many questions."""

    def __init__(self, plan: PlanData) -> None:
        self._plan = plan
        self._owners = {
            address: (node, number)
            for node, each in enumerate(plan["nodes"])
            for number, interface in enumerate(each["interfaces"])
            for address in interface.get("addresses", ())
        }

    def owner(self, address: str) -> tuple[int, int] | None:
        """The node and the interface that have an address."""
        return self._owners.get(address)

    def of_subflows(self, ends: Iterable[tuple[str, str]]) -> list[PathOfSubflow]:
        """The paths of subflows, each given by its two addresses.

        A subflow that the plan has no way for is left out. None at all where some flow has a choice of paths.
        """
        try:
            found = [self.between(source, destination) for source, destination in ends]
        except Undetermined:
            return []
        return [path for path in found if path is not None]

    def between(self, source: str, destination: str) -> PathOfSubflow | None:
        """From one address to another; None where no way leads there. Raises Undetermined where the run chooses among
        several ways."""
        ends = self.owner(source), self.owner(destination)
        if ends[0] is None or ends[1] is None:
            return None
        hops = self._hops(ends[0], ends[1], source, destination)
        if hops is None:
            return None
        back = self._back(ends[0], ends[1], source, destination) or tuple(
            Hop(hop.link, "backward" if hop.direction == "forward" else "forward") for hop in reversed(hops)
        )
        delay = sum(self._plan["links"][hop.link][hop.direction]["delay_ns"] for hop in (*hops, *back))
        return PathOfSubflow(hops, back, delay / SECOND)

    def narrowest(self, ways: Iterable[Sequence[Hop]]) -> list[Hop]:
        """The links that bound what can be sent over these ways together, by the rates of the plan."""
        found = self._native.narrowest([[(hop.link, hop.direction) for hop in way] for way in ways])
        return [Hop(*each) for each in found]

    def _back(
        self, here: tuple[int, int], there: tuple[int, int], source: str, destination: str
    ) -> tuple[Hop, ...] | None:
        try:
            return self._hops(there, here, destination, source)
        except Undetermined:
            return None

    def _hops(
        self, here: tuple[int, int], there: tuple[int, int], source: str, destination: str
    ) -> tuple[Hop, ...] | None:
        if "capture" in self._plan:
            return self._captured.get((here, there))
        try:
            found = self._native.way(here[0], source, destination)
        except _core.Undetermined as error:
            raise Undetermined(str(error)) from None
        return None if found is None else tuple(Hop(link, direction) for link, direction in found)

    @cached_property
    def _native(self) -> _core.Routes:
        try:
            return _core.Routes(encoded({key: value for key, value in self._plan.items() if key in _READ}))
        except _core.PlanError as error:
            raise MetricError(f"the plan's network cannot be: {error}") from error

    @cached_property
    def _captured(self) -> dict[tuple[tuple[int, int], tuple[int, int]], tuple[Hop, ...]]:
        """What was captured has a link for each pair of addresses and no routes: an interface has as many links."""
        found: dict[tuple[tuple[int, int], tuple[int, int]], tuple[Hop, ...]] = {}
        for number, link in reversed(list(enumerate(self._plan["links"]))):
            a, b = ((link[end]["node"], link[end]["interface"]) for end in "ab")
            found[b, a] = (Hop(number, "backward"),)
            found[a, b] = (Hop(number, "forward"),)
        return found
