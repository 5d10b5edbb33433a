"""The points of a sweep: every combination of the axes' values, the first axis changing slowest."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from polypath.measures import MEASURES
from polypath.results.axes import Axis
from polypath.results.names import of_place
from polypath.results.settled import settled
from polypath.scenario import Plan, Scenario, ScenarioError
from polypath.scenario.settings import overrides
from polypath.scenario.vary import SEED, Value, seed_value
from polypath.scenario.vary import Axis as Varied
from polypath.statistics.estimate import COLUMNS as STATISTICS
from polypath.statistics.points import COLUMNS
from polypath.units import nearest

#: Longest name of a point's folder.
_LONGEST = 120
#: The file of a class that a label names, with its folders.
_CLASS = re.compile(r"[A-Za-z0-9_./-]+\.py:(?=[A-Za-z_])")
#: Points whose scenario and plan are kept.
_KEPT = 16


@dataclass(eq=False)
class Point:
    """One run of a sweep: where it lies on each axis, and what is to be run there.

    Scenario and plan are built whenever they are asked for: a sweep may have 100,000 points, and keeps the last few.
    """

    values: Mapping[str, str]
    #: The name of its folder.
    folder: str
    #: The scenario of the sweep, and the place on each of its axes.
    base: Scenario
    combination: Sequence[Value] = ()
    #: Of the scenario's own, where it varies nothing.
    other_seed: int | None = None
    _known: tuple[str, int] | None = None

    @property
    def scenario(self) -> Scenario:
        """Raises ScenarioError, which names the place."""
        return _built(self)[0]

    @property
    def plan(self) -> Plan:
        """Raises ScenarioError, which names the place."""
        return _built(self)[1]

    @property
    def plan_sha256(self) -> str:
        """The hash of the plan; raises ScenarioError where there is none."""
        return self._identity[0]

    @property
    def seed(self) -> int:
        """That of the plan."""
        return self._identity[1]

    def trust(self, plan_sha256: str, seed: int) -> None:
        """Takes these for the plan's, so that it need not be built."""
        self._known = plan_sha256, seed

    @property
    def _identity(self) -> tuple[str, int]:
        if self._known is None:
            plan = self.plan
            self._known = plan.sha256(), int(plan.view["seed"])
        return self._known

    @property
    def title(self) -> str:
        """The values in words; empty for the one point of a scenario that varies nothing."""
        return of_place(self.values)


@lru_cache(maxsize=_KEPT)
def _built(point: Point) -> tuple[Scenario, Plan]:
    if not point.values:
        return point.base, point.base.plan(point.other_seed)
    try:
        at = point.base.at(point.combination)
        return at, at.plan()
    except ScenarioError as error:
        raise ScenarioError(f"{point.title}: {error.message}", error.file, error.line, error.hint) from error


def axes(scenario: Scenario, points: Sequence[Point] = ()) -> list[Axis]:
    """The scenario's axes as the results know them, with all seeds of the points."""
    found = []
    for axis in _with_seeds(scenario.axes, {int(point.values[SEED]) for point in points if SEED in point.values}):
        unit, numbers = axis.numbers() or ("", None)
        settings = tuple(value.settings for value in axis.values) if axis.listed else None
        known = axis.properties() if axis.listed else {}
        told = None if numbers is None else tuple(numbers)
        found.append(Axis(axis.name, tuple(axis.labels), told, unit, settings, known))
    return found


def points(scenario: Scenario, seed: int | None = None, *, later: bool = False) -> list[Point]:
    """Every point; one without values where the scenario varies nothing. `seed` replaces all others.

    Raises ScenarioError where values that are fine by themselves do not go together; with `later` their plan does, and
    `sweep.run` before anything runs.
    """
    if not scenario.axes:
        one = Point({}, ".", scenario, (), seed)
        require_plans([one])
        return [one]
    if seed is not None:
        scenario = scenario.with_settings([f"{SEED}={seed}"])
    _require_measures(scenario)
    varied = scenario.axes
    names = [axis.name for axis in varied]
    _require_columns(scenario, axes(scenario))
    named = _Folders(varied)
    found = [
        _point(scenario, names, named, combination)
        for combination in itertools.product(*(axis.values for axis in varied))
    ]
    if not later:
        require_plans(found)
    for axis in varied:
        _require_effect(scenario, axis, found)
    return found


def require_plans(points: Iterable[Point]) -> None:
    """Raises ScenarioError, which names the place, for a point that has no plan."""
    for point in points:
        point.plan_sha256  # noqa: B018


