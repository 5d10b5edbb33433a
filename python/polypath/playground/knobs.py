"""The settings that a page can change: a key of the scenario, and the places in the plan that it sets.

A knob is found by trial. The plans at three values show where a number is used, and with which factor. A key whose
plans are not linear in the value has no knob. The page therefore needs no Python, and its plan is that of `--set`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from polypath import registry
from polypath.playground.changes import MISSING, At, Difference, differences
from polypath.scenario import Scenario, ScenarioError

Data = dict[str, Any]


@dataclass(frozen=True)
class _Number:
    """A slider: what it is called, and from where to where it goes."""

    key: str
    label: str
    unit: str
    least: float
    most: float
    log: bool = False
    #: Whether there are only whole numbers of it.
    whole: bool = False

    def text(self, value: float) -> str:
        return f"{value:g} {self.unit}".strip()


#: Of a link.
_LINK: Final = (
    _Number("rate", "rate", "Mbps", 0.1, 1000, log=True),
    _Number("delay", "delay", "ms", 0, 500),
    _Number("loss", "loss", "%", 0, 20),
    _Number("queue", "queue", "packets", 1, 5000, log=True, whole=True),
    _Number("queue", "queue", "kB", 1, 5000, log=True),
)
#: Of the hosts' transport.
_HOST: Final = (
    _Number("receive_buffer", "receive buffer", "kB", 16, 64000, log=True),
    _Number("send_buffer", "send buffer", "kB", 16, 64000, log=True),
)
#: Key, and the kind of algorithm.
_CHOICES: Final[Sequence[tuple[str, registry.Kind]]] = (
    ("scheduler", "scheduler"),
    ("path_manager", "path-manager"),
    ("congestion", "congestion"),
)
_TRANSPORTS: Final = ("tcp", "mptcp", "quic", "mpquic")
#: With more links, nobody looks for one among so many sliders.
MOST_LINKS: Final = 12
_MOST_APPLICATIONS: Final = 4
#: With more hosts, one side is as good as another.
_MOST_HOSTS: Final = 2
#: The heading of what all hosts have.
_BOTH: Final = "transport"


def of_scenario(scenario: Scenario) -> list[Data]:
    """All that can be changed about a scenario without a sweep, for the page."""
    base = _plan(scenario)
    return [knob for knob in _all(scenario, base) if knob is not None]


def _all(scenario: Scenario, base: Data) -> Iterator[Data | None]:
    yield _seed(scenario, base)
    for place, application in enumerate(base["applications"][:_MOST_APPLICATIONS], 1):
        key = f"application.{place}.transport"
        yield _choice(scenario, base, key, "transport", f"application {application['name']}", _TRANSPORTS)
    transport = list(_transport(scenario, base, "defaults", _BOTH))
    yield from transport
    hosts = [(place, node["name"]) for place, node in enumerate(base["nodes"]) if node["kind"] == "host"]
    if len(hosts) <= _MOST_HOSTS:
        for place, name in hosts:
            own = [None if knob is None else _of_host(scenario, base, knob, place, name) for knob in transport]
            if any(knob is None for knob in own):  # the plan has settings of the host elsewhere, too
                own = list(_transport(scenario, base, f"host.{name}", f"host {name}"))
                for mine, both in zip(own, transport, strict=True):
                    if mine is not None and both is not None:
                        mine["follows"] = both["key"]
            yield from own
    if len(base["links"]) <= MOST_LINKS:
        for link in base["links"]:
            group = f"link {link['name']}"
            found = [_number(scenario, base, f"link.{link['name']}.{of.key}", of, group) for of in _LINK]
            yield from _one_each(found)


def _transport(scenario: Scenario, base: Data, table: str, group: str) -> Iterator[Data | None]:
    """What a host's transport can have, in a table of the scenario."""
    for name, kind in _CHOICES:
        yield _choice(scenario, base, f"{table}.{name}", kind.replace("-", " "), group, list(registry.entries(kind)))
    for of in _HOST:
        yield _number(scenario, base, f"{table}.{of.key}", of, group)


