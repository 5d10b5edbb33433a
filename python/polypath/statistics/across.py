"""Values of a setting over many networks: each network is a block, within which the values are compared.

In a block, a value's figure is the mean over the seeds that all values share. Its ratio to the base's is taken in each
block. The geometric mean is taken over blocks, whose figures may differ by orders of magnitude. Its 95 % interval is
over networks, by the bootstrap of the logarithms. Source: Fleming and Wallace, "How not to lie with statistics: the
correct way to summarize benchmark results", 1986.

A value wins a block if the difference within seeds shows it, and ties if no difference is shown
(`polypath.statistics.paired`). Each block is tested at the 5 % level, without a correction for their number. With one
seed a value wins if its figure is better.

Ranks are those of the means within a block, and equal means share theirs. Friedman's test asks whether all values rank
alike (Demsar, "Statistical comparisons of classifiers over multiple data sets", 2006). A block in which a run did not
finish has no ratio: it is counted, and ranks last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

import polars as pl

from polypath.measures import MEASURES
from polypath.results.axes import SEED, Axis
from polypath.results.errors import UnknownName
from polypath.results.metrics import MetricError
from polypath.statistics import paired
from polypath.statistics.estimate import bootstrap_interval

#: Fewer networks have no interval.
_FEWEST: Final = 3

COLUMNS: Final[Mapping[str, Any]] = {
    "connection": pl.String,
    "measure": pl.String,
    "value": pl.String,
    "base": pl.String,
    "networks": pl.UInt32,
    "ratio": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "ratios": pl.UInt32,
    "wins": pl.UInt32,
    "ties": pl.UInt32,
    "losses": pl.UInt32,
    "unfinished": pl.UInt32,
    "rank": pl.Float64,
    "p_ranks": pl.Float64,
}
"""What `across` gives. `ratios`: the networks that have one; `unfinished`: those in which a run of the value did not
finish; `p_ranks`: Friedman's test of all values, None with two values or too few networks."""


@dataclass(frozen=True)
class Block:
    """One network: the figure of each value, infinite where a run did not finish."""

    network: tuple[str, ...]
    means: Mapping[str, float]
    outcomes: Mapping[str, str]


def blocks(
    points: pl.DataFrame,
    by: str,
    base: str,
    labels: Sequence[str],
    networks: Sequence[str],
    measure: str,
    *,
    compared: bool = True,
) -> list[Block]:
    """The networks in which every value has a figure of one connection, whose rows `points` are.

    They have outcomes only if `compared`, which takes most of the time.
    """
    better = -1 if MEASURES[measure].more_is_better else 1
    found = []
    for key, group in points.group_by(networks, maintain_order=True):
        own = {label: paired.by_seed(group.filter(pl.col(by) == label), measure) for label in labels}
        common = [seed for seed in own[base] if all(seed in figures for figures in own.values())]
        if not common:
            continue
        means, outcomes = {}, {}
        for label in labels:
            figures = [own[label][seed] for seed in common]
            means[label] = math.inf * better if None in figures else fmean(f for f in figures if f is not None)
            if compared:
                against = [own[base][seed] for seed in common]
                (judged,) = paired.judged([paired.compare(figures, against, MEASURES[measure].beyond)])
                outcomes[label] = _outcome(judged, better)
        found.append(Block(tuple(map(str, key)), means, outcomes))
    return found


def _outcome(of: paired.Comparison, better: int) -> str:
    shown = {"higher": 1, "lower": -1}.get(of.verdict, 0)
    if of.verdict in ("deterministic", "one pair"):
        shown = 0 if not of.difference else round(math.copysign(1, of.difference))
    return {0: "tie", -better: "win", better: "loss"}[shown]


