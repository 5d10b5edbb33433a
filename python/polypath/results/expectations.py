"""Holding a lab's runs against what is published of them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from polypath.results.measures import REGISTRY, Figure
from polypath.results.metrics import MetricError
from polypath.results.recording import Recording


class Expectation(Protocol):
    """A published figure and the bounds that a run's own must keep.

    `parameters` are the measure's, `connection` among them where it has one. With `relative_to` (run, and whatever
    parameters differ) the figure is the quotient of the two runs'.
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


def evaluate(expectation: Expectation, recordings: Mapping[str, Recording]) -> Row:
    """Compares; `recordings` by run name. An expectation that cannot be computed is a miss with the reason."""
    try:
        value = _value(expectation, recordings)
    except MetricError as error:
        return Row(expectation.name, expectation.published, bound(expectation), str(error), False)
    if value is None:
        return Row(expectation.name, expectation.published, bound(expectation), "no data", False)
    low, high = expectation.minimum, expectation.maximum
    ok = (low is None or value >= low) and (high is None or value <= high)
    return Row(expectation.name, expectation.published, bound(expectation), f"{value:.4g}{_unit(expectation)}", ok)


def bound(expectation: Expectation) -> str:
    """The bounds in words."""
    low, high, unit = expectation.minimum, expectation.maximum, _unit(expectation)
    if low is not None and low == high:
        return f"{low:g}{unit}"
    if low is not None and high is not None:
        return f"{low:g} to {high:g}{unit}"
    if low is not None:
        return f"at least {low:g}{unit}"
    return f"at most {high:g}{unit}" if high is not None else "any"


def _value(expectation: Expectation, recordings: Mapping[str, Recording]) -> Figure:
    value = _measured(expectation.measure, expectation.run, expectation.parameters, recordings)
    if value is None or expectation.relative_to is None:
        return value
    other = dict(expectation.relative_to)
    run = str(other.pop("run", expectation.run))
    reference = _measured(expectation.measure, run, {**expectation.parameters, **other}, recordings)
    return value / reference if reference else None


def _measured(name: str, run: str, parameters: Mapping[str, Any], recordings: Mapping[str, Recording]) -> Figure:
    measure = REGISTRY.get(name)
    if measure is None:
        near = difflib.get_close_matches(name, REGISTRY, 1)
        raise MetricError(f"unknown measure '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""))
    if run not in recordings:
        raise MetricError(f"unknown run '{run}' (there: {', '.join(recordings)})")
    return measure(recordings[run], parameters)


def _unit(expectation: Expectation) -> str:
    return f" {expectation.unit}" if expectation.unit else ""