def _one_each(found: Sequence[Data | None]) -> Iterator[Data]:
    """One knob per key: the first that has a value, otherwise the first."""
    by_key: dict[str, Data] = {}
    for knob in found:
        if knob is None:
            continue
        known = by_key.setdefault(knob["key"], knob)
        if known["value"] is None and knob["value"] is not None:
            by_key[knob["key"]] = knob
    yield from by_key.values()


def _plan(scenario: Scenario) -> Data:
    return dict(scenario.plan().data)


def _with(scenario: Scenario, key: str, text: str) -> Data | None:
    """The plan with a setting; None where there is none."""
    try:
        return _plan(scenario.with_settings([f"{key}={text}"]))
    except ScenarioError:
        return None


def _seed(scenario: Scenario, base: Data) -> Data | None:
    """None if the plan is drawn from the seed: whom flows go to, when they start."""
    for seed in (1, 2):
        changed = {each.at for each in differences(base, scenario.plan(seed).data)}
        if not changed <= {("seed",)}:
            return None
    return {
        "kind": "number",
        "key": "seed",
        "label": "seed",
        "group": "run",
        "unit": "",
        "min": 0,
        "max": 1000,
        "log": False,
        "whole": True,
        "value": scenario.seed,
        "replaced": [],
        "none": None,
        "places": [{"at": ["seed"], "factor": 1, "divisor": 1, "offset": 0, "whole": True}],
    }


def _choice(scenario: Scenario, base: Data, key: str, label: str, group: str, names: Sequence[str]) -> Data | None:
    """The option that changes nothing is the one that the scenario has."""
    plans = {name: plan for name in names if (plan := _with(scenario, key, name)) is not None}
    changed = {name: {each.at for each in differences(base, plan)} for name, plan in plans.items()}
    same = [name for name, places in changed.items() if not places]
    if len(plans) < 2 or len(same) != 1:
        return None
    places = _outermost(set().union(*changed.values()))
    return {
        "kind": "choice",
        "key": key,
        "label": label,
        "group": group,
        "value": same[0],
        "options": [
            {"name": name, "replaced": [_replaced(at, _at(plan, at)) for at in places]} for name, plan in plans.items()
        ],
    }


def _outermost(places: set[At]) -> list[At]:
    """Without those that lie within another."""
    return sorted((at for at in places if not any(at[:length] in places for length in range(1, len(at)))), key=str)


def _of_host(scenario: Scenario, base: Data, knob: Data, place: int, name: str) -> Data | None:
    """A knob of all hosts for one of them: of its places those in this host.

    None if the scenario's own key for the host says something else, as one plan tells.
    """
    key = f"host.{name}.{knob['key'].partition('.')[2]}"
    own = {**knob, "key": key, "group": f"host {name}", "follows": knob["key"]}
    if knob["kind"] == "choice":
        own["options"] = [
            {"name": option["name"], "replaced": _within(option["replaced"], place)} for option in knob["options"]
        ]
        tried = next(option for option in own["options"] if option["name"] != knob["value"])
        text, expected = tried["name"], tried["replaced"]
    else:
        own |= {part: _within(knob[part], place) for part in ("replaced", "places")}
        value = 3 * knob["min"]
        text = f"{value:g} {knob['unit']}"
        expected = own["replaced"] + [
            _replaced(tuple(each["at"]), round(value * each["factor"] / each["divisor"] + each["offset"]))
            for each in own["places"]
        ]
    plan = _with(scenario, key, text)
    if not expected or plan is None:
        return None
    told = {tuple(each["at"]): each.get("value", MISSING) for each in expected}
    fits = all(_at(plan, at) == value for at, value in told.items())
    return own if fits and all(_lies_in(each.at, told) for each in differences(base, plan)) else None


