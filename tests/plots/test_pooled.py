"""Distributions of delays at the places of a sweep, all seeds together."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from polypath.plots.pooled import draw_completions, draw_delays, drawn_axes
from polypath.plots.style import Look
from polypath.results import Recording, metrics
from polypath.results.axes import Axis

SCHEDULER = Axis("defaults.scheduler", ("default", "redundant"))
SEED = Axis("seed", ("1", "2"), (1.0, 2.0))


def numbers(data: object) -> Any:
    return np.asarray(data).tolist()


def slower(recording: Recording, factor: int) -> Recording:
    requests = recording.table("requests").with_columns(pl.col("delay_ns") * factor)
    return replace(recording, tables={**recording.tables, "requests": requests})


def test_a_curve_a_place_of_the_requests_of_all_seeds(recording: Recording) -> None:
    places: dict[tuple[str, ...], Recording] = {
        (name, seed): slower(recording, factor) for factor, name in enumerate(SCHEDULER.labels, 1) for seed in "12"
    }
    figure = draw_delays("phone", (SCHEDULER, SEED), places)
    assert figure is not None
    asking = [of for of in metrics.connections(recording) if metrics.delays(recording, of)]
    assert len(figure.axes) == len(asking)
    known = metrics.Delays.of(2 * metrics.delays(recording, asking[0]))
    panel = figure.axes[0]
    assert panel.get_legend_handles_labels()[1] == ["default", "redundant"]
    first, second = panel.lines
    assert numbers(first.get_xdata())[1:] == pytest.approx([delay / 1e6 for delay in known.answered])
    assert numbers(first.get_ydata())[-1] == pytest.approx(len(known.answered) / known.sent)
    assert numbers(second.get_xdata()) == pytest.approx([2 * value for value in numbers(first.get_xdata())])
    assert panel.get_title(loc="right") == f"{known.sent} requests each, of 2 seeds"
    assert (figure.get_suptitle(), panel.get_xlabel()) == ("phone", "delay (ms)")


def test_equal_curves_are_one_curve(recording: Recording) -> None:
    axis = Axis("defaults.scheduler", ("default", "blest", "redundant"))
    places: dict[tuple[str, ...], Recording] = {
        (name,): slower(recording, 1 + (name == "redundant")) for name in axis.labels
    }
    figure = draw_delays("phone", (axis,), places)
    assert figure is not None
    assert figure.axes[0].get_legend_handles_labels()[1] == ["default = blest", "redundant"]


@pytest.mark.parametrize(
    ("axes", "drawn"),
    [
        ((SCHEDULER, SEED), True),
        ((SEED,), False),
        ((Axis("a", tuple("12345")), Axis("b", ("1", "2"))), False),
        ((Axis("a", tuple("1234")), Axis("b", ("1", "2"))), True),
    ],
)
def test_curves_are_told_apart(axes: tuple[Axis, ...], drawn: bool) -> None:
    assert drawn_axes(axes) == (list(axes) if drawn else [])


def test_networks_that_were_drawn_are_pooled_with_the_seeds() -> None:
    drawn = Axis("network", tuple(f"n{number}" for number in range(20)), None, "", tuple({} for _ in range(20)))
    rows = [
        {
            "network": network,
            "defaults.scheduler": name,
            "seed": seed,
            "connection": "file",
            "application": "bulk",
            "completion_s": time,
        }
        for number, network in enumerate(drawn.labels)
        for name, factor in (("default", 1.0), ("redundant", 2.0))
        for seed in "12"
        for time in (None if number == 3 and name == "default" else factor * (1 + number),)
    ]
    figure = draw_completions("phone", (drawn, SCHEDULER, SEED), pl.DataFrame(rows))
    assert figure is not None
    (panel,) = figure.axes
    assert panel.get_legend_handles_labels()[1] == ["default", "redundant"]
    first, second = panel.lines
    assert numbers(first.get_ydata())[-1] == pytest.approx(38 / 40)
    assert numbers(second.get_ydata())[-1] == 1.0
    assert numbers(second.get_xdata())[-1] == 40_000.0
    assert panel.get_title(loc="right") == "40 runs each, over network and seeds"
    assert draw_completions("phone", (drawn, SEED), pl.DataFrame(rows)) is None


def test_the_flows_of_all_runs_are_pooled() -> None:
    rows = [
        {
            "defaults.scheduler": name,
            "seed": seed,
            "connection": "files",
            "application": "flows",
            "completion_s": None,
            "flow_times_s": times,
        }
        for name, times in (("default", [1.0, 2.0, None]), ("redundant", [3.0]))
        for seed in "12"
    ]
    schema: dict[str, pl.DataType] = {"completion_s": pl.Float64(), "flow_times_s": pl.List(pl.Float64)}
    figure = draw_completions("phone", (SCHEDULER, SEED), pl.DataFrame(rows, schema_overrides=schema))
    assert figure is not None
    (panel,) = figure.axes
    first, second = panel.lines
    assert numbers(first.get_ydata())[-1] == pytest.approx(4 / 6)
    assert numbers(second.get_xdata())[-1] == 3000.0
    assert panel.get_ylabel() == "part of the flows"
    assert panel.get_title(loc="right") == "2 to 6 flows each, of 2 seeds"


def test_nothing_is_drawn_where_nothing_asks(recording: Recording) -> None:
    silent = replace(recording, tables={name: table for name, table in recording.tables.items() if name != "requests"})
    assert draw_delays("phone", (SCHEDULER,), {("default",): silent}) is None


def unanswered(recording: Recording) -> Recording:
    requests = recording.table("requests").with_columns(delay_ns=pl.lit(None, pl.Int64))
    return replace(recording, tables={**recording.tables, "requests": requests})


def test_a_place_where_nothing_was_answered_is_in_the_legend(recording: Recording) -> None:
    places: dict[tuple[str, ...], Recording] = {("default",): recording, ("redundant",): unanswered(recording)}
    figure = draw_delays("phone", (SCHEDULER,), places)
    assert figure is not None
    assert figure.axes[0].get_legend_handles_labels()[1] == ["default", "redundant: none answered"]


def test_places_that_lack_runs_are_of_fewer_seeds(recording: Recording) -> None:
    axis = Axis("defaults.scheduler", ("default", "blest", "redundant"))
    places: dict[tuple[str, ...], Recording] = {
        ("default", "1"): recording,
        ("default", "2"): recording,
        ("blest", "2"): recording,
    }
    figure = draw_delays("phone", (axis, SEED), places)
    assert figure is not None
    panel = figure.axes[0]
    assert panel.get_legend_handles_labels()[1] == ["default", "blest"]
    (asking, *_) = [of for of in metrics.connections(recording) if metrics.delays(recording, of)]
    sent = len(metrics.delays(recording, asking))
    assert panel.get_title(loc="right") == f"{sent} to {2 * sent} requests each, of 1 to 2 seeds"


def test_a_narrow_figure_has_its_legend_below(recording: Recording) -> None:
    places: dict[tuple[str, ...], Recording] = {
        (name,): slower(recording, factor) for factor, name in enumerate(SCHEDULER.labels, 1)
    }
    figure = draw_delays("phone", (SCHEDULER,), places, Look(size=(3.3, 2.4)))
    assert figure is not None
    figure.canvas.draw()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["default", "redundant"]
    assert [axes.get_legend() for axes in figure.axes] == [None] * len(figure.axes)
    assert figure.axes[0].get_position().width > 0.6
