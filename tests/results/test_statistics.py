"""Estimates over seeds, against figures worked out elsewhere."""

import math

import pytest

from polypath.measures import MEASURES
from polypath.results.axes import Axis
from polypath.statistics import estimate as statistics
from polypath.statistics import points
from polypath.statistics.estimate import BOOTSTRAP_FROM, estimate


def test_few_values_take_students_t() -> None:
    found = estimate([11.0, 12.0, 13.0, 14.0, 20.0])
    deviation = math.sqrt(sum((value - 4) ** 2 for value in (1, 2, 3, 4, 10)) / 4)
    half = 2.776445 * deviation / math.sqrt(5)
    assert (found.n, found.mean, found.median, found.method) == (5, 14.0, 13.0, "student-t")
    assert found.low == pytest.approx(14 - half, rel=1e-6)
    assert found.high == pytest.approx(14 + half, rel=1e-6)
    assert found.half_width == pytest.approx(half, rel=1e-6)


def test_many_values_take_the_bootstrap_the_same_each_time() -> None:
    values = [float(number * number % 37) for number in range(BOOTSTRAP_FROM)]
    found = estimate(values)
    assert found.method == "bootstrap"
    assert found == estimate(values)
    assert found.low is not None
    assert found.high is not None
    assert found.mean is not None
    assert found.low < found.mean < found.high
    deviation = math.sqrt(sum((value - found.mean) ** 2 for value in values) / (len(values) - 1))
    assert found.high - found.low == pytest.approx(2 * 1.96 * deviation / math.sqrt(len(values)), rel=0.15)


@pytest.mark.parametrize("count", [BOOTSTRAP_FROM, 60])
def test_the_bootstrap_of_what_is_normal_is_students_interval(count: int) -> None:
    """Of the quantiles of a normal distribution, whose resamples have nothing else to tell."""
    from scipy.stats import norm, t

    values = [10 + float(norm.ppf((number + 0.5) / count)) for number in range(count)]
    found = statistics.bootstrap_interval(values)
    deviation = math.sqrt(sum((value - 10) ** 2 for value in values) / (count - 1))
    half = float(t.ppf(0.975, count - 1)) * deviation / math.sqrt(count)
    assert found == pytest.approx((10 - half, 10 + half), abs=0.05 * half)


@pytest.mark.parametrize("count", [2, 3, 30])
@pytest.mark.parametrize("value", [0.0, 0.1])
def test_equal_values_have_no_interval(count: int, value: float) -> None:
    found = estimate([value] * count)
    assert (found.mean, found.low, found.high, found.method) == (value, None, None, "deterministic")


@pytest.mark.parametrize("values", [[0.0, 0.0, 1.0], [1.0, 2.0, 9.0], [0.001, 50.0, 0.002, 0.001]])
def test_an_interval_of_what_cannot_be_negative_is_not(values: list[float]) -> None:
    found = estimate(values)
    assert found.method == "student-t of the logarithm"
    assert found.low is not None
    assert found.high is not None
    assert found.mean is not None
    assert 0 < found.low < found.mean < found.high
    assert found.low * found.high == pytest.approx(found.mean**2)


def test_an_interval_of_two_values_ends_at_0() -> None:
    found = estimate([0.0, 2.0])
    assert (found.low, found.method) == (0.0, "student-t")
    assert found.high == pytest.approx(1 + 12.7062, rel=1e-5)


def test_runs_that_did_not_finish_leave_no_mean() -> None:
    found = estimate([1.0, 2.0, 3.0], unfinished=2)
    assert (found.n, found.unfinished, found.mean, found.median, found.low, found.method) == (
        5,
        2,
        None,
        3.0,
        None,
        "none",
    )
    assert estimate([1.0, 2.0], unfinished=2).median is None
    assert estimate([], unfinished=9).n == 9


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
    row = {"connection": "a", "goodput_mbps": 1.0, "completion_s": None, "finished": None}
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


def test_what_did_not_finish_stands_in_the_table() -> None:
    axes = [Axis("seed", ("1", "2", "3"), (1.0, 2.0, 3.0))]
    done = {"connection": "a", "finished": True, "completion_s": 2.0, "requests": 5, "unanswered": 0}
    times = {"delay_median_s": 0.1, "delay_p95_s": 0.2}
    stuck = {"connection": "a", "finished": False, "completion_s": None, "requests": 3, "unanswered": 2}
    found = [({"seed": "1"}, [done | times]), ({"seed": "2"}, [done | times]), ({"seed": "3"}, [stuck])]
    table = statistics.over_seeds(points.table(axes, found), axes)
    columns = ("n", "unfinished", "mean", "median")
    assert table.filter(measure="completion_s").select(columns).row(0) == (3, 1, None, 2.0)
    assert table.filter(measure="delay_median_s").select(columns).row(0) == (3, 1, None, 0.1)
    assert table.filter(measure="unanswered").select(columns).row(0) == (3, 0, pytest.approx(2 / 3), 0.0)


def test_what_differs_by_rounding_is_one_value() -> None:
    sums = [0.1 + 0.2, 0.3, 0.15 + 0.15]
    assert len(set(sums)) > 1
    assert estimate(sums).method == "deterministic"


@pytest.mark.parametrize(("rates", "method"), [((8.0, 8.5, 9.0), "constant"), ((8.0, 8.0, 8.0), "deterministic")])
def test_one_value_of_runs_that_differ_otherwise_is_no_certainty(rates: tuple[float, ...], method: str) -> None:
    axes = [Axis("seed", ("1", "2", "3"), (1.0, 2.0, 3.0))]
    row = {"connection": "a", "requests": 5, "unanswered": 0, "finished": None}
    found = [({"seed": str(seed)}, [row | {"goodput_mbps": rate}]) for seed, rate in enumerate(rates, 1)]
    table = statistics.over_seeds(points.table(axes, found), axes)
    assert table.filter(measure="unanswered").select("method", "mean", "low").row(0) == (method, 0.0, None)


@pytest.mark.parametrize(
    ("application", "figures", "median"),
    [
        ("video", {"video_startup_s": 0.5, "video_stalled_s": 0.0}, "slower"),
        ("video", {"video_rate_mbps": 2.0}, "faster"),
        ("page", {"first_object_s": 0.2, "page_load_s": 0.9}, "slower"),
    ],
)
def test_a_video_that_never_began_and_a_page_of_which_nothing_came_are_unfinished(
    application: str, figures: dict[str, float], median: str
) -> None:
    axes = [Axis("seed", ("1", "2", "3"), (1.0, 2.0, 3.0))]
    row = {"connection": "a", "application": application}
    more = {name: figure + 1 for name, figure in figures.items()}
    found = [({"seed": str(seed)}, [row | own]) for seed, own in enumerate((figures, {}, more), start=1)]
    table = statistics.over_seeds(points.table(axes, found), axes, {name: MEASURES[name] for name in figures})
    middle = {"slower": more, "faster": figures}[median]
    assert dict(table.select("measure", "median").rows()) == middle
    assert set(table.select("n", "unfinished", "mean").rows()) == {(3, 1, None)}


def test_what_is_neither_video_nor_page_has_none_of_their_figures() -> None:
    axes = [Axis("seed", ("1",), (1.0,))]
    found = points.table(axes, [({"seed": "1"}, [{"connection": "a", "application": "bulk", "goodput_mbps": 1.0}])])
    assert statistics.over_seeds(found, axes)["measure"].to_list() == ["goodput_mbps"]
