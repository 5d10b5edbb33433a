"""Mean, median and confidence interval of a figure over independent runs, the seeds of a sweep.

The interval is of the mean. From 20 values on it is the bias-corrected and accelerated bootstrap (Efron, "Better
bootstrap confidence intervals", 1987), seeded, so that the same values give the same interval; below, where the
bootstrap is known to be too narrow, Student's t, which takes the values to be normally distributed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Any, Final, Literal

import polars as pl

from polypath.results.points import MEASURES, SEED, Axis

CONFIDENCE: Final = 0.95
#: From this many values on the bootstrap is used.
BOOTSTRAP_FROM: Final = 20
_RESAMPLES: Final = 9999
_BOOTSTRAP_SEED: Final = 1

Method = Literal["none", "student-t", "bootstrap"]


@dataclass(frozen=True)
class Estimate:
    """What `n` values say; without an interval where there is just one."""

    n: int
    mean: float
    median: float
    low: float | None
    high: float | None
    method: Method

    @property
    def half_width(self) -> float | None:
        """Half the interval's width."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


def estimate(values: Sequence[float]) -> Estimate:
    """Raises ValueError for no values, or one that is not finite."""
    if not values or not all(map(math.isfinite, values)):
        raise ValueError("an estimate needs finite values")
    mean, middle = fmean(values), median(values)
    if len(values) == 1:
        return Estimate(1, mean, middle, None, None, "none")
    method: Method = "student-t" if len(values) < BOOTSTRAP_FROM else "bootstrap"
    if max(values) == min(values):
        return Estimate(len(values), mean, middle, mean, mean, method)
    low, high = _student(values, mean) if method == "student-t" else _bootstrap(values)
    return Estimate(len(values), mean, middle, low, high, method)


def _student(values: Sequence[float], mean: float) -> tuple[float, float]:
    from scipy.stats import t

    half = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return mean - half, mean + half


def _bootstrap(values: Sequence[float]) -> tuple[float, float]:
    import numpy as np
    from scipy.stats import bootstrap

    found = bootstrap(
        (values,),
        np.mean,
        confidence_level=CONFIDENCE,
        n_resamples=_RESAMPLES,
        method="BCa",
        rng=np.random.Generator(np.random.PCG64(_BOOTSTRAP_SEED)),
    ).confidence_interval
    return float(found.low), float(found.high)


def over_seeds(points: pl.DataFrame, axes: Sequence[Axis]) -> pl.DataFrame:
    """The table of points with the seeds put together: a row for each place, connection and measure that has values.

    Columns: the axes without the seed, connection, measure, unit, n, mean, median, low, high, method.
    """
    kept = [column for axis in axes if axis.name != SEED for column in (axis.name, axis.numeric) if column is not None]
    place = {column: points.schema[column] for column in kept}
    rows = []
    for key, group in points.group_by([*kept, "connection"], maintain_order=True):
        for name, measure in MEASURES.items():
            values = group[name].drop_nulls().to_list()
            if values:
                rows.append([*key, name, measure.unit, *estimate(values).__dict__.values()])
    schema: dict[str, Any] = {
        **place,
        "connection": pl.String,
        "measure": pl.String,
        "unit": pl.String,
        "n": pl.UInt32,
        "mean": pl.Float64,
        "median": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
        "method": pl.String,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")
