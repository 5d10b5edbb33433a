"""Curves: what is along, in colour, in panels; bands over seeds; references."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from polypath import plots
from polypath.plots import sweeps
from polypath.plots.curve import draw_curves
from polypath.results import MetricError
from polypath.results.axes import Axis
from polypath.results.stored import StoredSweep
from polypath.statistics.estimate import over_seeds
from polypath.statistics.points import table

BUFFER = Axis("defaults.receive_buffer", ("100 kB", "1 MB", "10 MB"), (1e5, 1e6, 1e7), "bytes")
SCHEDULER = Axis("defaults.scheduler", ("default", "roundrobin"))
LOSS = Axis("link.path0.loss", ("0 %", "1 %"), (0.0, 0.01), "fraction")
#: What decides whether a missing figure counts.
REST = {"finished": None, "requests": None}
LOSS_NAMES = Axis("loss", ("none", "bursts"))
SEED = Axis("seed", ("1", "2", "3"), (1.0, 2.0, 3.0))


def swept(*axes: Axis, thumb: float = 2e6, first: float = 1.0) -> StoredSweep:
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
    return StoredSweep("lab", axes, points, over_seeds(points, axes), [])


def drawn(*axes: Axis, thumb: float = 2e6, first: float = 1.0) -> Figure | None:
    return draw_curves(swept(*axes, thumb=thumb, first=first), "goodput_mbps")


def test_a_line_a_colour_and_a_panel_a_value() -> None:
    figure = drawn(SCHEDULER, BUFFER, LOSS, SEED)
    assert figure is not None
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["link.path0.loss 0 %", "link.path0.loss 1 %"]
    first = figure.axes[0]
    assert first.get_xscale() == "log"
    lines = {line.get_label(): line for line in first.lines}
    assert np.asarray(lines["default"].get_xdata()).tolist() == [0.1, 1.0, 10.0]
    # seeds 1, 2, 3 of a place have consecutive values: their mean is the middle one
    assert np.asarray(lines["default"].get_ydata()).tolist() == [2.0, 8.0, 14.0]
    assert np.asarray(lines["roundrobin"].get_ydata()).tolist() == [20.0, 26.0, 32.0]
    assert first.get_ylabel() == "goodput (Mbps)"
    assert figure.axes[0].get_xlabel() == "defaults.receive_buffer (MB)"


def test_panels_share_an_axis_that_holds_every_value() -> None:
    figure = drawn(LOSS, SCHEDULER, BUFFER, SEED)
    assert figure is not None
    highest = [max(np.max(np.asarray(line.get_ydata(), float)) for line in panel.lines) for panel in figure.axes]
    assert len(set(highest)) > 1
    for panel in figure.axes:
        bottom, top = panel.get_ylim()
        assert bottom == 0
        assert top > max(highest)


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


def test_numbers_of_a_logarithmic_axis_do_not_overlap() -> None:
    counts = (1, 2, 4, 6, 8, 10, 12, 14, 16, 20, 25, 30)
    figure = drawn(Axis("N", tuple(map(str, counts)), tuple(map(float, counts))))
    assert figure is not None
    told = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert told == ["1", "2", "4", "6", "8", "10", "12", "", "16", "20", "25", "30"]


def test_many_numbers_of_a_logarithmic_axis_are_numbers() -> None:
    counts = [2**power for power in range(14)]
    figure = drawn(Axis("N", tuple(map(str, counts)), tuple(map(float, counts))))
    assert figure is not None
    told = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert [text for text in told if text]
    assert all(text.replace(".", "").isdecimal() for text in told if text)


def test_runs_of_several_lines_that_did_not_finish_stand_apart() -> None:
    rows = [
        (
            {BUFFER.name: buffer, SCHEDULER.name: scheduler},
            [{"connection": "a", "requests": None, "finished": done, "completion_s": 2.0 if done else None}],
        )
        for buffer in BUFFER.labels
        for scheduler in SCHEDULER.labels
        for done in [buffer == "10 MB"]
    ]
    points = table([BUFFER, SCHEDULER], rows)
    figure = draw_curves(
        StoredSweep("lab", (BUFFER, SCHEDULER), points, over_seeds(points, (BUFFER, SCHEDULER)), []), "completion_s"
    )
    assert figure is not None
    crosses = [line for line in figure.axes[0].lines if line.get_marker() == "x"]
    assert len(crosses) == 4
    assert len({str(np.asarray(line.get_xydata())) for line in crosses}) == 4
    assert len({str(line.get_color()) for line in crosses}) == 2


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
    axes = [BUFFER, SEED]
    figure = draw_curves(StoredSweep("lab", axes, points, over_seeds(points, axes), []), "completion_s")
    assert figure is not None
    panel = figure.axes[0]
    curve, median, top = panel.lines
    assert np.asarray(curve.get_ydata()).tolist() == pytest.approx([2.0, np.nan, np.nan], nan_ok=True)
    assert (np.asarray(median.get_xdata()).item(), np.asarray(median.get_ydata()).item()) == (1.0, 2.0)
    assert np.asarray(top.get_xdata()).item() == 10.0
    assert [text.get_text() for text in panel.texts] == ["1 of 3 unfinished", "3 of 3 unfinished"]


def test_names_have_points_with_whiskers_and_never_a_line_or_a_band() -> None:
    figure = drawn(SCHEDULER, SEED, first=11.0)
    assert figure is not None
    (panel,) = figure.axes
    assert [label.get_text() for label in panel.get_xticklabels()] == ["default", "roundrobin"]
    (bars,) = panel.containers
    assert isinstance(bars, ErrorbarContainer)
    points, _, (whiskers,) = bars
    assert points is not None
    assert points.get_linestyle() == "None"
    assert np.asarray(points.get_ydata()).tolist() == [12.0, 15.0]
    half = 4.302653 * 1.0 / 3**0.5
    ends = [np.asarray(each)[:, 1].tolist() for each in whiskers.get_segments()]
    assert ends == [[pytest.approx(mean - half), pytest.approx(mean + half)] for mean in (12, 15)]
    assert not any(isinstance(each, PolyCollection) for each in panel.collections)
    # what the links carry is said at each name
    assert [np.asarray(line.get_xdata()).tolist() for line in panel.lines if line.get_linestyle() == "--"] == [
        [pytest.approx(place - 0.3), pytest.approx(place + 0.3)] for place in (0, 1)
    ]


def test_lines_of_a_colour_stand_side_by_side_at_a_name() -> None:
    figure = drawn(SCHEDULER, LOSS_NAMES)
    assert figure is not None
    places = [np.asarray(bars[0].get_xdata()).tolist() for bars in figure.axes[0].containers]
    assert places == [[pytest.approx(-0.15), pytest.approx(0.85)], [pytest.approx(0.15), pytest.approx(1.15)]]


def test_a_curve_goes_into_axes_that_are_there() -> None:
    axes = Figure().subplots()
    assert plots.curve(swept(SCHEDULER, BUFFER, SEED), axes) is axes
    assert axes.get_xlabel() == "defaults.receive_buffer (MB)"
    assert axes.get_legend() is not None
    with pytest.raises(MetricError, match="several panels"):
        plots.curve(swept(SCHEDULER, BUFFER, LOSS))
    with pytest.raises(MetricError, match="no measure 'goodput'; there is goodput_mbps"):
        plots.curve(swept(BUFFER), measure="goodput")
    with pytest.raises(MetricError, match="no axis"):
        plots.curve(swept(SEED))


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
    result = StoredSweep("lab", axes, points, over_seeds(points, axes), [])
    saved = sweeps.save_all(result, result.load, tmp_path)
    assert [path.name for path in saved] == ["curve-goodput.png", "curve-completion.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in saved)
    first = saved[0].with_suffix(".svg")
    for _ in range(2):
        assert sweeps.save_all(result, result.load, tmp_path, ["curve-goodput"], "svg") == [first]


@pytest.mark.parametrize("width", [3.3, 2.5])
def test_a_narrow_figure_leaves_the_panel_its_room(width: float) -> None:
    schedulers = Axis("application.fetch.client_stack.scheduler", ("default", "roundrobin", "blest", "redundant"))
    figure = draw_curves(swept(BUFFER, schedulers), "goodput_mbps", plots.Look(size=(width, 2.4)))
    assert figure is not None
    figure.canvas.draw()
    (legend,) = figure.legends
    box = legend.get_window_extent().transformed(figure.transFigure.inverted())
    assert box.width <= 1
    assert box.height <= 0.3
    assert legend.get_title().get_text() == "scheduler"
    assert figure.axes[0].get_position().width > 0.6
    assert figure.axes[0].get_position().height > 0.3
