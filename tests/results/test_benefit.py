"""The experimental aggregation benefit over the places of a sweep."""

from collections.abc import Sequence

import polars as pl
import pytest

from polypath.results.axes import SEED, Axis
from polypath.results.metrics import MetricError
from polypath.statistics.benefit import Benefit, benefit, of_sweep

PROTOCOL = Axis("protocol", ("quic", "mpquic"))
FIRST = Axis("first", ("a", "b"))
POINT = Axis("point", ("0", "1"), (0.0, 1.0))
AXES = (PROTOCOL, FIRST, POINT)
#: Goodputs in Mbps of each transport at each first path and point.
GOODPUTS = {
    ("quic", "a", "0"): 10.0,
    ("quic", "b", "0"): 30.0,
    ("mpquic", "a", "0"): 40.0,
    ("mpquic", "b", "0"): 35.0,
    ("quic", "a", "1"): 20.0,
    ("quic", "b", "1"): 5.0,
    ("mpquic", "a", "1"): 10.0,
    ("mpquic", "b", "1"): 30.0,
}


def table(goodputs: dict[tuple[str, str, str], float], **changed: object) -> pl.DataFrame:
    rows = [
        {
            "protocol": protocol,
            "first": first,
            "point": point,
            "seed": "1",
            "connection": "get",
            "transport": protocol,
            "goodput_mbps": value,
            "interface": [f"eth-{first}"] if protocol == "quic" else ["eth-a", "eth-b"],
            **changed,
        }
        for (protocol, first, point), value in goodputs.items()
    ]
    return pl.DataFrame(rows)


@pytest.mark.parametrize(
    ("goodput", "singles", "value"),
    [
        (40, (10, 30), 1.0),
        (30, (10, 30), 0.0),
        (35, (30, 10), 0.5),
        (15, (10, 30), -0.5),
        (0, (10, 30), -1.0),
        (60, (10, 20, 30), 1.0),
    ],
)
def test_a_benefit_goes_from_nothing_over_the_best_path_to_the_sum(
    goodput: float, singles: Sequence[float], value: float
) -> None:
    assert benefit(goodput, singles) == pytest.approx(value)


@pytest.mark.parametrize("singles", [(), (10,), (10, 0)])
def test_there_is_none_over_one_path(singles: Sequence[float]) -> None:
    with pytest.raises(MetricError, match="two single paths"):
        benefit(10, singles)


def test_each_place_stands_beside_its_own_single_paths() -> None:
    assert of_sweep(table(GOODPUTS), AXES) == [
        Benefit("mpquic", False, 1.0),
        Benefit("mpquic", True, 0.5),
        Benefit("mpquic", True, -0.5),
        Benefit("mpquic", False, 2.0),
    ]


def test_a_place_without_one_of_its_single_paths_is_left_out() -> None:
    fewer = {place: value for place, value in GOODPUTS.items() if place != ("quic", "a", "0")}
    assert [each.value for each in of_sweep(table(fewer), AXES)] == [-0.5, 2.0]


def test_seeds_are_places_of_their_own() -> None:
    seeds = Axis(SEED, ("1", "2"), (1.0, 2.0))
    both = pl.concat([table(GOODPUTS), table({key: 2 * value for key, value in GOODPUTS.items()}, seed="2")])
    once = [each.value for each in of_sweep(table(GOODPUTS), AXES)]
    assert [each.value for each in of_sweep(both, (*AXES, seeds))] == once + once


@pytest.mark.parametrize("axes", [(PROTOCOL, POINT), (FIRST, POINT), (POINT,)])
def test_without_an_axis_of_paths_or_of_transports_there_is_none(axes: tuple[Axis, ...]) -> None:
    assert of_sweep(table(GOODPUTS), axes) == []
