"""How often the intervals of polypath.results cover the true value, on synthetic figures.

python docs/coverage.py [REPETITIONS]      prints the table of docs/statistics.md

A repetition draws the figures of several seeds from a distribution with a known mean or median. It computes the
interval as a sweep or a comparison does, and checks whether it covers that value. The draws are seeded.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from polypath.scenario.seeds import LEAST_LEFT_OUT, MOST, Seeds, Width
from polypath.statistics.estimate import estimate
from polypath.statistics.paired import LEVEL, compare, judged
from polypath.sweeps.adaptive import Interval, counts

REPETITIONS: Final = 1000
SEEDS: Final = (6, 10, 20, 30)
#: Of a sweep that takes seeds until an interval is narrow: half its width as a part of the mean, and how often.
WIDTHS: Final = (0.2, 0.1)
ADAPTIVE_REPETITIONS: Final = 300
Draw = Callable[[np.random.Generator, int], Any]

#: Figures of runs, none of them negative: the distribution, and its mean.
FIGURES: Final[dict[str, tuple[Draw, float]]] = {
    "normal, 20 ± 3": (lambda rng, count: rng.normal(20, 3, count), 20.0),
    "uniform, 0 to 20": (lambda rng, count: rng.uniform(0, 20, count), 10.0),
    "exponential, mean 10": (lambda rng, count: rng.exponential(10, count), 10.0),
    "lognormal, sigma 1": (lambda rng, count: rng.lognormal(0, 1, count), math.exp(0.5)),
    "Poisson, mean 2": (lambda rng, count: rng.poisson(2, count).astype(float), 2.0),
}

#: Those that seeds are taken for until the interval is narrow.
ADAPTIVE: Final[dict[str, tuple[Draw, float]]] = {
    "normal, 20 ± 10": (lambda rng, count: rng.normal(20, 10, count), 20.0),
    **{name: FIGURES[name] for name in ("uniform, 0 to 20", "exponential, mean 10", "lognormal, sigma 1")},
}

#: Differences within pairs.
DIFFERENCES: Final[dict[str, tuple[Draw, float]]] = {
    "normal": (lambda rng, count: rng.normal(1, 3, count), 1.0),
    "of two lognormals": (lambda rng, count: rng.lognormal(0, 1, count) - rng.lognormal(0, 1, count), 0.0),
    "lognormal, sigma 1": (lambda rng, count: rng.lognormal(0, 1, count), math.exp(0.5)),
    "normal, one in ten far off": (
        lambda rng, count: rng.normal(0, 1, count) + 10 * (rng.random(count) < 0.1),
        1.0,
    ),
}


def of_figures(draw: Draw, mean: float, seeds: int, repetitions: int) -> float:
    """Coverage of the interval in a sweep's table."""
    rng, covered = np.random.Generator(np.random.PCG64(seeds)), 0
    for _ in range(repetitions):
        found = estimate([float(value) for value in draw(rng, seeds)])
        low, high = (found.mean, found.mean) if found.low is None else (found.low, found.high)
        assert low is not None
        assert high is not None
        covered += low <= mean <= high
    return covered / repetitions


def of_adaptive(draw: Draw, mean: float, width: float, repetitions: int) -> tuple[float, float]:
    """Coverage of an interval that takes seeds until it is a part of the mean, and the mean number of seeds."""
    rng, covered, taken = np.random.Generator(np.random.PCG64(round(1000 * width))), 0, 0
    seeds = Seeds(LEAST_LEFT_OUT, MOST, {"goodput_mbps": Width(width, True)})
    for _ in range(repetitions):
        values = [float(value) for value in draw(rng, seeds.least)]
        while True:
            found = estimate(values)
            interval = Interval((), "", "goodput_mbps", Width(width, True), found.n, found.mean, found.half_width)
            wanted = counts(seeds, [interval], {(): found.n}).get((), found.n)
            if wanted == found.n:
                break
            values += [float(value) for value in draw(rng, wanted - found.n)]
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= mean <= found.high
        taken += found.n
    return covered / repetitions, taken / repetitions


def of_differences(draw: Draw, mean: float, seeds: int, repetitions: int) -> float:
    """Coverage of the interval of the mean difference."""
    rng, covered = np.random.Generator(np.random.PCG64(seeds)), 0
    for _ in range(repetitions):
        found = compare([float(value) for value in draw(rng, seeds)], [0.0] * seeds)
        covered += found.low is not None and found.high is not None and found.low <= mean <= found.high
    return covered / repetitions


def of_censored(seeds: int, repetitions: int) -> float:
    """Coverage of the interval of the median difference, if one run in ten does not finish."""
    rng, covered, counted = np.random.Generator(np.random.PCG64(seeds)), 0, 0
    median = 10 * math.log(2)
    end = 10 * math.log(10)  # a time in ten is beyond
    while counted < repetitions:
        times = [float(value) for value in rng.exponential(10, seeds)]
        value = [None if time > end else time for time in times]
        if None not in value:
            continue
        found = compare(value, [0.0] * seeds)
        counted += 1
        covered += found.low is not None and found.high is not None and found.low <= median <= found.high
    return covered / repetitions


def of_alarms(values: int, seeds: int, repetitions: int) -> float:
    """How often a table of so many values that differ in nothing shows a difference."""
    rng, alarms = np.random.Generator(np.random.PCG64(seeds)), 0
    for _ in range(repetitions):
        base = list(rng.lognormal(0, 1, seeds))
        found = judged([compare(list(rng.lognormal(0, 1, seeds)), base) for _ in range(values)])
        alarms += any(each.p_holm is not None and each.p_holm < LEVEL for each in found)
    return alarms / repetitions


def rows(repetitions: int = REPETITIONS) -> Iterator[tuple[str, list[float]]]:
    """What is covered or raised, with each number of seeds."""
    for name, (draw, mean) in FIGURES.items():
        yield f"mean of figures: {name}", [of_figures(draw, mean, seeds, repetitions) for seeds in SEEDS]
    for name, (draw, mean) in DIFFERENCES.items():
        yield f"mean difference: {name}", [of_differences(draw, mean, seeds, repetitions) for seeds in SEEDS]
    yield "median difference, runs unfinished", [of_censored(seeds, repetitions) for seeds in SEEDS]
    yield "false alarms, 4 values against a base", [of_alarms(4, seeds, repetitions) for seeds in SEEDS]


def adaptive_cell(draw: Draw, mean: float, width: float) -> str:
    covered, seeds = of_adaptive(draw, mean, width, ADAPTIVE_REPETITIONS)
    return f"{100 * covered:.1f} %, {seeds:.0f} seeds"


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else REPETITIONS
    print(f"| | {' | '.join(f'{seeds} seeds' for seeds in SEEDS)} |")
    print(f"|---|{'---:|' * len(SEEDS)}")
    for name, found in rows(repetitions):
        print(f"| {name} | {' | '.join(f'{100 * part:.1f} %' for part in found)} |", flush=True)
    print(f"\n| | {' | '.join(f'until ± {width:.0%}'.replace('%', ' %') for width in WIDTHS)} |")
    print(f"|---|{'---:|' * len(WIDTHS)}")
    for name, (draw, mean) in ADAPTIVE.items():
        print(f"| {name} | {' | '.join(adaptive_cell(draw, mean, width) for width in WIDTHS)} |", flush=True)


if __name__ == "__main__":
    main()
