"""The grid of small panels: one a place, whole axes of names only."""

from pathlib import Path

import numpy as np
import pytest

from polypath.plots.grid import draw, drawn_axes, save_grid
from polypath.results import Recording
from polypath.results.points import Axis

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


def test_a_row_a_value_of_the_first_axis_and_a_column_a_combination(recording: Recording) -> None:
    place = ("olia", "fullmesh", "redundant")
    figure = draw("lab", (CONGESTION, MANAGER, SCHEDULER), {place: recording})
    assert figure is not None
    assert len(figure.axes) == 2 * 6
    assert [panel.get_title() for panel in figure.axes[:2]] == ["default\ndefault", "default\nredundant"]
    assert [figure.axes[number].get_ylabel() for number in (0, 6)] == ["lia", "olia"]
    filled = [number for number, panel in enumerate(figure.axes) if panel.collections]
    assert filled == [6 + 4]
    iperf = figure.axes[10].collections[0]
    heights = np.asarray(iperf.get_paths()[0].vertices)[:, 1]
    assert heights.max() == pytest.approx(16.0)
    assert [text.get_text() for text in figure.axes[0].texts] == ["no result"]


def test_it_is_saved_where_there_is_one(recording: Recording, tmp_path: Path) -> None:
    places: dict[tuple[str, ...], Recording] = {("lia", "default"): recording}
    path = save_grid("lab", (CONGESTION, MANAGER), places, tmp_path)
    assert path is not None
    assert path.read_bytes().startswith(b"\x89PNG")
    assert save_grid("lab", (CONGESTION, BUFFER), places, tmp_path) is None
