"""The links of a run, for an account: capacity, use and downtime of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from polypath.engines.namespaces.account.totals import Total
from polypath.plan.access import ENDS
from polypath.plan.routing import Hop, Routing

if TYPE_CHECKING:
    from polypath.plan.data import PlanData

Row = dict[str, Any]

_COUNTED: Final = (
    "sent_bytes",
    "sent_packets",
    "dropped_packets",
    "lost_packets",
    "queue_bytes",
    "queue_packets",
)


class Network:
    """Links with their counters, rates and times without carrier."""

    def __init__(
        self,
        plan: PlanData,
        links: Sequence[Row],
        rates: Mapping[tuple[int, str], list[tuple[int, int | None]]],
    ) -> None:
        self.plan = plan
        self.routing = Routing(plan)
        self._rates = rates
        #: Later than everything.
        self._end_ns = int(plan["duration_ns"]) + 1
        self._down = _without_carrier(plan, self._end_ns)
        own: dict[Hop, list[Row]] = defaultdict(list)
        for row in links:
            own[Hop(row["link"], row["direction"])].append(row)
        self._counters = {
            hop: {name: Total([(0, 0.0), *((row["time_ns"], float(row[name])) for row in rows)]) for name in _COUNTED}
            for hop, rows in own.items()
        }

    def total(self, hop: Hop, name: str) -> Total:
        return self._counters.get(hop, {}).get(name) or Total(())

    def capacity(self, hop: Hop, since: int, until: int) -> float:
        """Bytes that a link could carry in a time, were it up."""
        steps = self._rates.get((hop.link, hop.direction), [])
        ends = [at for at, _ in steps[1:]] + [until]
        bits = 0.0
        for (at, rate), end in zip(steps, ends, strict=True):
            span = min(end, until) - max(at, since)
            if rate and span > 0:
                bits += rate * span / 1e9
        return bits / 8

    def overhead(self, hop: Hop) -> int:
        """Link-layer bytes of a packet."""
        return int(self.plan["links"][hop.link][hop.direction]["overhead_bytes"])

    def down(self, hop: Hop, time: int) -> bool:
        return any(since <= time < until for since, until in self._down[hop.link])

    def is_there(self, way: Iterable[Hop]) -> bool:
        """Whether no link of a way is down throughout: such a one the scenario has left out."""
        throughout = (0, self._end_ns)
        return not any(self._down[hop.link] == [throughout] for hop in way)

    def changes(self) -> Iterator[int]:
        """When a link goes down or comes up."""
        for spans in self._down.values():
            for span in spans:
                yield from span

    def narrowest(self, ways: Sequence[tuple[Hop, ...]]) -> list[Hop]:
        return self.routing.narrowest(ways)


def _without_carrier(plan: PlanData, for_ever: int) -> Mapping[int, list[tuple[int, int]]]:
    """For each link, when it was down or an interface at one of its ends was."""
    found: dict[int, list[tuple[int, int]]] = {number: [] for number in range(len(plan["links"]))}
    reasons: dict[int, dict[object, int]] = {
        number: {"link": 0} if not (link["forward"]["up"] and link["backward"]["up"]) else {}
        for number, link in enumerate(plan["links"])
    }
    ends = {
        (link[end]["node"], link[end]["interface"]): number for number, link in enumerate(plan["links"]) for end in ENDS
    }

    def change(number: int | None, reason: object, up: bool | None, at: int) -> None:
        if number is None or up is None:
            return
        held = reasons[number]
        before = min(held.values(), default=None)
        if up:
            held.pop(reason, None)
        else:
            held.setdefault(reason, at)
        if before is not None and not held:
            found[number].append((before, at))

    for event in sorted(plan["events"], key=lambda it: it["at_ns"]):
        action, at = event["action"], int(event["at_ns"])
        if action["kind"] == "link":
            change(action["link"], "link", action.get("up"), at)
        elif action["kind"] == "interface":
            end = action["node"], action["interface"]
            change(ends.get(end), end, action["up"], at)
    for number, held in reasons.items():
        if held:
            found[number].append((min(held.values()), for_ever))
    return found
