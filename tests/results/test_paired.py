"""Paired comparisons, against scipy and figures worked out elsewhere."""

import math
import random
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from polypath.results.axes import Axis
from polypath.statistics import points
from polypath.statistics.paired import compare, holm, judged, least_p, over_pairs, pairs_needed

from ..slow import slow


def _synthetic(seed: int, count: int, shift: float) -> tuple[list[float], list[float]]:
    """Figures whose seeds differ far more than the values compared."""
    rng = np.random.Generator(np.random.PCG64(seed))
    base = rng.normal(20, 5, count)
    return list(base + rng.normal(shift, 1, count)), list(base)


@pytest.mark.parametrize("count", [6, 10, 13, 25])
def test_the_p_value_is_that_of_scipys_permutation_test(count: int) -> None:
    value, base = _synthetic(count, count, 0.6)
    found = compare(value, base)
    reference = stats.permutation_test(
        (value, base),
        lambda one, other, axis: np.mean(one - other, axis=axis),
        permutation_type="samples",
        n_resamples=100_000 if count > 13 else np.inf,
        rng=np.random.Generator(np.random.PCG64(2)),
    )
    assert found.test == "sign-flip permutation"
    assert found.p == pytest.approx(reference.pvalue, abs=0.01 if count > 13 else 1e-12)
    assert found.difference == pytest.approx(np.mean(value) - np.mean(base))


@pytest.mark.parametrize("count", [13, 14, 20, 40])
def test_differences_of_one_sign_have_the_least_p_that_there_is(count: int) -> None:
    value = [float(number) for number in range(2, count + 2)]
    assert compare(value, [1.0] * count).p == compare([1.0] * count, value).p == least_p(count)
    assert compare([*value, 3.0], [1.0] * count + [3.0]).p == least_p(count)
    many = judged([compare(value, [1.0] * count)] * 300)
    assert {each.verdict for each in many} == {"higher" if count >= pairs_needed(300) else "no difference shown"}


def test_the_p_value_tracks_the_paired_t_test_of_normal_figures() -> None:
    for seed in range(5):
        value, base = _synthetic(seed, 13, 0.5)
        found = compare(value, base)
        assert found.p == pytest.approx(stats.ttest_rel(value, base).pvalue, abs=0.05)


def test_pairs_show_what_means_hide() -> None:
    value, base = _synthetic(3, 10, 3.0)
    (found,) = judged([compare(value, base)])
    assert found.verdict == "higher"
    assert found.p == pytest.approx(least_p(10))
    assert stats.ttest_ind(value, base).pvalue > 0.1


def test_the_interval_is_scipys_at_the_expanded_level_and_the_same_each_time() -> None:
    value, base = _synthetic(1, 10, 1.0)
    found = compare(value, base)
    differences = np.array(value) - base
    tail = stats.norm.cdf(math.sqrt(10 / 9) * stats.t.ppf(0.025, 9))
    reference = stats.bootstrap(
        (differences,), np.mean, confidence_level=1 - 2 * tail, n_resamples=50_000, method="BCa",
        rng=np.random.Generator(np.random.PCG64(5)),
    ).confidence_interval  # fmt: skip
    width = reference.high - reference.low
    assert found == compare(value, base)
    assert found.method == "bootstrap"
    assert (found.low, found.high) == pytest.approx((reference.low, reference.high), abs=0.03 * width)
    assert min(differences) <= reference.low
    assert max(differences) >= reference.high


def test_five_pairs_take_students_t() -> None:
    value, base = _synthetic(1, 5, 1.0)
    found = compare(value, base)
    reference = stats.ttest_rel(value, base).confidence_interval()
    assert found.method == "student-t"
    assert (found.low, found.high) == pytest.approx((reference.low, reference.high))


def test_a_run_that_did_not_finish_is_longer_than_any() -> None:
    value = [4.0, None, 6.5, 7.0, 8.0, 9.5, 11.0, None]
    base = [1.0, 2.0, 4.5, 3.0, 6.0, 5.0, 7.0, None]
    (found,) = judged([compare(value, base)])
    # differences 3, inf, 2, 4, 2, 4.5, 4, 0
    assert (found.difference, found.method, found.test) == (3.5, "order statistics", "signed rank")
    assert (found.low, found.high) == (0.0, math.inf)
    assert found.p == pytest.approx(stats.wilcoxon([3.0, 100.0, 2.0, 4.0, 2.0, 4.5, 4.0]).pvalue)
    assert (found.value.unfinished, found.base.unfinished, found.verdict) == (2, 1, "higher")


