"""Estimates over seeds, against figures worked out elsewhere."""

import math

import pytest

from polypath.results import points, statistics
from polypath.results.points import Axis
from polypath.results.statistics import BOOTSTRAP_FROM, estimate


def test_few_values_take_students_t() -> None:
    found = estimate([1.0, 2.0, 3.0, 4.0, 10.0])
    deviation = math.sqrt(sum((value - 4) ** 2 for value in (1, 2, 3, 4, 10)) / 4)
    half = 2.776445 * deviation / math.sqrt(5)
    assert (found.n, found.mean, found.median, found.method) == (5, 4.0, 3.0, "student-t")
    assert found.low == pytest.approx(4 - half, rel=1e-6)
    assert found.high == pytest.approx(4 + half, rel=1e-6)
    assert found.half_width == pytest.approx(half, rel=1e-6)


def test_many_values_take_the_bootstrap_the_same_each_time() -> None:
    values = [float(number * number % 37) for number in range(BOOTSTRAP_FROM)]
    found = estimate(values)
    assert found.method == "bootstrap"
    assert found == estimate(values)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.mean < found.high
    deviation = math.sqrt(sum((value - found.mean) ** 2 for value in values) / (len(values) - 1))
    assert found.high - found.low == pytest.approx(2 * 1.96 * deviation / math.sqrt(len(values)), rel=0.15)


@pytest.mark.parametrize(("count", "method"), [(3, "student-t"), (30, "bootstrap")])
def test_equal_values_have_an_interval_without_width(count: int, method: str) -> None:
    found = estimate([2.5] * count)
    assert (found.low, found.high, found.method) == (2.5, 2.5, method)


def test_one_value_has_no_interval() -> None:
    found = estimate([2.0])
    assert (found.mean, found.low, found.high, found.half_width, found.method) == (2.0, None, None, None, "none")


@pytest.mark.parametrize("values", [[], [math.nan], [1.0, math.inf]])
def test_what_has_no_estimate(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        estimate(values)


def test_the_interval_covers_the_mean_as_often_as_it_says() -> None:
    """95 % of 400 samples of 5 normal values, within three standard errors of that share."""
    import random

    draw = random.Random(1)
    hits = 0
    for _ in range(400):
        found = estimate([draw.gauss(10, 3) for _ in range(5)])
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 10 <= found.high
    assert hits / 400 == pytest.approx(0.95, abs=3 * math.sqrt(0.95 * 0.05 / 400))


def test_seeds_are_put_together_and_nothing_else() -> None:
    axes = [Axis("size", ("1 B", "2 B"), (1.0, 2.0), "bytes"), Axis("seed", ("1", "2"), (1.0, 2.0))]
    row = {"connection": "a", "goodput_mbps": 1.0, "completion_s": None}
    found = [
        ({"size": size, "seed": seed}, [{**row, "goodput_mbps": rate}])
        for size, seed, rate in (("2 B", "1", 4.0), ("2 B", "2", 6.0), ("1 B", "1", 1.0), ("1 B", "2", 3.0))
    ]
    table = statistics.over_seeds(points.table(axes, found), axes)
    assert table.filter(measure="goodput_mbps").select("size", "size_bytes", "n", "mean").rows() == [
        ("2 B", 2.0, 2, 5.0),
        ("1 B", 1.0, 2, 2.0),
    ]
    assert table.filter(measure="completion_s").is_empty()
