"""Mean, median and confidence interval of a figure over independent runs, the seeds of a sweep.

The interval is that of the mean. docs/statistics.md has its measured coverage.

- From 20 values on, it is the bias-corrected and accelerated bootstrap (Efron, "Better bootstrap confidence intervals",
  1987). It is seeded, so the same values give the same interval. It is expanded for few values (Hesterberg, "What
  Teachers Should Know About the Bootstrap", 2015, section 5.3).
- Below 20, it is Student's t, which assumes normally distributed values.
- If that reaches below 0, which is impossible for every figure, it is taken of the mean's logarithm (delta method).
  With two values, whose deviation does not show the order of magnitude, it is cut at 0 instead.
- There is none if no figure of a place depends on the seed.
- There is none if this figure is the same in all runs although others differ. Up to 3 in n runs may still have another
  value (the "rule of three").

A run that has not finished has no completion time, and one with unanswered requests has no delay. A mean of the others
would only describe the fast ones, so there is none. The median counts such a run as the longest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Any, Final, Literal

import polars as pl

from polypath.measures import MEASURES, Measure
from polypath.results.axes import SEED, Axis
from polypath.statistics.points import supported

CONFIDENCE: Final = 0.95
#: From this many values on the bootstrap is used.
BOOTSTRAP_FROM: Final = 20
#: What differs beyond so many significant digits is rounding, not the network.
DIGITS: Final = 12
_RESAMPLES: Final = 9999
_BOOTSTRAP_SEED: Final = 1

COLUMNS: Final[Mapping[str, Any]] = {
    "connection": pl.String,
    "measure": pl.String,
    "unit": pl.String,
    "n": pl.UInt32,
    "unfinished": pl.UInt32,
    "mean": pl.Float64,
    "median": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "method": pl.String,
}
"""Of the table over seeds, besides the axes."""

Method = Literal["none", "deterministic", "constant", "student-t", "student-t of the logarithm", "bootstrap"]


@dataclass(frozen=True)
class Estimate:
    """What `n` runs say; without an interval where there is just one, where all agree, or where some did not finish."""

    n: int
    #: How many of them have no value, because they did not finish.
    unfinished: int
    mean: float | None
    #: None where half of the runs or more did not finish.
    median: float | None
    low: float | None
    high: float | None
    method: Method

    @property
    def half_width(self) -> float | None:
        """Half the interval's width."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


def estimate(
    values: Sequence[float], unfinished: int = 0, beyond: float = math.inf, *, varies: bool = False
) -> Estimate:
    """The estimate from the values of finished runs, and the number of others, which count as `beyond` (`Measure`).
    `varies` says whether these runs differ in anything else.

    Raises ValueError if there is neither, or for a value that is not finite.
    """
    if not all(map(math.isfinite, values)) or not (values or unfinished):
        raise ValueError("an estimate needs finite values")
    count = len(values) + unfinished
    middle = median([*values, *[beyond] * unfinished])
    if unfinished:
        return Estimate(count, unfinished, None, middle if math.isfinite(middle) else None, None, None, "none")
    mean = fmean(values)
    if count == 1:
        return Estimate(count, 0, mean, middle, None, None, "none")
    if alike(values):
        return Estimate(count, 0, values[0], middle, None, None, "constant" if varies else "deterministic")
    if count >= BOOTSTRAP_FROM:
        return Estimate(count, 0, mean, middle, *bootstrap_interval(values), "bootstrap")
    half = student_half_width(values)
    if min(values) < 0 or mean >= half:
        return Estimate(count, 0, mean, middle, mean - half, mean + half, "student-t")
    if count == 2:
        return Estimate(count, 0, mean, middle, 0.0, mean + half, "student-t")
    factor = math.exp(half / mean)
    return Estimate(count, 0, mean, middle, mean / factor, mean * factor, "student-t of the logarithm")


def alike(values: Sequence[float]) -> bool:
    """Whether they are one value, as far as sums of floating-point numbers tell."""
    return max(values) - min(values) <= 10.0**-DIGITS * max(map(abs, values))


def student_half_width(values: Sequence[float]) -> float:
    """Half the width of the interval of the mean by Student's t."""
    from scipy.stats import t

    return float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))


def bootstrap_interval(values: Sequence[float]) -> tuple[float, float]:
    """The interval of the mean by the bootstrap, within the values; these must not all be alike."""
    import numpy as np
    from scipy.stats import bootstrap, norm, t

    count = len(values)
    # a resample's deviation is too small by sqrt((n - 1) / n), and its mean is taken as normal instead of Student's t
    tail = norm.cdf(math.sqrt(count / (count - 1)) * t.ppf((1 - CONFIDENCE) / 2, count - 1))
    found = bootstrap(
        (values,),
        np.mean,
        confidence_level=1 - 2 * tail,
        n_resamples=_RESAMPLES,
        method="BCa",
        rng=np.random.Generator(np.random.PCG64(_BOOTSTRAP_SEED)),
    ).confidence_interval
    return float(found.low), float(found.high)


def over_seeds(points: pl.DataFrame, axes: Sequence[Axis], measures: Mapping[str, Measure] = MEASURES) -> pl.DataFrame:
    """The table of points with the seeds put together: a row for each place, connection and measure that has values.

    Columns: the axes without the seed, connection, measure, unit, n, unfinished, mean, median, low, high, method.
    """
    kept = [column for axis in axes if axis.name != SEED for column in (axis.name, axis.numeric) if column is not None]
    place = {column: points.schema[column] for column in kept}
    varied = varying(points, kept)
    told = {
        connection: {name: measure for name, measure in measures.items() if supported(measure, own)}
        for (connection,), own in points.group_by("connection")
    }
    rows = []
    for key, group in points.group_by([*kept, "connection"], maintain_order=True):
        for name, measure in told[key[-1]].items():
            values = group[name].drop_nulls().to_list()
            unfinished = sum(row[name] is None and measure.unfinished(row) for row in group.iter_rows(named=True))
            if values or unfinished:
                made = estimate(values, unfinished, measure.beyond, varies=key[:-1] in varied)
                rows.append([*key, name, measure.unit.data, *made.__dict__.values()])
    return pl.DataFrame(rows, schema={**place, **COLUMNS}, orient="row")


def varying(points: pl.DataFrame, place: Sequence[str]) -> set[tuple[Any, ...]]:
    """The places, values of those columns, at which a figure of some connection differs between runs."""
    return {
        key[:-1]
        for key, group in points.group_by([*place, "connection"], maintain_order=True)
        if any(_varies(group[name]) for name in MEASURES)
    }


def _varies(figures: pl.Series) -> bool:
    known = figures.drop_nulls().to_list()
    return bool(known) and (len(known) < len(figures) or not alike(known))