def test_what_a_median_hides_is_not_said_to_go_its_way() -> None:
    # just over half of the runs finish a little sooner, the others never
    value = [*(5.0 - number / 100 for number in range(16)), *[None] * 15]
    base = [6.0] * 16 + [6.0 + number for number in range(15)]
    (found,) = judged([compare(value, base)])
    assert found.p == pytest.approx(stats.wilcoxon([-1 - n / 100 for n in range(16)] + [9.0] * 15).pvalue)
    assert found.p_holm is not None
    assert found.p_holm < 0.05
    assert (found.difference, found.verdict) == (-1.0, "differs both ways")


def test_a_median_of_no_difference_leaves_the_way_to_the_ranks() -> None:
    (found,) = judged([compare([1.0] * 7 + [None] * 6, [1.0] * 7 + [2.0] * 6)])
    assert (found.difference, found.p, found.verdict) == (0.0, 2**-5, "higher")


def test_order_statistics_cover_the_median_as_often_as_is_said() -> None:
    # 20 pairs: from the 6th to the 15th (Conover, "Practical Nonparametric Statistics", table A3)
    differences = [float(number) for number in range(1, 21)]
    found = compare([*differences[:-1], None], [0.0] * 20)
    assert (found.low, found.high) == (6.0, 15.0)


def test_five_pairs_bound_no_median() -> None:
    found = compare([1.0, 2.0, 3.0, 4.0, None], [0.0] * 5)
    assert (found.difference, found.low, found.high) == (3.0, -math.inf, math.inf)


@pytest.mark.parametrize(
    ("value", "base", "difference", "verdict"),
    [
        ([3.0, 3.0, 3.0], [2.0, 2.0, 2.0], 1.0, "deterministic"),
        ([2.0, 2.0, 2.0], [2.0, 2.0, 2.0], 0.0, "deterministic"),
        ([None] * 10, [2.0] * 10, math.inf, "deterministic"),
        ([2.0] * 10, [None] * 10, -math.inf, "deterministic"),
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 0.0, "equal in every pair"),
        ([None, None], [None, None], None, "none finished"),
        ([3.0], [1.0], 2.0, "one pair"),
    ],
)
def test_where_nothing_varies_there_is_neither_interval_nor_p(
    value: list[float | None], base: list[float | None], difference: float | None, verdict: str
) -> None:
    (found,) = judged([compare(value, base)])
    assert (found.difference, found.low, found.high, found.p, found.p_holm) == (difference, None, None, None, None)
    assert found.verdict == verdict


def test_a_difference_between_figures_that_are_constant_by_chance_is_tested() -> None:
    (found,) = judged([compare([1.0] * 6, [0.0] * 6, varies=True)])
    assert (found.value.method, found.difference, found.p, found.verdict) == ("constant", 1.0, 2**-5, "higher")
    (cut,) = judged([compare([None] * 6, [0.0] * 6, varies=True)])
    assert (cut.difference, cut.p, cut.verdict) == (math.inf, 2**-5, "higher")
    (alike,) = judged([compare([1.0] * 6, [1.0] * 6, varies=True)])
    assert (alike.p, alike.verdict) == (None, "equal in every pair")


@pytest.mark.parametrize("count", [6, 8, 20])
def test_differences_that_agree_but_for_rounding_are_one(count: int) -> None:
    draw = random.Random(count)
    for _ in range(50):
        base = [round(draw.uniform(30, 50), 6) for _ in range(count)]
        found = compare([each + 1.1 for each in base], base)
        assert found.difference == pytest.approx(1.1)
        assert (found.low, found.high) == (None, None)


def test_holms_correction() -> None:
    # the example of Holm's paper, section 3: sorted p-values times 4, 3, 2, 1, never falling
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_difference_that_many_comparisons_may_show_by_chance_is_not_shown() -> None:
    one = compare(*_synthetic(3, 6, 3.0))
    assert judged([one])[0].verdict == "higher"
    assert {each.verdict for each in judged([one] * 2)} == {"no difference shown"}
    assert pairs_needed(1) == 6
    assert pairs_needed(2) == 7
    assert pairs_needed(53) == 12


