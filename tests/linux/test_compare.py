"""Recordings of two engines side by side; no kernel is needed here."""

from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest

from polypath.cli import compare as command
from polypath.cli.errors import InputError
from polypath.plots import figure as draw
from polypath.results import Recording
from polypath.statistics.comparison import compare


def test_a_run_compared_with_itself_has_ratios_of_one(recording: Recording) -> None:
    figures = compare({"a": recording, "b": recording})
    ratios = [figure.ratio("b", "a") for figure in figures]
    assert {ratio for ratio in ratios if ratio is not None} == {1.0}
    goodput = next(each for each in figures if each.connection == "iperf" and each.measure == "goodput")
    # 3,000,000 bytes in the 2 s from its start to its last byte
    assert goodput.values == {"a": pytest.approx(12.0), "b": pytest.approx(12.0)}
    key = ("iperf", "10.0.0.1 → 10.1.0.1")
    assert [each.measure for each in figures if (each.connection, each.subject) == key] == ["share", "srtt"]


def test_what_an_engine_has_not_is_empty(
    recording: Recording, changed: Callable[[str, pl.DataFrame], Recording]
) -> None:
    rows = recording.table("subflow_ends").filter((pl.col("connection") != 0) | (pl.col("subflow") == 0))
    figures = compare({"a": recording, "b": changed("subflow_ends", rows)})
    lost = next(each for each in figures if each.subject.startswith("[fd00::1]") and each.measure == "share")
    assert lost.values["a"] is not None
    assert lost.values["b"] is None
    assert lost.ratio("b", "a") is None
    share = next(each for each in figures if each.subject.startswith("10.0.0.1 →") and each.measure == "share")
    assert share.values["b"] == 100.0
    assert (share.ratio("b", "a") or 0) > 1


def test_the_figure_has_a_line_for_each_engine(recording: Recording) -> None:
    figure = draw({"a": recording, "b": recording}, "rate")
    assert figure is not None
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert labels == ["a", "b"]
    nothing = replace(recording, tables={})
    assert draw({"a": nothing}, "rate") is None


@pytest.mark.parametrize("names", ["sim", "", "sim,sim"])
def test_one_engine_is_nothing_to_compare(names: str) -> None:
    with pytest.raises(InputError, match="two or more"):
        command.compare("aggregation", names=names)
