"""Paired comparison of a sweep's points: the labels of one axis against a base label, over common seeds.

Runs of the same seed form a pair, and all statements are about the differences within pairs. If all runs finish, the
effect is the mean difference with its 95 % bootstrap interval (`polypath.statistics.estimate`). The test is the
sign-flip permutation test of that mean (Fisher, "The Design of Experiments", 1935, section 21). It is exact up to 13
pairs, and if all differences have one sign. Otherwise it takes 9,999 random flips.

If some run did not finish, its figure is censored: worse than any. The effect is then the median difference with its
order-statistic interval. The test is Wilcoxon's signed-rank test, which needs only that order. A pair of two such runs
counts as no difference.

Every draw is seeded, so the same figures give the same result. The p-values of a table are corrected together for their
number (Holm, "A simple sequentially rejective multiple test procedure", 1979). If no seed changes anything, there is
neither interval nor p-value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any, Final, Literal

import polars as pl

from polypath.measures import MEASURES
from polypath.results.axes import SEED, Axis
from polypath.results.metrics import MetricError
from polypath.statistics.estimate import (
    CONFIDENCE,
    DIGITS,
    Estimate,
    bootstrap_interval,
    estimate,
    student_half_width,
    varying,
)

#: A corrected p-value below this shows a difference.
LEVEL: Final = 0.05
_RESAMPLES: Final = 9999
_SEED: Final = 1
#: Up to this many pairs every flip of signs is tried.
_ALL_FLIPS: Final = 13
#: Below this many pairs there are too few different resamples; the interval is Student's t then.
BOOTSTRAP_FROM: Final = 6

Verdict = Literal[
    "higher",
    "lower",
    "differs both ways",
    "no difference shown",
    "equal in every pair",
    "none finished",
    "deterministic",
    "one pair",
    "",
]
Method = Literal["none", "student-t", "bootstrap", "order statistics"]
Test = Literal["none", "sign-flip permutation", "signed rank"]


@dataclass(frozen=True)
class Comparison:
    """What n pairs say of a label against the base."""

    pairs: int
    value: Estimate
    base: Estimate
    #: Mean difference; median where some did not finish, infinite where that depends on one of these.
    difference: float | None
    low: float | None
    high: float | None
    method: Method
    test: Test
    p: float | None
    #: Corrected for the number of comparisons of the table.
    p_holm: float | None
    verdict: Verdict

    @property
    def censored(self) -> bool:
        return bool(self.value.unfinished or self.base.unfinished)


def compare(
    value: Sequence[float | None], base: Sequence[float | None], beyond: float = math.inf, *, varies: bool = False
) -> Comparison:
    """Compares figures by seed. None is a run that did not finish, and counts as `beyond` of its measure. `varies` says
    whether the runs differ in anything else. The p-value is uncorrected, and the verdict is the one for a small enough
    p-value.

    Raises ValueError if there is no pair, or if the numbers of figures differ.
    """
    pairs = list(zip(value, base, strict=True))
    own, others = (_estimate(figures, beyond, varies) for figures in (value, base))
    found = Comparison(len(pairs), own, others, None, None, None, "none", "none", None, None, "")
    places = _places([each for pair in pairs for each in pair if each is not None])
    differences = [_difference(*pair, beyond, places) for pair in pairs]
    if all(one is None and other is None for one, other in pairs):
        return replace(found, verdict="none finished")
    if len(pairs) == 1:
        return replace(found, difference=differences[0], verdict="one pair")
    if all(_agrees(each, varies) for each in (own, others)):
        return replace(found, difference=differences[0], verdict="deterministic")
    if not any(differences):
        return replace(found, difference=0.0, verdict="equal in every pair")
    if found.censored:
        low, high = _order_statistics(differences)
        middle, ranked = _middle(differences), _ranked(differences)
        return replace(
            found,
            difference=middle,
            low=low,
            high=high,
            method="order statistics",
            test="signed rank",
            p=_signed_rank(ranked),
            verdict=_way(middle, sum(ranked)),
        )
    bounds, mean = interval(differences), fmean(differences)
    return replace(
        found,
        difference=mean,
        low=bounds[0],
        high=bounds[1],
        method=bounds[2],
        test="sign-flip permutation",
        p=_sign_flips(differences),
        verdict=_way(mean),
    )


def _estimate(figures: Sequence[float | None], beyond: float, varies: bool) -> Estimate:
    known = [each for each in figures if each is not None]
    return estimate(known, len(figures) - len(known), beyond, varies=varies)


def _agrees(of: Estimate, varies: bool) -> bool:
    """Whether no seed changes anything: all runs have one figure, or none finished."""
    return of.method == "deterministic" or (not varies and of.unfinished == of.n)


def _middle(differences: Sequence[float]) -> float:
    """The median; of as many differences above every bound as below, which cancel, 0."""
    found = median(differences)
    return 0.0 if math.isnan(found) else found


def _places(figures: Sequence[float]) -> int:
    """The decimals up to which differences of figures mean something; beyond them they are rounding."""
    largest = max(map(abs, figures), default=0.0)
    return DIGITS - 1 - math.floor(math.log10(largest)) if largest else DIGITS


def _difference(value: float | None, base: float | None, beyond: float, places: int) -> float:
    """The difference; two runs that did not finish count as no difference."""
    if value is None or base is None:
        return 0.0 if value is base else beyond if value is None else -beyond
    return round(value - base, places)


def interval(differences: Sequence[float]) -> tuple[float | None, float | None, Method]:
    """The 95 % interval of the mean; none where all are alike."""
    if max(differences) == min(differences):
        return None, None, "none"
    if len(differences) >= BOOTSTRAP_FROM:
        return *bootstrap_interval(differences), "bootstrap"
    mean, half = fmean(differences), student_half_width(differences)
    return mean - half, mean + half, "student-t"


def _order_statistics(differences: Sequence[float]) -> tuple[float, float]:
    """The narrowest interval of the median between two of the values, that covers it at least as often as is asked.

    Infinite where there are too few values, or where an end is one of a run that did not finish.
    """
    from scipy.stats import binom

    ordered = sorted(differences)
    count = len(ordered)
    outside = int(binom.ppf((1 - CONFIDENCE) / 2, count, 0.5))
    if outside == 0:
        return -math.inf, math.inf
    return ordered[outside - 1], ordered[count - outside]


def _sign_flips(differences: Sequence[float]) -> float:
    known = [each for each in differences if each]
    if min(known) > 0 or max(known) < 0:
        return least_p(len(known))
    import numpy as np
    from scipy.stats import permutation_test

    found = permutation_test(
        (np.array(differences),),
        np.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=max(_RESAMPLES, 2**_ALL_FLIPS),
        rng=np.random.Generator(np.random.PCG64(_SEED)),
    )
    return float(found.pvalue)


def _ranked(differences: Sequence[float]) -> list[float]:
    """The ranks of the differences by their size, with their signs, without those that are 0."""
    from scipy.stats import rankdata

    known = [each for each in differences if each]
    return [math.copysign(rank, each) for rank, each in zip(rankdata([*map(abs, known)]), known, strict=True)]


def _signed_rank(ranked: Sequence[float]) -> float:
    from scipy.stats import wilcoxon

    return float(wilcoxon(ranked).pvalue)


def _way(*tendencies: float) -> Verdict:
    """The direction of a difference; the reported and the tested one may differ."""
    ways = {each > 0 for each in tendencies if each}
    return "differs both ways" if len(ways) > 1 else "higher" if ways == {True} else "lower"


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected for their number, in their order."""
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = highest
    return corrected


