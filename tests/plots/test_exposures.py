"""What the most exposed path sees over goodput, over the points of a sweep."""

from dataclasses import replace
from itertools import product

import polars as pl
import pytest

from polypath.plots.exposures import draw_exposures, drawn_axes, of_run
from polypath.results import Recording
from polypath.results.axes import Axis

SCHEDULER = Axis("scheduler", ("default", "equal"))
PATHS = Axis("paths", ("2", "3"), (2.0, 3.0))
SEED = Axis("seed", ("1", "2"), (1.0, 2.0))


def half(recording: Recording) -> Recording:
    """Without the reinjection: each subflow carried 1400 of 2800 bytes."""
    segments = recording.table("segments").filter(pl.col("kind") != "reinjection")
    return replace(recording, tables={**recording.tables, "segments": segments})


def test_a_run_is_its_goodput_and_its_most_exposed_path(recording: Recording) -> None:
    assert of_run(recording) == pytest.approx((12.0, 1.0))
    assert of_run(half(recording)) == pytest.approx((12.0, 0.5))
    assert of_run(replace(recording, tables={})) is None


def test_a_curve_a_label_and_means_over_seeds(recording: Recording) -> None:
    places: dict[tuple[str, ...], Recording] = {
        (scheduler, paths, seed): half(recording) if (scheduler, seed) == ("equal", "2") else recording
        for scheduler in SCHEDULER.labels
        for paths in PATHS.labels
        for seed in SEED.labels
    }
    figure = draw_exposures("lab", (SCHEDULER, PATHS, SEED), places)
    assert figure is not None
    (panel,) = figure.axes
    assert panel.get_legend_handles_labels()[1] == ["default", "equal"]
    assert [list(line.get_ydata()) for line in panel.lines] == [[100, 100], [75, 75]]  # type: ignore[arg-type]
    assert [text.get_text() for text in panel.texts] == ["2, 3", "2, 3"]  # points that lie on each other
    assert panel.get_xlabel() == "goodput (Mbps); numbers: paths"


@pytest.mark.parametrize(
    ("axes", "drawn"),
    [
        ((SCHEDULER, PATHS, SEED), True),
        ((PATHS,), True),
        ((SEED,), False),
        ((SCHEDULER, PATHS, Axis("a", ("1", "2"))), False),
        ((Axis("a", tuple("123456789")),), False),
    ],
)
def test_up_to_two_axes_are_drawn(axes: tuple[Axis, ...], drawn: bool) -> None:
    assert drawn_axes(axes) == (list(axes) if drawn else [])


def test_without_segments_there_is_no_figure(recording: Recording) -> None:
    bare = replace(recording, tables={})
    assert draw_exposures("lab", (SCHEDULER,), {("default",): bare, ("equal",): bare}) is None


def test_points_of_slow_paths_have_their_own_labels(recording: Recording) -> None:
    slow = [
        recording.table("connection_ends").with_columns(pl.col("server_received_bytes") // part) for part in (20, 10)
    ]
    places: dict[tuple[str, ...], Recording] = {
        ("default", label): replace(recording, tables={**recording.tables, "connection_ends": ends})
        for label, ends in zip(PATHS.labels, slow, strict=True)
    }
    figure = draw_exposures("lab", (Axis("scheduler", ("default", "equal")), PATHS), places)
    assert figure is not None
    assert [text.get_text() for text in figure.axes[0].texts] == list(PATHS.labels)


def test_a_run_of_numbers_at_one_place_is_written_as_its_ends(recording: Recording) -> None:
    axes = (Axis("scheduler", ("default", "equal")), Axis("paths", ("2", "3", "4")))
    figure = draw_exposures("lab", axes, dict.fromkeys(product(*(axis.labels for axis in axes)), recording))
    assert figure is not None
    assert [text.get_text() for text in figure.axes[0].texts] == ["2\N{EN DASH}4"]