def across(
    points: pl.DataFrame,
    axes: Sequence[Axis],
    by: str,
    base: str,
    networks: Sequence[str],
    measures: Mapping[str, Sequence[str]],
) -> pl.DataFrame:
    """A row for each connection, measure and value of axis `by`, over the networks that the axes `networks` span.

    Columns: COLUMNS. Raises MetricError for axes that are none, or that leave another axis out.
    """
    known = [axis.name for axis in axes if axis.name not in (by, SEED)]
    for name in networks:
        if name not in known:
            raise UnknownName.of("axis of networks", name, known)
    if left := [name for name in known if name not in networks]:
        raise MetricError(f"axis '{left[0]}' is neither compared nor a network: add it to the networks, or fix it")
    (axis,) = (axis for axis in axes if axis.name == by)
    labels = [base, *(label for label in axis.labels if label != base)]
    rows: list[dict[str, Any]] = []
    for (connection,), group in points.group_by("connection", maintain_order=True):
        for measure in measures[str(connection)]:
            found = blocks(group, by, base, labels, networks, measure)
            if not found:
                continue
            p_ranks = _friedman(found, labels, measure)
            for label in labels:
                row = {"connection": connection, "measure": measure, "value": label, "base": base}
                rows.append({**row, **_over(found, label, base, labels, measure), "p_ranks": p_ranks})
    return pl.DataFrame(rows, schema=dict(COLUMNS))


def _over(found: Sequence[Block], label: str, base: str, labels: Sequence[str], measure: str) -> dict[str, Any]:
    logs = [
        math.log(block.means[label] / block.means[base])
        for block in found
        if all(math.isfinite(block.means[each]) and block.means[each] > 0 for each in (label, base))
    ]
    told: dict[str, Any] = {"networks": len(found), "ratios": len(logs)}
    told["ratio"] = math.exp(fmean(logs)) if logs else None
    told["low"], told["high"] = None, None
    if len(logs) >= _FEWEST and len({round(each, 12) for each in logs}) > 1:
        told["low"], told["high"] = map(math.exp, bootstrap_interval(logs))
    outcomes = [block.outcomes[label] for block in found]
    told |= {name: None if label == base else outcomes.count(one) for name, one in _OUTCOMES.items()}
    told["unfinished"] = sum(math.isinf(block.means[label]) for block in found)
    told["rank"] = fmean(_ranks(block, labels, measure)[label] for block in found)
    return told


_OUTCOMES: Final = {"wins": "win", "ties": "tie", "losses": "loss"}


def _ranks(block: Block, labels: Sequence[str], measure: str) -> dict[str, float]:
    """From 1, the best; equal figures share the mean of their ranks."""
    sign = -1 if MEASURES[measure].more_is_better else 1
    figures = {label: sign * block.means[label] for label in labels}
    return {
        label: 1 + sum(other < own for other in figures.values()) + (sum(o == own for o in figures.values()) - 1) / 2
        for label, own in figures.items()
    }


def _friedman(found: Sequence[Block], labels: Sequence[str], measure: str) -> float | None:
    if len(labels) < 3 or len(found) < _FEWEST:
        return None
    ranks = [_ranks(block, labels, measure) for block in found]
    if all(len(set(each.values())) == 1 for each in ranks):
        return None
    from scipy.stats import friedmanchisquare

    return float(friedmanchisquare(*([each[label] for each in ranks] for label in labels)).pvalue)


def profile(found: Sequence[Block], labels: Sequence[str], measure: str) -> dict[str, list[float]]:
    """How far each value is from the best in each network, as a factor from 1, ascending; infinite where it has none.

    The share of factors up to x is a performance profile (Dolan and More, "Benchmarking optimization software with
    performance profiles", 2002).
    """
    more = MEASURES[measure].more_is_better
    factors: dict[str, list[float]] = {label: [] for label in labels}
    for block in found:
        usable = [each for each in block.means.values() if math.isfinite(each) and each > 0]
        if not usable:
            continue
        best = max(usable) if more else min(usable)
        for label in labels:
            own = block.means[label]
            usual = math.isfinite(own) and own > 0
            factors[label].append((best / own if more else own / best) if usual else math.inf)
    return {label: sorted(values) for label, values in factors.items()}
