"""Boxes of what the places of sweeps have."""

from dataclasses import dataclass, field

import polars as pl
import pytest
from matplotlib.axes import Axes

from polypath.plots.boxes import draw_benefits, draw_measure
from polypath.results.axes import Axis

PROTOCOL = Axis("protocol", ("quic", "mpquic"))
FIRST = Axis("first", ("a", "b"))
COUNT = 20


@dataclass
class Sweep:
    name: str
    axes: tuple[Axis, ...]
    points: pl.DataFrame
    statistics: pl.DataFrame = field(default_factory=pl.DataFrame)


def sweep(name: str = "lab/low", outlier: float = 40.0) -> Sweep:
    """Two paths of 10 Mbps, and of 20 together at every point but the last, which has `outlier`."""
    labels = tuple(map(str, range(COUNT)))
    rows = [
        {
            "protocol": protocol,
            "first": first,
            "point": label,
            "connection": "get",
            "transport": protocol,
            "goodput_mbps": 10.0 if protocol == "quic" else outlier if label == labels[-1] else 14.0 + number % 3,
            "interface": [first] if protocol == "quic" else ["a", "b"],
        }
        for protocol in PROTOCOL.labels
        for first in FIRST.labels
        for number, label in enumerate(labels)
    ]
    return Sweep(name, (PROTOCOL, FIRST, Axis("point", labels, tuple(map(float, labels)))), pl.DataFrame(rows))


def texts(panel: Axes) -> list[str]:
    return [text.get_text() for text in panel.texts if text.get_text()]


def test_what_lies_beyond_the_axis_is_counted() -> None:
    figure = draw_benefits([sweep(outlier=110.0)])
    assert figure is not None
    (panel,) = figure.axes
    low, high = panel.get_ylim()
    # benefits of 0.4 to 0.6, and one of 10
    assert 0.0 < low < 0.4
    assert 0.6 < high < 2.0
    assert "▲ 2 of 40\nup to 10" in texts(panel)
    assert "100% above 0" in texts(panel)


def test_nothing_is_counted_where_all_is_shown() -> None:
    figure = draw_benefits([sweep(outlier=16.0)])
    assert figure is not None
    assert not [text for text in texts(figure.axes[0]) if "▲" in text or "▼" in text]


def test_several_sweeps_have_a_column_each() -> None:
    figure = draw_benefits([sweep("lab/low"), sweep("lab/high")])
    assert figure is not None
    assert [panel.get_title() or panel.get_title(loc="left") for panel in figure.axes] == ["low", "high"]
    assert figure.get_suptitle() == "lab"
    assert figure.axes[0].get_ylabel() == "Multipath QUIC\naggregation benefit"


def test_there_is_no_figure_without_single_paths() -> None:
    alone = sweep()
    alone.points = alone.points.filter(pl.col("transport") == "mpquic")
    assert draw_benefits([alone]) is None


def test_a_measure_has_a_panel_for_each_label_and_boxes_for_the_rest() -> None:
    figure = draw_measure([sweep()], "goodput_mbps")
    assert figure is not None
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["quic", "mpquic"]
    assert [label.get_text() for label in figure.axes[1].get_xticklabels()] == ["a", "b"]
    assert figure.axes[0].get_ylabel() == "goodput (Mbps)"


def test_long_names_are_slanted() -> None:
    few = finishing({"default": [1.0, 2.0], "other": [1.0, 2.0]})
    many = finishing({f"scheduler {number}": [1.0, 2.0] for number in range(4)})
    turned = []
    for each in (few, many):
        figure = draw_measure([each], "completion_s")
        assert figure is not None
        turned.append({label.get_rotation() for label in figure.axes[0].get_xticklabels()})
    assert turned == [{0.0}, {30.0}]


@pytest.mark.parametrize("axes", [(PROTOCOL, FIRST), (FIRST,)])
def test_a_measure_needs_an_axis_to_put_together(axes: tuple[Axis, ...]) -> None:
    few = sweep()
    few.axes = axes
    assert draw_measure([few], "goodput_mbps") is None


def finishing(times: dict[str, list[float | None]], connection: str = "get") -> Sweep:
    """A transfer over each scheduler at places that are put together; None: it did not finish there."""
    axes = (Axis("scheduler", tuple(times)), Axis("place", tuple(map(str, range(12)))))
    rows = [
        {
            "scheduler": scheduler,
            "place": str(place),
            "connection": connection,
            "completion_s": time,
            "finished": time is not None,
        }
        for scheduler, own in times.items()
        for place, time in enumerate(own)
    ]
    return Sweep("lab", axes, pl.DataFrame(rows))


def test_runs_that_did_not_finish_lie_beyond_the_axis() -> None:
    slow: list[float | None] = [20.0 + place for place in range(12)]
    figure = draw_measure([finishing({"a": slow, "b": [1.0, 2.0, 3.0, 4.0, *[None] * 8]})], "completion_s")
    assert figure is not None
    (panel,) = figure.axes
    low, high = panel.get_ylim()
    assert low < 1.0
    assert 31.0 < high < 40.0
    assert texts(panel) == ["8 of 12\nunfinished"]
    first, second = (each.get_path().get_extents() for each in panel.patches)
    assert (first.y0, first.y1) == (22.75, 28.25)
    assert second.y0 == 3.75
    assert second.y1 > high


def test_a_box_of_which_nothing_finished_is_said_to_be_so() -> None:
    figure = draw_measure([finishing({"a": [float(place) for place in range(12)], "b": [None] * 12})], "completion_s")
    assert figure is not None
    assert texts(figure.axes[0]) == ["12 of 12\nunfinished"]


def test_connections_have_a_row_each() -> None:
    both = finishing({"a": [1.0] * 12, "b": [2.0] * 12})
    both.points = pl.concat([both.points, finishing({"a": [7.0] * 12, "b": [9.0] * 12}, "put").points])
    figure = draw_measure([both], "completion_s")
    assert figure is not None
    assert [panel.get_ylabel() for panel in figure.axes] == [
        "get\ncompletion time (s)",
        "put\ncompletion time (s)",
    ]
    assert [[box.get_path().get_extents().y0 for box in panel.patches] for panel in figure.axes] == [[1, 2], [7, 9]]