@pytest.mark.parametrize("tables", [60, slow(300)])
def test_false_alarms_are_as_rare_as_is_said(tables: int) -> None:
    """Of tables of five comparisons without a difference, 5 % at most show any (Wilson's bound of so many)."""
    rng = np.random.Generator(np.random.PCG64(11))
    alarms = 0
    for _ in range(tables):
        found = judged([compare(list(rng.lognormal(0, 1, 8)), list(rng.lognormal(0, 1, 8))) for _ in range(5)])
        alarms += any(each.verdict in ("higher", "lower") for each in found)
    assert alarms <= tables * 0.05 + 1.96 * math.sqrt(tables * 0.05 * 0.95)


def _points() -> tuple[pl.DataFrame, list[Axis]]:
    axes = [Axis("kind", ("a", "b", "c")), Axis("seed", ("1", "2", "3"), (1.0, 2.0, 3.0))]
    figures = {"a": (10.0, 20.0, 30.0), "b": (11.0, 22.0, 33.0), "c": (5.0, None, 7.0)}
    rows = [
        ({"kind": kind, "seed": str(seed)}, [{"connection": "x", "completion_s": time, "finished": time is not None}])
        for kind, own in figures.items()
        for seed, time in enumerate(own, start=1)
        if (kind, seed) != ("b", 3)
    ]
    return points.table(axes, rows), axes


def test_pairs_are_of_common_seeds() -> None:
    table, axes = _points()
    found = over_pairs(table, axes, "kind", "b", {"x": ["completion_s"]})
    assert found["kind"].to_list() == ["b", "a", "c"]
    assert found["pairs"].to_list() == [2, 2, 2]
    # the median of -6 and of a run that did not finish
    assert found["difference"].to_list() == [None, -1.5, math.inf]
    assert found.row(1, named=True)["base_mean"] == 16.5
    assert found.row(2, named=True)["unfinished"] == 1
    assert found.row(0, named=True)["verdict"] == ""


def test_a_row_names_the_place_of_the_other_axes_and_the_connection() -> None:
    axes = [
        Axis("rate", ("1", "2"), (1.0, 2.0)),
        Axis("kind", ("a", "b")),
        Axis("seed", ("1", "2", "3"), (1.0, 2.0, 3.0)),
    ]
    rows = [
        (
            {"rate": rate, "kind": kind, "seed": str(seed)},
            [{"connection": name, "completion_s": seed * scale, "finished": True} for name in ("x", "y")],
        )
        for rate, kind, scale in (("1", "a", 2.0), ("1", "b", 1.0), ("2", "a", 5.0), ("2", "b", 1.0))
        for seed in (1, 2, 3)
    ]
    found = over_pairs(points.table(axes, rows), axes, "kind", "b", {"x": ["completion_s"], "y": ["completion_s"]})
    told = found.filter(pl.col("kind") == "a").select("rate", "connection", "difference").rows()
    assert told == [("1", "x", 2.0), ("1", "y", 2.0), ("2", "x", 8.0), ("2", "y", 8.0)]


def _film(rates: dict[str, tuple[float | None, ...]]) -> tuple[pl.DataFrame, list[Axis]]:
    axes = [Axis("loss", tuple(rates)), Axis("seed", ("1", "2", "3"), (1.0, 2.0, 3.0))]
    rows = [
        ({"loss": loss, "seed": str(seed)}, [{"connection": "film", "application": "video", "video_rate_mbps": rate}])
        for loss, own in rates.items()
        for seed, rate in enumerate(own, start=1)
    ]
    return points.table(axes, rows), axes


def test_a_video_that_was_never_shown_keeps_its_pair_and_has_less_than_any_rate() -> None:
    table, axes = _film({"low": (3.0, 4.0, 5.0), "high": (None, 1.0, None)})
    found = over_pairs(table, axes, "loss", "low", {"film": ["video_rate_mbps"]})
    assert found["pairs"].to_list() == [3, 3]
    assert found["unfinished"].to_list() == [0, 2]
    assert found["difference"].to_list() == [None, -math.inf]


def test_what_the_interval_does_not_show_is_not_shown() -> None:
    """Test and interval are of two methods, which may disagree at the edge."""
    found = replace(compare([2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [1.0] * 6), low=-0.01, high=9.0)
    assert judged([found])[0].verdict == "no difference shown"
    assert judged([replace(found, low=0.0)])[0].verdict == "higher"
