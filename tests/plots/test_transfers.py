"""Completion times of a group's flows, distributed and over the flows' sizes."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.axes import Axes
from tests.handmade_plans import as_plan

from polypath import plots
from polypath.plots import transfers
from polypath.results import MetricError, Recording, completions
from polypath.results.completions import Flow


def curves(axes: Axes) -> dict[str, Any]:
    return {str(line.get_label()): line for line in axes.get_lines() if not str(line.get_label()).startswith("_")}


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Flow]]:
    """The groups that a recording is taken to have."""
    found: dict[str, list[Flow]] = {}
    monkeypatch.setattr(completions, "flows", lambda recording: found)
    return found


def flow(size: int, time_ms: float | None, slowdown: float | None = None) -> Flow:
    return Flow(size, None if time_ms is None else int(time_ms * 1e6), slowdown)


def test_a_distribution_ends_below_1_where_some_did_not_finish(
    recording: Recording, given: dict[str, list[Flow]]
) -> None:
    given["web"] = [flow(1000, 5), flow(1000, None), flow(1000, 2), flow(1000, 4)]
    (line,) = curves(plots.fct(recording)).values()
    assert np.asarray(line.get_xydata()).tolist() == [[2, 0], [2, 0.25], [4, 0.5], [5, 0.75]]


def test_a_group_that_finished_nothing_has_an_entry_in_the_legend_alone(
    recording: Recording, given: dict[str, list[Flow]]
) -> None:
    given["web"] = [flow(1000, None)]
    ((entry, line),) = curves(plots.fct(recording)).items()
    assert (entry, len(line.get_xdata())) == ("web: none finished", 0)
    axes = plots.slowdown(recording)
    assert curves(axes) == {}
    assert axes.get_title(loc="right") == "web: 1 of 1 unfinished"


def test_quantiles_are_of_classes_of_sizes(recording: Recording, given: dict[str, list[Flow]]) -> None:
    """Two classes of a hundred flows; of the larger ones two did not finish, so that there is no 99th percentile."""
    small = [flow(1000, 1, 1 + number / 100) for number in range(100)]
    large = [flow(10**6, 1, 3) for _ in range(98)] + [flow(10**6, None) for _ in range(2)]
    given["web"] = small + large
    axes = plots.slowdown(recording)
    found = {name: np.asarray(line.get_xydata()) for name, line in curves(axes).items()}
    assert found["web, median"][:, 0].tolist() == [1000, 10**6]
    assert found["web, median"][:, 1] == pytest.approx([1.5, 3], abs=0.011)
    assert found["web, 99th percentile"][0, 1] == pytest.approx(1.98, abs=0.011)
    assert np.isnan(found["web, 99th percentile"][1, 1])
    (dots,) = [line for line in axes.get_lines() if str(line.get_label()).startswith("_")]
    assert len(dots.get_xdata()) == 198  # type: ignore[arg-type]
    assert len({line.get_marker() for line in curves(axes).values()}) == 2


def test_flows_of_one_size_are_in_one_class(given: dict[str, list[Flow]]) -> None:
    flows = [flow(size, 1, 1) for size in (10, 20, 30) for _ in range(7)] + [flow(40, 1, 1)] * 25
    found = [[each.size_bytes for each in own] for own in transfers._classes(flows)]
    assert [*chain(*found)] == sorted(each.size_bytes for each in flows)
    assert len(found) == 2
    assert [set(own) for own in found] == [{10, 20, 30}, {40}]


def test_runs_share_axes_in_a_colour_each(recording: Recording, given: dict[str, list[Flow]]) -> None:
    given["web"] = [flow(1000, 5, 2), flow(2000, 2, 3)]
    axes = plots.slowdown(recording, label="one")
    plots.slowdown(recording, ax=axes, label="two")
    found = curves(axes)
    assert list(found) == ["one, median", "one, 99th percentile", "two, median", "two, 99th percentile"]
    assert found["one, median"].get_color() != found["two, median"].get_color()
    assert len(axes.get_lines()) == 4  # no dots


def test_a_run_without_groups_says_so(recording: Recording) -> None:
    for draw in (plots.fct, plots.slowdown):
        with pytest.raises(MetricError, match=r"^handmade has no flows of a group$"):
            draw(recording)
    assert plots.figure(recording, "fct+slowdown") is None


def test_a_group_of_a_recording_is_drawn(recording: Recording) -> None:
    applications = [{**each, "group": "web"} for each in recording.plan["applications"]]
    own = replace(recording, plan=as_plan({**recording.plan, "applications": applications}))
    ends = own.table("connection_ends").filter(pl.col("connection") == 0)
    assert ends.height
    (line,) = curves(plots.fct(own)).values()
    assert line.get_label() == "web"
