"""Values of a setting over many networks."""

from __future__ import annotations

import math
from collections.abc import Mapping

import polars as pl
import pytest
from scipy.stats import friedmanchisquare

from polypath.results import MetricError
from polypath.results.axes import SEED, Axis
from polypath.statistics import across
from polypath.statistics.points import COLUMNS

Figures = Mapping[tuple[str, str], list[float | None]]
SEEDS = tuple(map(str, range(1, 9)))


def axes(networks: int, *values: str) -> list[Axis]:
    return [
        Axis("network", tuple(f"n{each}" for each in range(networks))),
        Axis("scheduler", values),
        Axis(SEED, SEEDS, tuple(map(float, SEEDS))),
    ]


def points(figures: Figures, measure: str = "completion_s") -> pl.DataFrame:
    rows = [
        {
            "network": network,
            "scheduler": value,
            SEED: seed,
            "connection": "file",
            measure: figure,
            "finished": figure is not None,
        }
        for (network, value), given in figures.items()
        for seed, figure in zip(SEEDS, given, strict=True)
    ]
    known = {name: kind for name, kind in COLUMNS.items() if name in rows[0]}
    return pl.DataFrame(rows, schema_overrides=known)


def spread(about: float) -> list[float | None]:
    return [about * (1 + 0.001 * place) for place in range(8)]


def over(figures: Figures, *values: str, measure: str = "completion_s") -> pl.DataFrame:
    count = len({network for network, _ in figures})
    return across.across(
        points(figures, measure), axes(count, *values), "scheduler", values[0], ["network"], {"file": [measure]}
    )


def test_the_ratio_is_the_geometric_mean_over_networks() -> None:
    factors = [0.5, 2.0, 4.0, 1.0]
    figures = {}
    for place, factor in enumerate(factors):
        figures[f"n{place}", "a"] = spread(10.0**place)
        figures[f"n{place}", "b"] = spread(factor * 10.0**place)
    base, other = over(figures, "a", "b").iter_rows(named=True)
    assert (base["ratio"], base["wins"], base["rank"]) == (1.0, None, (2 + 1 + 1 + 1.5) / 4)
    assert other["ratio"] == pytest.approx(math.prod(factors) ** (1 / 4))
    assert other["low"] < other["ratio"] < other["high"]
    assert (other["wins"], other["ties"], other["losses"]) == (1, 1, 2)
    assert (other["networks"], other["ratios"], other["unfinished"]) == (4, 4, 0)


def test_more_goodput_is_a_win() -> None:
    figures = {("n0", "a"): spread(10), ("n0", "b"): spread(20), ("n1", "a"): spread(30), ("n1", "b"): spread(15)}
    _, other = over(figures, "a", "b", measure="goodput_mbps").iter_rows(named=True)
    assert (other["wins"], other["losses"], other["rank"]) == (1, 1, 1.5)
    assert (other["ratio"], other["low"]) == (pytest.approx(1.0), None)


def test_a_network_in_which_a_run_did_not_finish_has_no_ratio_and_the_last_rank() -> None:
    figures = {(f"n{place}", value): spread(1 + (value == "b")) for place in range(4) for value in "ab"}
    figures["n3", "a"] = [None] * 8
    base, other = over(figures, "a", "b").iter_rows(named=True)
    assert (other["ratio"], other["ratios"], base["unfinished"]) == (pytest.approx(2.0), 3, 1)
    assert (other["wins"], other["losses"]) == (1, 3)
    assert (base["rank"], other["rank"]) == ((1 + 1 + 1 + 2) / 4, (2 + 2 + 2 + 1) / 4)


def test_ranks_of_three_values_are_tested_as_scipy_does() -> None:
    figures = {}
    for place in range(6):
        for value, about in {"a": 1.0, "b": 2.0, "c": 3.0 if place else 0.5}.items():
            figures[f"n{place}", value] = spread(about * (place + 1))
    found = over(figures, "a", "b", "c")
    ranks = [[2, *[1] * 5], [3, *[2] * 5], [1, *[3] * 5]]
    assert found["p_ranks"].to_list() == [pytest.approx(friedmanchisquare(*ranks).pvalue)] * 3
    assert found["rank"].to_list() == [sum(each) / 6 for each in ranks]


def test_a_profile_is_how_far_each_is_from_the_best() -> None:
    unfinished: list[float | None] = [None] * 8
    figures = {("n0", "a"): spread(1), ("n0", "b"): spread(3), ("n1", "a"): spread(4), ("n1", "b"): unfinished}
    found = across.blocks(points(figures), "scheduler", "a", ["a", "b"], ["network"], "completion_s")
    assert across.profile(found, ["a", "b"], "completion_s") == {"a": [1, 1], "b": [pytest.approx(3), math.inf]}


def test_an_axis_that_is_neither_is_named() -> None:
    figures = {("n0", "a"): spread(1), ("n0", "b"): spread(3)}
    table = points(figures).with_columns(pl.lit("x").alias("buffer"))
    own = [*axes(1, "a", "b"), Axis("buffer", ("x",))]
    with pytest.raises(
        MetricError, match="axis 'buffer' is neither compared nor a network: add it to the networks, or fix"
    ):
        across.across(table, own, "scheduler", "a", ["network"], {"file": ["completion_s"]})
    with pytest.raises(MetricError, match="unknown axis of networks 'netwrk'; did you mean 'network'"):
        across.across(table, own, "scheduler", "a", ["netwrk"], {"file": ["completion_s"]})
