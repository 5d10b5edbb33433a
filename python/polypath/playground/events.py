"""What a page can have happen to links: an event of the scenario, and what it becomes in the plan.

As with knobs, what goes where is found by trying.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from polypath.scenario import Scenario, ScenarioError

Data = dict[str, Any]


@dataclass(frozen=True)
class _Kind:
    """A change of a link. Without a unit it is what `text` says, otherwise a number of that unit."""

    name: str
    key: str
    text: str = ""
    unit: str = ""
    value: float = 0
    most: float = 0

    def said(self, value: float) -> str:
        return f'"{value:g} {self.unit}"' if self.unit else self.text


_KINDS: Final = (
    _Kind("goes down", "up", text="false"),
    _Kind("comes up", "up", text="true"),
    _Kind("rate", "rate", unit="Mbps", value=5, most=1000),
    _Kind("delay", "delay", unit="ms", value=100, most=1000),
    _Kind("loss", "loss", unit="%", value=5, most=100),
)
#: Two values that tell a factor.
_TRIED: Final = (10.0, 20.0)


def of_scenario(scenario: Scenario, plan: Data, most_links: int) -> Data | None:
    """The kinds of events, each with the links that it suits and its action in the plan; None where a page has none.

    `first` is the number of the next event as `--set` counts; in an action the link is the first of the plan.
    """
    if len(plan["links"]) > most_links:
        return None
    base = _Base(scenario, plan, len(scenario.to_data().get("event", ())) + 1)
    kinds = [found for kind in _KINDS if (found := base.tried(kind)) is not None]
    return {"first": base.first, "kinds": kinds} if kinds else None


@dataclass(frozen=True)
class _Base:
    """What an event is added to."""

    scenario: Scenario
    plan: Data
    first: int

    def tried(self, kind: _Kind) -> Data | None:
        """A kind of event; None if it changes more of the plan than its events, whatever the link."""
        actions = {
            link["name"]: action
            for number, link in enumerate(self.plan["links"])
            if (action := self._action(kind, link["name"], number, _TRIED[0])) is not None
        }
        if not actions:
            return None
        name, action = next(iter(actions.items()))
        links = [each for each, other in actions.items() if other == action]
        found = {"name": kind.name, "key": kind.key, "text": kind.text, "links": links, "action": action}
        if not kind.unit:
            return found
        number = [link["name"] for link in self.plan["links"]].index(name)
        second = self._action(kind, name, number, _TRIED[1])
        pairs = zip(_numbers(action), _numbers(second), strict=True)
        places = [(at, one, other) for (at, one), (_, other) in pairs if one != other]
        if len(places) != 1:
            return None
        ((at, one, other),) = places
        factor = (other - one) / (_TRIED[1] - _TRIED[0])
        more = {"unit": kind.unit, "value": kind.value, "most": kind.most}
        return found | more | {"at": list(at), "factor": factor, "whole": isinstance(one, int)}

    def _action(self, kind: _Kind, link: str, number: int, value: float) -> Data | None:
        """The action of an event, as of the first link; None if the plan changes in something else."""
        event = f'{{at="1 s", link="{link}", {kind.key}={kind.said(value)}}}'
        try:
            changed = self.scenario.with_settings([f"event.{self.first}={event}"]).plan().data
        except ScenarioError:
            return None
        added = [each for each in changed["events"] if each not in self.plan["events"]]
        if len(added) != 1 or {**changed, "events": []} != {**self.plan, "events": []}:
            return None
        action: Data = added[0]["action"]
        return {**action, "link": 0} if action["link"] == number else None


def _numbers(node: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int | float]]:
    if isinstance(node, dict):
        for key, inner in node.items():
            yield from _numbers(inner, (*at, key))
    elif isinstance(node, int | float) and not isinstance(node, bool):
        yield at, node