def _within(parts: Sequence[Mapping[str, Any]], place: int) -> list[Data]:
    """The places in a node of the plan."""
    return [dict(each) for each in parts if list(each["at"][:2]) == ["nodes", place]]


def _lies_in(at: At, told: Mapping[At, Any]) -> bool:
    return any(at[:length] in told for length in range(1, len(at) + 1))


def _replaced(at: At, value: Any) -> Data:
    """For the page: without a value where the plan has none."""
    return {"at": list(at), **({} if value is MISSING else {"value": value})}


def _number(scenario: Scenario, base: Data, key: str, of: _Number, group: str) -> Data | None:
    tried = _tried(of)
    plans = [_with(scenario, key, of.text(value)) for value in tried]
    if any(plan is None for plan in plans):
        return None
    places = _places(tried, [plan for plan in plans if plan is not None])
    if not places:
        return None
    values = {_value(base, place) for place in places}
    none = _with(scenario, key, of.text(0)) if of.least == 0 else None
    first = plans[0]
    replaced = [each for each in differences(base, first) if not _is_placed(each, places)]
    at_none = list(differences(base, none)) if none is not None else []
    if values == {None} and none is not None and not at_none:
        values = {0.0}
    # without one value the scenario has something else there: another unit, a rule, two directions that differ
    value = values.pop() if len(values) == 1 else None
    if value is not None and not of.least <= value <= of.most:
        return None
    return {
        "kind": "number",
        "key": key,
        "label": of.label,
        "group": group,
        "unit": of.unit,
        "min": of.least,
        "max": of.most,
        "log": of.log,
        "whole": of.whole,
        "value": value,
        "replaced": [_replaced(each.at, each.new) for each in replaced],
        "none": [_replaced(each.at, each.new) for each in at_none] if none is not None else None,
        "places": places,
    }


def _tried(of: _Number) -> tuple[float, float, float]:
    """Three values within the bounds."""
    low = float(f"{of.most / 50:.2g}")
    return low, 2 * low, 7 * low


def _places(tried: Sequence[float], plans: Sequence[Data]) -> list[Data]:
    """Where a number goes; nothing where the plans differ in something else, or not along a line."""
    found = []
    changed = list(differences(plans[0], plans[1]))
    if {each.at for each in changed} != {each.at for each in differences(plans[0], plans[2])}:
        return []
    for each in changed:
        if not each.is_number:
            return []
        factor, divisor = _ratio((each.new - each.old) / (tried[1] - tried[0]))
        offset = each.old - factor * tried[0] / divisor
        offset = 0 if abs(offset) < 1e-6 * abs(each.old) else offset
        whole = all(isinstance(it, int) for it in (each.old, each.new))
        last = factor * tried[2] / divisor + offset
        there = _at(plans[2], each.at)
        if (round(last) if whole else last) != there and abs(last - there) > 1e-12 * abs(there):
            return []
        found.append({"at": list(each.at), "factor": factor, "divisor": divisor, "offset": offset, "whole": whole})
    return found


def _ratio(slope: float) -> tuple[float, int]:
    """A factor and a divisor, one of which is 1: a percentage is divided, as the scenario does it."""
    return (1, round(1 / slope)) if abs(slope) < 1 else (round(slope, 3), 1)


def _value(base: Data, place: Mapping[str, Any]) -> float | None:
    """The knob's value in a plan; None where the plan has no number there."""
    found = _at(base, tuple(place["at"]))
    if not isinstance(found, int | float):
        return None
    value = (found - place["offset"]) * place["divisor"] / place["factor"]
    return float(f"{value:.9g}")


def _at(plan: Any, at: At) -> Any:
    """What a plan has at a place, or MISSING."""
    for step in at:
        try:
            plan = plan[step]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return plan


def _is_placed(each: Difference, places: Sequence[Mapping[str, Any]]) -> bool:
    return any(list(each.at) == place["at"] for place in places)
