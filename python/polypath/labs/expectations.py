"""Comparing a lab's runs with published figures."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Protocol

from polypath.labs import models, shapes
from polypath.measures import REGISTRY, Figure
from polypath.results.axes import SEED
from polypath.results.metrics import MetricError
from polypath.results.recording import Recording
from polypath.results.settled import settled
from polypath.statistics.benefit import benefit


@dataclass(frozen=True)
class Sample:
    """A run at one point of its sweep: the label on each axis, and what was recorded there."""

    values: Mapping[str, str]
    recording: Recording


#: Of each run of a lab what was recorded: at every point, in order, where the lab varies something.
Runs = Mapping[str, Recording | Sequence[Sample]]
_Place = tuple[tuple[str, str], ...]


class Expectation(Protocol):
    """A published figure and the bounds for a run's own.

    `parameters` are the measure's, `connection` among them if it has one. With `relative_to` the figure is a quotient,
    or with `by = "difference"` a difference. The other value is that of another run, point (`at`) or parameter, or a
    computed `model`.

    With `by = "aggregation-benefit"` it is the experimental aggregation benefit (Paasch et al., CoNEXT 2013, section
    4.2). The single paths are the labels of the axis `over` in the other run.

    For a sweep, `at` picks points by their labels, figures are means over seeds, and every place must keep the bounds.
    With `share_above` the figure is the share of places above that value. With `along`, an axis, it is the deviation of
    the curve over it from a `shape`.
    """

    @property
    def name(self) -> str: ...
    @property
    def published(self) -> str: ...
    @property
    def measure(self) -> str: ...
    @property
    def run(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...
    @property
    def relative_to(self) -> Mapping[str, Any] | None: ...
    @property
    def at(self) -> Mapping[str, str]: ...
    @property
    def along(self) -> str | None: ...
    @property
    def shape(self) -> str: ...
    @property
    def share_above(self) -> float | None: ...
    @property
    def minimum(self) -> float | None: ...
    @property
    def maximum(self) -> float | None: ...
    @property
    def unit(self) -> str: ...


@dataclass(frozen=True)
class Row:
    """One line of `polypath check`."""

    name: str
    published: str
    bound: str
    measured: str
    ok: bool


def evaluate(expectation: Expectation, recordings: Runs) -> Row:
    """Compares; `recordings` by run name. An expectation that cannot be computed is a miss with the reason."""
    try:
        values = _values(expectation, {name: _samples(given) for name, given in recordings.items()})
    except MetricError as error:
        return Row(expectation.name, expectation.published, bound(expectation), str(error), False)
    low, high = expectation.minimum, expectation.maximum
    ok = all((low is None or value >= low) and (high is None or value <= high) for value in values)
    return Row(expectation.name, expectation.published, bound(expectation), _measured_words(expectation, values), ok)


def _measured_words(expectation: Expectation, values: Sequence[float]) -> str:
    least, most, unit = min(values), max(values), _unit(expectation)
    if len(values) == 1:
        return f"{least:.4g}{unit}"
    number = f"{least:.4g}" if least == most else f"{least:.4g} to {most:.4g}"
    return f"{number}{unit} at {len(values)} {'curves' if expectation.along else 'points'}"


def _samples(given: Recording | Sequence[Sample]) -> Sequence[Sample]:
    return [Sample({}, given)] if isinstance(given, Recording) else given


def bound(expectation: Expectation) -> str:
    """The bounds in words."""
    return bounds(expectation.minimum, expectation.maximum, expectation.unit)


def bounds(low: float | None, high: float | None, unit: str) -> str:
    """Bounds in words, "at least 15 Mbps"."""
    unit = f" {unit}" if unit else ""
    if low is not None and low == high:
        return f"{low:g}{unit}"
    if low is not None and high is not None:
        return f"{low:g} to {high:g}{unit}"
    if low is not None:
        return f"at least {low:g}{unit}"
    return f"at most {high:g}{unit}" if high is not None else "any"


def _values(expectation: Expectation, runs: Mapping[str, Sequence[Sample]]) -> list[float]:
    """A figure for each place, or for each curve; never empty."""
    chosen = _chosen(_of_run(expectation.run, runs), expectation.at)
    figures = [(sample.values, _figure(expectation, sample, runs)) for sample in chosen]
    places = _means(figures, without=(SEED,))
    if expectation.share_above is not None:
        return [fmean(value > expectation.share_above for value in places.values())]
    if expectation.along is None:
        return list(places.values())
    shape = shapes.REGISTRY.get(expectation.shape)
    if shape is None:
        raise MetricError(f"unknown shape '{expectation.shape}'{_near(expectation.shape, shapes.REGISTRY)}")
    _require_axis(expectation.along, chosen[0].values)
    curves: dict[_Place, list[float]] = {}
    for place, value in places.items():
        curves.setdefault(tuple(one for one in place if one[0] != expectation.along), []).append(value)
    return [shape.departure(curve) for curve in curves.values()]


def _means(figures: Iterable[tuple[Mapping[str, str], float]], without: Sequence[str]) -> dict[_Place, float]:
    """The mean figure of each place, the axes left out apart; in order."""
    places: dict[_Place, list[float]] = {}
    for values, figure in figures:
        places.setdefault(tuple(item for item in values.items() if item[0] not in without), []).append(figure)
    return {place: fmean(found) for place, found in places.items()}


def _of_run(run: str, runs: Mapping[str, Sequence[Sample]]) -> Sequence[Sample]:
    if run not in runs:
        raise MetricError(f"unknown run '{run}' (there: {', '.join(runs)})")
    return runs[run]


def _chosen(samples: Sequence[Sample], at: Mapping[str, str]) -> list[Sample]:
    for axis, label in at.items():
        _require_axis(axis, samples[0].values)
        labels = dict.fromkeys(sample.values[axis] for sample in samples)
        if label not in labels:
            raise MetricError(f"'{axis}' is never '{label}' (there: {', '.join(labels)})")
    return [sample for sample in samples if all(sample.values[axis] == label for axis, label in at.items())]


def _require_axis(axis: str, values: Mapping[str, str]) -> None:
    if axis not in values:
        raise MetricError(f"nothing varies '{axis}' (axes: {', '.join(values) or 'none'})")


def _figure(expectation: Expectation, sample: Sample, runs: Mapping[str, Sequence[Sample]]) -> float:
    value = _measured(expectation.measure, sample.recording, expectation.parameters)
    if expectation.relative_to is None:
        return value
    other = dict(expectation.relative_to)
    by = str(other.pop("by", "quotient"))
    if by == "aggregation-benefit":
        return benefit(value, _single_paths(expectation, other, sample, runs))
    if by not in ("quotient", "difference"):
        raise MetricError(f"relative by '{by}'; there is quotient, difference, aggregation-benefit")
    if "model" in other:
        reference = _modelled(str(other.pop("model")), sample.recording, expectation.parameters, other)
    else:
        reference = _reference(expectation, other, sample, runs)
    if by == "difference":
        return value - reference
    if not reference:
        raise MetricError("no data")
    return value / reference


def _single_paths(
    expectation: Expectation, other: dict[str, Any], sample: Sample, runs: Mapping[str, Sequence[Sample]]
) -> list[float]:
    axis = str(other.pop("over", ""))
    there = _of_run(str(other.get("run", expectation.run)), runs)
    _require_axis(axis, there[0].values)
    labels = dict.fromkeys(each.values[axis] for each in there)
    at = other.pop("at", {})
    return [_reference(expectation, {**other, "at": {**at, axis: label}}, sample, runs) for label in labels]


def _reference(
    expectation: Expectation, other: dict[str, Any], sample: Sample, runs: Mapping[str, Sequence[Sample]]
) -> float:
    """The mean of what is measured in the other run where it has the same labels, but for those of `at`."""
    run = str(other.pop("run", expectation.run))
    at = {**sample.values, **{axis: str(label) for axis, label in other.pop("at", {}).items()}}
    there = _of_run(run, runs)
    chosen = _chosen(there, {axis: label for axis, label in at.items() if axis in there[0].values})
    return fmean(_measured(expectation.measure, each.recording, {**expectation.parameters, **other}) for each in chosen)


def _modelled(name: str, recording: Recording, parameters: Mapping[str, Any], own: Mapping[str, Any]) -> float:
    model = models.REGISTRY.get(name)
    if model is None:
        raise MetricError(f"unknown model '{name}'{_near(name, models.REGISTRY)}")
    figure = model(recording, {"connection": parameters.get("connection"), **own})
    if figure is None:
        raise MetricError("no data")
    return figure


def _measured(name: str, recording: Recording, parameters: Mapping[str, Any]) -> float:
    measure = REGISTRY.get(settled(name))
    if measure is None:
        raise MetricError(f"unknown measure '{name}'{_near(name, REGISTRY)}")
    figure: Figure = measure(recording, parameters)
    if figure is None:
        raise MetricError("no data")
    return figure


def _near(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean '{near[0]}'?" if near else ""


def _unit(expectation: Expectation) -> str:
    return f" {expectation.unit}" if expectation.unit else ""