def judged(found: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons of a table with their p-values corrected, and what these show.

    Test and interval are of two methods: what one shows and the other does not is not shown.
    """
    tested = [place for place, each in enumerate(found) if each.p is not None]
    corrected = holm([p for each in found if (p := each.p) is not None])
    made = list(found)
    for place, p in zip(tested, corrected, strict=True):
        made[place] = replace(
            found[place],
            p_holm=p,
            verdict=found[place].verdict if p < LEVEL and not _holds_none(found[place]) else "no difference shown",
        )
    return made


def _holds_none(of: Comparison) -> bool:
    """Whether there is one direction, and the interval has both."""
    one_way = of.verdict in ("higher", "lower")
    return one_way and of.low is not None and of.high is not None and of.low < 0 < of.high


def least_p(pairs: int) -> float:
    """The least p-value that so many pairs can give before it is corrected: all differences of one sign."""
    return min(1.0, 2.0 ** (1 - pairs))


def pairs_needed(comparisons: int) -> int:
    """The fewest pairs that can show a difference in a table of so many comparisons."""
    pairs = 1
    while least_p(pairs) * comparisons >= LEVEL:
        pairs += 1
    return pairs


def require_names(axes: Iterable[str]) -> None:
    """Raises MetricError where an axis has the name of a column of the comparison."""
    for name in axes:
        if name == "base" or name in _COLUMNS:
            raise MetricError(f"axis '{name}' has the name of a column of the comparison; give it another one")


def over_pairs(
    points: pl.DataFrame,
    axes: Sequence[Axis],
    by: str,
    base: str,
    measures: Mapping[str, Sequence[str]],
) -> pl.DataFrame:
    """The labels of axis `by`, each against `base`, for these connections and measures, at each place of the other
    axes.

    The first columns are the other axes, connection, measure, unit, the axis's own column, base and pairs. For label
    and base, n, unfinished, mean and median follow. Then come difference, low, high, method, test, p, p_holm and
    verdict. The base's row has no difference. Pairs with a failed point are left out. Raises MetricError for an axis
    named like a column.
    """
    require_names(axis.name for axis in axes)
    (axis,) = (axis for axis in axes if axis.name == by)
    others = [each.name for each in axes if each.name not in (by, SEED)]
    labels = [base, *(label for label in axis.labels if label != base)]
    rows: list[dict[str, Any]] = []
    found: list[Comparison] = []
    varied = varying(points, [*others, by])
    for key, group in points.group_by([*others, "connection"], maintain_order=True):
        for measure in measures[str(key[-1])]:
            own = {label: by_seed(group.filter(pl.col(by) == label), measure) for label in labels}
            for label in labels:
                common = [seed for seed in own[base] if seed in own[label]]
                if not common:
                    continue
                rows.append(
                    {
                        **dict(zip(others, key, strict=False)),
                        "connection": key[-1],
                        "measure": measure,
                        "unit": MEASURES[measure].unit.data,
                        by: label,
                        "base": base,
                    }
                )
                value, against = ([own[each][seed] for seed in common] for each in (label, base))
                varies = any((*key[:-1], each) in varied for each in (label, base))
                found.append(compare(value, against, MEASURES[measure].beyond, varies=varies))
                if label == base:
                    found[-1] = replace(found[-1], difference=None, verdict="")
    made = [{**row, **_columns(each)} for row, each in zip(rows, judged(found), strict=True)]
    text = dict.fromkeys([*others, "connection", "measure", "unit", by, "base"], pl.String)
    return pl.DataFrame(made, schema={**text, **_COLUMNS})


_COLUMNS: Final[Mapping[str, Any]] = {
    "pairs": pl.UInt32,
    "unfinished": pl.UInt32,
    "mean": pl.Float64,
    "median": pl.Float64,
    "value_low": pl.Float64,
    "value_high": pl.Float64,
    "value_method": pl.String,
    "base_unfinished": pl.UInt32,
    "base_mean": pl.Float64,
    "base_median": pl.Float64,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "method": pl.String,
    "test": pl.String,
    "p": pl.Float64,
    "p_holm": pl.Float64,
    "verdict": pl.String,
}


def _columns(of: Comparison) -> dict[str, Any]:
    return {
        "pairs": of.pairs,
        "unfinished": of.value.unfinished,
        "mean": of.value.mean,
        "median": of.value.median,
        "value_low": of.value.low,
        "value_high": of.value.high,
        "value_method": of.value.method,
        "base_unfinished": of.base.unfinished,
        "base_mean": of.base.mean,
        "base_median": of.base.median,
        "difference": of.difference,
        "low": of.low,
        "high": of.high,
        "method": of.method,
        "test": of.test,
        "p": of.p,
        "p_holm": of.p_holm,
        "verdict": of.verdict,
    }


def by_seed(rows: pl.DataFrame, measure: str) -> dict[str, float | None]:
    """The figure of each seed, None for a run that did not finish; a run that has no such figure is left out."""
    unfinished = MEASURES[measure].unfinished
    return {
        row[SEED]: row[measure] for row in rows.iter_rows(named=True) if row[measure] is not None or unfinished(row)
    }
