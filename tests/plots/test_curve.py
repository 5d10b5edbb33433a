"""Curves: what is along, in colour, in panels; bands over seeds; references."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from polypath.plots.curve import draw, save_curves
from polypath.results.points import Axis, table
from polypath.results.statistics import over_seeds

BUFFER = Axis("defaults.receive_buffer", ("100 kB", "1 MB", "10 MB"), (1e5, 1e6, 1e7), "bytes")
SCHEDULER = Axis("defaults.scheduler", ("default", "roundrobin"))
LOSS = Axis("link.path0.loss", ("0 %", "1 %"), (0.0, 0.01), "fraction")
#: What decides whether a missing figure counts.
REST = {"finished": None, "requests": None}
SEED = Axis("seed", ("1", "2", "3"), (1.0, 2.0, 3.0))


def drawn(*axes: Axis, thumb: float = 2e6, first: float = 1.0) -> Figure | None:
    rows = []
    places: list[dict[str, str]] = [{}]
    for axis in axes:
        places = [{**place, axis.name: label} for place in places for label in axis.labels]
    for number, place in enumerate(places):
        row = {
            **REST,
            "connection": "iperf",
            "goodput_mbps": first + number,
            "retransmitted_bytes": 0,
            "links_mbps": 30.0,
            "rule_of_thumb_bytes": thumb,
        }
        rows.append((place, [row]))
    points = table(axes, rows)
    return draw("lab", "goodput_mbps", points, over_seeds(points, axes), axes)


def test_a_line_a_colour_and_a_panel_a_value() -> None:
    figure = drawn(SCHEDULER, BUFFER, LOSS, SEED)
    assert figure is not None
    assert [panel.get_title() for panel in figure.axes] == ["link.path0.loss 0 %", "link.path0.loss 1 %"]
    first = figure.axes[0]
    assert first.get_xscale() == "log"
    lines = {line.get_label(): line for line in first.lines}
    assert np.asarray(lines["default"].get_xdata()).tolist() == [0.1, 1.0, 10.0]
    # seeds 1, 2, 3 of a place have consecutive values: their mean is the middle one
    assert np.asarray(lines["default"].get_ydata()).tolist() == [2.0, 8.0, 14.0]
    assert np.asarray(lines["roundrobin"].get_ydata()).tolist() == [20.0, 26.0, 32.0]
    assert first.get_ylabel() == "goodput (Mbps)"
    assert figure.axes[0].get_xlabel() == "defaults.receive_buffer (MB)"


def test_the_band_is_the_interval() -> None:
    figure = drawn(BUFFER, SEED, first=11.0)
    assert figure is not None
    (band,) = figure.axes[0].collections
    heights = np.asarray(band.get_paths()[0].vertices)[:, 1]
    half = 4.302653 * 1.0 / 3**0.5
    assert heights.min() == pytest.approx(12 - half, abs=1e-4)
    assert heights.max() == pytest.approx(18 + half, abs=1e-4)


def test_without_seeds_there_is_no_band() -> None:
    figure = drawn(BUFFER)
    assert figure is not None
    assert not figure.axes[0].collections


def test_references_are_drawn_once() -> None:
    figure = drawn(BUFFER, SCHEDULER)
    assert figure is not None
    labels = [str(line.get_label()) for line in figure.axes[0].lines]
    assert labels == ["default", "roundrobin", "the links together", "rule of thumb, 2 MB"]
    thumb = figure.axes[0].lines[-1]
    assert np.asarray(thumb.get_xdata()).tolist() == [2.0, 2.0]


def test_both_buffers_together_have_the_rule_too() -> None:
    figure = drawn(Axis("defaults.receive_buffer, defaults.send_buffer", ("1 MB", "4 MB"), (1e6, 4e6), "bytes"))
    assert figure is not None
    assert figure.axes[0].lines[-1].get_label() == "rule of thumb, 2 MB"


def test_a_rule_far_beyond_the_axis_is_named_but_does_not_stretch_it() -> None:
    figure = drawn(BUFFER, thumb=571e6)
    assert figure is not None
    assert figure.axes[0].lines[-1].get_label() == "rule of thumb, 571 MB"
    assert figure.axes[0].get_xlim()[1] < 20


def test_what_did_not_finish_is_marked_and_leaves_a_gap() -> None:
    rows = []
    for label in BUFFER.labels:
        for seed in SEED.labels:
            stuck = label == "10 MB" or (label == "1 MB" and seed == "3")
            row = {"connection": "a", "requests": None, "finished": not stuck, "completion_s": None if stuck else 2.0}
            rows.append(({BUFFER.name: label, SEED.name: seed}, [row]))
    points = table([BUFFER, SEED], rows)
    figure = draw("lab", "completion_s", points, over_seeds(points, [BUFFER, SEED]), [BUFFER, SEED])
    assert figure is not None
    panel = figure.axes[0]
    curve, median, top = panel.lines
    assert np.asarray(curve.get_ydata()).tolist() == pytest.approx([2.0, np.nan, np.nan], nan_ok=True)
    assert (np.asarray(median.get_xdata()).item(), np.asarray(median.get_ydata()).item()) == (1.0, 2.0)
    assert np.asarray(top.get_xdata()).item() == 10.0
    assert [text.get_text() for text in panel.texts] == ["1 of 3 unfinished", "3 of 3 unfinished"]


def test_words_are_an_axis_too() -> None:
    figure = drawn(SCHEDULER)
    assert figure is not None
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["default", "roundrobin"]


def test_seeds_alone_are_no_curve() -> None:
    assert drawn(SEED) is None


def test_files_by_measure(tmp_path: Path) -> None:
    axes = [BUFFER]
    rows = [
        (
            {BUFFER.name: label},
            [{"connection": "a", "goodput_mbps": 2.0, "completion_s": 1.0, "reinjected_bytes": 0, **REST}],
        )
        for label in BUFFER.labels
    ]
    points = table(axes, rows)
    saved = save_curves("lab", points, over_seeds(points, axes), axes, tmp_path)
    assert [path.name for path in saved] == ["curve-goodput.png", "curve-completion.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in saved)
