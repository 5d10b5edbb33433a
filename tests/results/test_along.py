"""How ratios change with the networks' properties."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import polars as pl
import pytest
from scipy.stats import spearmanr

from polypath.results.axes import SEED, Axis
from polypath.statistics import along
from polypath.statistics.points import COLUMNS

NETWORKS = [f"n{number}" for number in range(1, 21)]
WIFI = [1e6 * (number + 1) for number in range(20)]
LTE = [1e6 * value for value in random.Random(7).sample(range(1, 21), 20)]


def axes() -> list[Axis]:
    drawn = {"link.wifi.rate": ("bps", WIFI), "link.lte.rate": ("bps", LTE)}
    return [
        Axis("network", tuple(NETWORKS), None, "", tuple({} for _ in NETWORKS), drawn),
        Axis("scheduler", ("a", "b")),
        Axis(SEED, ("1",), (1.0,)),
    ]


def found(ratios: Sequence[float | None]) -> pl.DataFrame:
    """Value b takes so many times the 2 s of value a; None: it does not finish."""
    rows = [
        {
            "network": network,
            "scheduler": value,
            SEED: "1",
            "connection": "file",
            "completion_s": time,
            "finished": time is not None,
        }
        for network, ratio in zip(NETWORKS, ratios, strict=True)
        for value, time in (("a", 2.0), ("b", None if ratio is None else 2.0 * ratio))
    ]
    known = {name: kind for name, kind in COLUMNS.items() if name in rows[0]}
    points = pl.DataFrame(rows, schema_overrides=known)
    return along.along(points, axes(), "scheduler", "a", ["network"], {"file": ["completion_s"]})


def test_a_ratio_that_grows_with_a_property_is_told_with_its_halves() -> None:
    table = found([0.5 + 0.05 * number for number in range(20)])
    rows = {row["property"]: row for row in table.iter_rows(named=True)}
    assert list(rows) == ["link.wifi.rate", "link.lte.rate", "rate ratio"]
    wifi = rows["link.wifi.rate"]
    assert (wifi["correlation"], wifi["unit"], wifi["networks"]) == (pytest.approx(1.0), "bps", 20)
    assert wifi["median"] == 10.5e6
    logs = [math.log(0.5 + 0.05 * number) for number in range(20)]
    assert wifi["ratio_below"] == pytest.approx(math.exp(sum(logs[:10]) / 10))
    assert wifi["ratio_above"] == pytest.approx(math.exp(sum(logs[10:]) / 10))
    assert wifi["p_holm"] < 0.001
    other = spearmanr([max(pair) / min(pair) for pair in zip(WIFI, LTE, strict=True)], logs)
    assert rows["rate ratio"]["correlation"] == pytest.approx(other.statistic)
    assert rows["rate ratio"]["p"] == pytest.approx(other.pvalue)


def test_what_has_nothing_to_do_with_the_properties_is_not_shown() -> None:
    shown = 0
    for seed in range(60):
        drawn = random.Random(seed)
        shown += (found([drawn.lognormvariate(0, 0.3) for _ in NETWORKS])["p_holm"] < 0.05).any()
    assert shown <= 8


def test_networks_without_a_ratio_are_left_out_and_few_have_no_row() -> None:
    assert set(found([0.5 + 0.01 * n if n < 15 else None for n in range(20)])["networks"]) == {15}
    assert found([0.5 + 0.01 * n if n < 7 else None for n in range(20)]).is_empty()
    assert found([1.0] * 20).is_empty()