def grown(scenario: Scenario, known: Sequence[Point], counts: Mapping[tuple[str, ...], int]) -> list[Point]:
    """The points known, and more seeds of these places, as many in all; in the order of `points`."""
    names = [axis.name for axis in scenario.axes]
    made = {tuple(point.values.values()): point for point in known}
    varied = _with_seeds(scenario.axes, {scenario.seed + number for number in range(max(counts.values()))})
    found = []
    named = _Folders(varied)
    for combination in itertools.product(*(axis.values for axis in varied)):
        labels = tuple(value.label for value in combination)
        place = tuple(label for name, label in zip(names, labels, strict=True) if name != SEED)
        number = int(labels[names.index(SEED)]) - scenario.seed
        if labels in made:
            found.append(made[labels])
        elif number < counts.get(place, 0):
            found.append(_point(scenario, names, named, combination))
    require_plans(found)
    return found


def _with_seeds(axes: Sequence[Varied], seeds: Collection[int]) -> list[Varied]:
    """The axes, that of the seeds with these, too."""
    found = []
    for axis in axes:
        if axis.name == SEED:
            more = sorted(set(seeds) - {int(label) for label in axis.labels})
            axis = replace(axis, values=(*axis.values, *map(seed_value, more)))
        found.append(axis)
    return found


def _point(scenario: Scenario, names: Sequence[str], named: _Folders, combination: Sequence[Value]) -> Point:
    labels = [value.label for value in combination]
    return Point(dict(zip(names, labels, strict=True)), named.of(labels), scenario, combination)


def _require_columns(scenario: Scenario, found: Sequence[Axis]) -> None:
    """Raises ScenarioError where a column of the results would be there twice."""
    taken = {*COLUMNS, *STATISTICS}
    for axis in found:
        if axis.name in taken:
            what = f"axis '{axis.name}' has the name of a column of the results; give it another one"
            raise ScenarioError(what, scenario.where_varied(axis.name))
    taken |= {axis.name for axis in found}
    for axis in found:
        if axis.numeric in taken:
            what = f"axis '{axis.name}' needs a column '{axis.numeric}' for its numbers, and the results have one"
            raise ScenarioError(f"{what} already; give the axis another name", scenario.where_varied(axis.name))


def _require_measures(scenario: Scenario) -> None:
    """Raises ScenarioError where seeds are asked for until a measure that there is not."""
    for name in scenario.adaptive.until if scenario.adaptive is not None else ():
        if settled(name) not in MEASURES:
            hint = nearest(name, MEASURES)
            message = f"vary.seeds.until: unknown measure '{name}'"
            message += "" if hint else f"; there is {', '.join(MEASURES)}"
            raise ScenarioError(message, scenario.where_named("vary.seeds"), hint=hint)


def _require_effect(scenario: Scenario, axis: Varied, found: Sequence[Point]) -> None:
    """Raises ScenarioError where the plans are the same for every value of an axis."""
    if len(axis.values) < 2:
        return
    places: dict[tuple[str, ...], list[Point]] = {}
    for point in found:
        place = tuple(label for name, label in point.values.items() if name != axis.name)
        places.setdefault(place, []).append(point)
    for alike in places.values():
        first, *others = alike
        if any(point.plan_sha256 != first.plan_sha256 for point in others):
            return
    own = overrides(scenario, axis)
    reason = f": settings of {', '.join(own)} take precedence; remove these or the axis" if own else "; remove the axis"
    raise ScenarioError(f"axis '{axis.name}' changes nothing{reason}", scenario.where_varied(axis.name))


def short_names(names: Sequence[str]) -> list[str]:
    """The last step of each axis's name, or as many steps as distinguish it from the others."""
    steps = [name.split(",")[0].strip().split(".") for name in names]
    short = []
    for own in steps:
        length = 1
        while length < len(own) and sum(other[-length:] == own[-length:] for other in steps) > 1:
            length += 1
        short.append(".".join(own[-length:]))
    return short


class _Folders:
    """Names that say where points lie, of characters that file names may have everywhere."""

    def __init__(self, varied: Sequence[Varied]) -> None:
        self._axes = short_names([axis.name for axis in varied])
        kept = [Counter(map(_kept, axis.labels)) for axis in varied]
        #: Of each axis the labels that another one is like without what a name leaves out, or that look like two.
        self._alike = [
            {label for label in axis.labels if counts[_kept(label)] > 1 or "," in label}
            for axis, counts in zip(varied, kept, strict=True)
        ]

    def of(self, labels: Sequence[str]) -> str:
        text = ",".join(f"{axis}={label}" for axis, label in zip(self._axes, labels, strict=True))
        name = _kept(text)
        plain = re.sub(r"[ %]", "", _by_class(text)) == name
        alike = any(label in own for label, own in zip(labels, self._alike, strict=True))
        if plain and not alike and len(name) <= _LONGEST:
            return name
        told = "\n".join(labels) if alike else text
        return f"{name[: _LONGEST - 9]}-{hashlib.sha256(told.encode()).hexdigest()[:8]}"


def _kept(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.,=+-]", "", _by_class(text)).strip(".")


def _by_class(text: str) -> str:
    """A class in a file by its name alone: "tail.py:TailFast" is TailFast."""
    return _CLASS.sub("", text)
