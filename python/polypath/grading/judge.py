"""Points and feedback from what was seen of a submission."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from polypath.grading.rubric import Criterion, Rubric
from polypath.grading.work import Found, Seen
from polypath.labs.expectations import bounds
from polypath.measures import REGISTRY
from polypath.results.settled import settled
from polypath.scenario.vary import SEED

#: Points are told to so many digits after the point.
_DIGITS: Final = 2
_Place = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Mark:
    """The points for a criterion, and what was seen."""

    name: str
    points: float
    of: float
    seen: str
    #: The figure in each network, a mean over seeds; or why there is none.
    networks: Sequence[Mapping[str, Any]] = ()

    def line(self) -> str:
        """The feedback."""
        return f"{self.seen}: {self.points:g} of {self.of:g} points"


@dataclass(frozen=True)
class Grade:
    """What a submission got."""

    name: str
    marks: Sequence[Mark]
    #: Why it got nothing at all.
    problem: str | None = None

    @property
    def points(self) -> float:
        return round(sum(each.points for each in self.marks), _DIGITS)

    @property
    def of(self) -> float:
        return sum(each.of for each in self.marks)

    def data(self) -> dict[str, Any]:
        """As JSON has it."""
        marks = [
            {"name": each.name, "points": each.points, "of": each.of, "seen": each.seen, "networks": [*each.networks]}
            for each in self.marks
        ]
        return {"submission": self.name, "points": self.points, "of": self.of, "problem": self.problem, "marks": marks}


def judged(rubric: Rubric, name: str, found: Found, references: Mapping[str, Found]) -> Grade:
    """The grade of a submission."""
    marks = [
        _mark(number, criterion, found, references) if found.problem is None else _nothing(criterion)
        for number, criterion in enumerate(rubric.criteria)
    ]
    return Grade(name, marks, found.problem)


def _nothing(criterion: Criterion) -> Mark:
    return Mark(criterion.name, 0, float(criterion.points), "not tried")


def _mark(number: int, criterion: Criterion, found: Found, references: Mapping[str, Found]) -> Mark:
    places = _places(number, criterion, found.runs, references)
    if not places:
        return Mark(criterion.name, 0, float(criterion.points), "no network has these labels")
    kept = [isinstance(value, float) and _keeps(criterion, value) for value in places.values()]
    part = fmean(kept) if criterion.share else float(all(kept))
    networks = [
        {"network": dict(place), "value" if isinstance(value, float) else "problem": value, "kept": good}
        for (place, value), good in zip(places.items(), kept, strict=True)
    ]
    seen = _seen(criterion, list(places.values()), kept)
    return Mark(criterion.name, round(part * criterion.points, _DIGITS), float(criterion.points), seen, networks)


def _places(
    number: int, criterion: Criterion, runs: Sequence[Seen], references: Mapping[str, Found]
) -> dict[_Place, float | str]:
    """The mean over seeds in each network, or why there is none in it."""
    found: dict[_Place, list[float | str]] = {}
    for run in runs:
        if all(run.values.get(axis) == label for axis, label in criterion.at.items()):
            place = tuple(item for item in run.values.items() if item[0] != SEED)
            found.setdefault(place, []).append(_figure(number, criterion, run, references))
    return {place: _mean(values) for place, values in found.items()}


def _mean(values: Sequence[float | str]) -> float | str:
    return next((each for each in values if isinstance(each, str)), None) or fmean(map(float, values))


def _figure(number: int, criterion: Criterion, run: Seen, references: Mapping[str, Found]) -> float | str:
    figure = run.figures[number]
    relative = criterion.relative
    if relative is None or isinstance(figure, str):
        return figure
    others = references[relative.reference].runs
    other = next((each.figures[number] for each in others if each.values == run.values), "no data")
    if isinstance(other, str):
        return f"{relative.reference}: {other}"
    if relative.by == "difference":
        return figure - other
    return figure / other if other else f"{relative.reference}: {criterion.measure} is 0"


def _keeps(criterion: Criterion, value: float) -> bool:
    low, high = criterion.minimum, criterion.maximum
    return (low is None or value >= low) and (high is None or value <= high)


def wanted(criterion: Criterion) -> str:
    """The bounds in words."""
    return bounds(criterion.minimum, criterion.maximum, criterion.unit or _unit(criterion))


def _seen(criterion: Criterion, values: Sequence[float | str], kept: Sequence[bool]) -> str:
    """What was seen and what is wanted, "goodput 12.3 Mbps, at least 15 Mbps wanted"."""
    unit = criterion.unit or _unit(criterion)
    numbers = [value for value in values if isinstance(value, float)]
    problems = list(dict.fromkeys(value for value in values if isinstance(value, str)))
    parts = []
    if numbers:
        least, most = f"{min(numbers):.4g}", f"{max(numbers):.4g}"
        parts.append(_with(least if least == most else f"{least} to {most}", unit))
    parts += problems[:1]
    where = f" in {len(values)} networks" if len(values) > 1 else ""
    often = f", kept in {sum(kept)}" if len(values) > 1 and not all(kept) else ""
    return f"{criterion.measure} {', '.join(parts)}{where}, {wanted(criterion)} wanted{often}"


def _unit(criterion: Criterion) -> str:
    relative = criterion.relative
    if relative is None or relative.by == "difference":
        return REGISTRY[settled(criterion.measure)].unit.shown
    return f"x {relative.reference}"


def _with(number: str, unit: str) -> str:
    return f"{number} {unit}" if unit else number
