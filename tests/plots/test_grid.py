"""The grid of small panels: one a place, whole axes of names only."""

from dataclasses import replace

import numpy as np
import pytest

from polypath.plots.grid import draw_grid, drawn_axes
from polypath.results import Recording
from polypath.results.axes import Axis

CONGESTION = Axis("defaults.congestion", ("lia", "olia"))
MANAGER = Axis("defaults.path_manager", ("default", "fullmesh"))
SCHEDULER = Axis("defaults.scheduler", ("default", "redundant", "roundrobin"))
BUFFER = Axis("defaults.receive_buffer", ("1 MB", "2 MB"), (1e6, 2e6), "bytes")
SEED = Axis("seed", ("1", "2"), (1.0, 2.0))
ONE = Axis("defaults.mtu", ("1500",))


@pytest.mark.parametrize(
    ("axes", "drawn"),
    [
        ((CONGESTION, MANAGER), (CONGESTION, MANAGER)),
        ((CONGESTION, ONE, SEED, MANAGER), (CONGESTION, MANAGER)),
        ((CONGESTION,), ()),
        ((CONGESTION, BUFFER), ()),
        ((SEED, BUFFER), ()),
    ],
)
def test_axes_of_names_are_drawn(axes: tuple[Axis, ...], drawn: tuple[Axis, ...]) -> None:
    assert drawn_axes(axes) == list(drawn)


def nothing(recording: Recording) -> Recording:
    return replace(recording, tables={})


def test_a_row_a_value_of_the_first_axis_and_a_column_a_combination(recording: Recording) -> None:
    place = ("olia", "fullmesh", "redundant")
    first, last = ("lia", "default", "default"), ("lia", "fullmesh", "roundrobin")
    figure = draw_grid("lab", (CONGESTION, MANAGER, SCHEDULER), {place: recording, first: recording, last: recording})
    assert figure is not None
    # of the six columns three have results
    assert len(figure.axes) == 2 * 3
    assert [panel.get_title() for panel in figure.axes[:3]] == [
        "default\ndefault",
        "fullmesh\nredundant",
        "fullmesh\nroundrobin",
    ]
    assert [figure.axes[number].get_ylabel() for number in (0, 3)] == ["lia", "olia"]
    filled = [number for number, panel in enumerate(figure.axes) if panel.collections]
    assert filled == [0, 2, 4]
    areas = [np.asarray(area.get_paths()[0].vertices) for area in figure.axes[4].collections]
    # one stands on the other, until the end of the run
    assert [area[:, 1].max() for area in areas] == [pytest.approx(each) for each in (16.0, 16.004, 18.004)]
    assert {area[:, 0].max() for area in areas} == {recording.metadata.end_ns / 1e9}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["iperf", "msg", "cross"]
    assert [text.get_text() for text in figure.axes[1].texts] == ["no result"]


def test_what_carried_nothing_is_left_out_and_named(recording: Recording) -> None:
    places: dict[tuple[str, ...], Recording] = {
        (row, column): recording if column == "default" else nothing(recording)
        for row in CONGESTION.labels
        for column in MANAGER.labels
    }
    figure = draw_grid("lab", (CONGESTION, MANAGER), places)
    assert figure is not None
    assert [panel.get_title() for panel in figure.axes] == ["default", ""]
    assert figure.get_supxlabel() == "nothing carried, not drawn: fullmesh"


def test_there_is_none_of_numbers(recording: Recording) -> None:
    places: dict[tuple[str, ...], Recording] = {("lia", "default"): recording}
    assert draw_grid("lab", (CONGESTION, BUFFER), places) is None
