"""More seeds if an interval is wider than requested: `seeds = { until = { .. } }` of `[vary]`.

Each round looks at the intervals of a sweep's table. An interval's width falls with the root of the number of seeds,
which gives the number needed. A place gets that many, but at most twice its current number, because the width from few
seeds is itself a guess. Their final coverage is in docs/statistics.md.

A round depends only on the figures, so an interrupted sweep continues as if it had not stopped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from polypath.measures import MEASURES
from polypath.results.axes import SEED, Axis
from polypath.results.settled import settled
from polypath.scenario.seeds import Seeds, Width
from polypath.statistics.estimate import over_seeds

#: The labels of a place, without its seed, in the order of the axes.
Place = tuple[str, ...]

#: By how much a place may grow in a round.
_GROWTH = 2


@dataclass(frozen=True)
class Interval:
    """That of a measure of a connection at a place, and what was asked of it."""

    place: Place
    connection: str
    measure: str
    wanted: Width
    n: int
    mean: float | None
    #: Half of it; None of one run, and where some did not finish. Infinite where all gave one value by chance.
    half: float | None

    @property
    def is_wide(self) -> bool:
        """Whether more seeds are called for; where runs do not finish these would help nothing."""
        return self.half is not None and self.mean is not None and self.half > self.wanted.of(self.mean)

    @property
    def needed(self) -> int:
        """The seeds with which it should be as narrow as asked for."""
        if self.half == math.inf:
            return _GROWTH * self.n
        if self.half is None or self.mean is None or not (target := self.wanted.of(self.mean)):
            return self.n + 1
        return max(self.n + 1, math.ceil(self.n * min((self.half / target) ** 2, _GROWTH)))

    def __str__(self) -> str:
        what = f"{self.measure} of {self.connection}" + (f" at {', '.join(self.place)}" if self.place else "")
        if self.half is None or self.mean is None:
            return f"{what}: no interval, {'as runs did not finish' if self.mean is None else 'as there is one run'}"
        if math.isinf(self.half):
            return f"{what}: one value in all {self.n} runs; another may come in up to {min(1, 3 / self.n):.2g} of them"
        part = self.wanted.relative and self.mean != 0
        shown = f"{100 * self.half / abs(self.mean):.2g} %" if part else f"{self.half:.3g}"
        return f"{what}: ± {shown} after {self.n} seeds, asked for ± {self.wanted}"


def intervals(seeds: Seeds, points: pl.DataFrame, axes: Sequence[Axis]) -> list[Interval]:
    """Those that `seeds` asks for, of the points that have run."""
    names = [axis.name for axis in axes if axis.name != SEED]
    wanted = _wanted(seeds)
    table = over_seeds(points, axes, {name: MEASURES[name] for name in wanted})
    return [
        Interval(
            tuple(row[name] for name in names),
            row["connection"],
            row["measure"],
            wanted[row["measure"]],
            row["n"],
            row["mean"],
            _half(row),
        )
        for row in table.iter_rows(named=True)
    ]


def _wanted(seeds: Seeds) -> dict[str, Width]:
    """The widths by the present names of their measures."""
    return {settled(name): width for name, width in seeds.until.items()}


def _half(row: Mapping[str, Any]) -> float | None:
    if row["method"] == "deterministic":
        return 0.0
    if row["method"] == "constant":
        return math.inf
    return None if row["low"] is None or row["high"] is None else (row["high"] - row["low"]) / 2


def counts(seeds: Seeds, found: Sequence[Interval], ran: Mapping[Place, int]) -> dict[Place, int]:
    """How many seeds each place that needs more is to have; `ran`: how many it has, those that failed among them."""
    return dict(_counts(seeds, found, ran))


def _counts(seeds: Seeds, found: Sequence[Interval], ran: Mapping[Place, int]) -> Iterator[tuple[Place, int]]:
    more: dict[Place, int] = {}
    for interval in found:
        if interval.is_wide:
            more[interval.place] = max(more.get(interval.place, 0), interval.needed - interval.n)
    for place, number in more.items():
        if (wanted := min(seeds.most, ran[place] + number)) > ran[place]:
            yield place, wanted


def unmet(seeds: Seeds, found: Sequence[Interval]) -> list[str]:
    """In words, what is asked for and is not so: intervals that stayed wide, and measures that no connection has."""
    missing = [measure for measure in _wanted(seeds) if all(each.measure != measure for each in found)]
    return [
        *(f"no connection has a figure {measure}" for measure in missing),
        *(str(each) for each in found if each.half is None or each.is_wide),
    ]
