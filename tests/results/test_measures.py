"""Figures are declared once: what each of them is called, and that all who show one show the same."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import polypath
from polypath.labs.claims import problems
from polypath.measures import MEASURES, REGISTRY, Measure, figure
from polypath.measures.summary import summary
from polypath.results import MetricError, Recording, metrics
from polypath.results.settled import OLD, settled
from polypath.results.stored import StoredSweep
from polypath.statistics.comparison import BESIDE, compare
from polypath.statistics.points import COLUMNS, rows

FILM = """
name = "film"
duration = "20 s"
[host.client]
[host.server]
[link.wifi]
ends = ["client:eth0", "server"]
rate = "3 Mbps"
delay = "20 ms"
[[application]]
name = "film"
kind = "video"
transport = "tcp"
rates = ["500 kbps", "2 Mbps"]
segment = "2 s"
"""


@pytest.mark.parametrize("measure", REGISTRY.values(), ids=REGISTRY)
def test_a_measure_is_described_in_full(measure: Measure) -> None:
    assert re.fullmatch(r"[a-z0-9_]+", measure.name)
    assert measure.title
    assert measure.definition
    assert not measure.definition.endswith(".")
    assert not re.search(r"_(s|ms|mbps|kb|mb|bytes)$", measure.name), "the unit follows from the measure"
    assert not measure.kept or measure.heading
    assert measure.unit.base == pytest.approx(measure.unit.claimed / measure.unit.printed)


def test_no_figure_has_two_names() -> None:
    assert len({each.column for each in REGISTRY.values()}) == len(REGISTRY)
    assert len({each.definition for each in REGISTRY.values()}) == len(REGISTRY)
    assert not set(OLD) & {*REGISTRY, *MEASURES}
    assert set(OLD.values()) <= {*REGISTRY, *MEASURES}


def test_an_old_name_is_read_with_a_warning_that_tells_the_present_one() -> None:
    with pytest.warns(FutureWarning, match=r"^the measure 'completion_mean' is now called 'flow_mean'$"):
        assert settled("completion_mean") == "flow_mean"
    assert settled("flow_mean") == "flow_mean"
    with pytest.warns(FutureWarning, match="'goodput_mean'"):
        assert not list(problems(("expect", 0), "mean_goodput", {}, [], None))


def test_a_sweep_has_a_column_of_each_kept_measure() -> None:
    assert set(MEASURES) <= set(COLUMNS)


def _alike(recording: Recording) -> set[str]:
    """The columns whose figures from the tables are those from the summary."""
    made = rows(summary(recording), recording.plan)
    seen = set()
    for of, row in zip(metrics.connections(recording), made, strict=True):
        for column, measure in MEASURES.items():
            if row[column] is not None and measure.of != "flows":
                found = measure.value(recording, *([] if measure.of == "run" else [of]))
                assert row[column] == pytest.approx(found, rel=1e-6, abs=1e-6), (of.name, column)
                seen.add(column)
    return seen


def test_a_claim_and_a_column_say_the_same_of_transfers_and_requests() -> None:
    recording = polypath.run(f"scheduler-reqres/{polypath.labs.get('scheduler-reqres').runs[0].name}")
    assert {"goodput_mbps", "completion_s", "delay_median_s", "delay_p95_s", "unanswered", "retransmitted_bytes"} <= (
        _alike(recording)
    )


def test_a_claim_and_a_column_say_the_same_of_a_video(tmp_path: Path) -> None:
    file = tmp_path / "film.toml"
    file.write_text(FILM)
    assert {"video_rate_mbps", "video_startup_s", "video_stalled_s", "video_switches"} <= _alike(polypath.run(file))


def test_several_interfaces_are_one_figure(recording: Recording) -> None:
    both = figure(recording, "subflow_goodput", connection="iperf", interface=["eth0", "eth1"])
    each = [figure(recording, "subflow_goodput", connection="iperf", interface=name) for name in ("eth0", "eth1")]
    assert both == pytest.approx(sum(one or 0.0 for one in each))
    assert figure(recording, "resent", connection="iperf", interface="eth0") is not None
    with pytest.raises(MetricError, match="'resent' is of a single subflow"):
        figure(recording, "resent", connection="iperf", interface=["eth0", "eth1"])


def test_engines_are_compared_by_measures(recording: Recording) -> None:
    shown = {each.measure for each in compare({"sim": recording, "linux": recording})}
    assert shown - {"unfinished"} <= {each.label for each in BESIDE}
    assert {"goodput", "completion", "median delay", "share", "srtt"} <= shown


def test_a_stored_sweep_with_old_names_has_the_present_ones(tmp_path: Path) -> None:
    file = tmp_path / "film.toml"
    file.write_text(FILM + "[vary]\nseeds = 2\n")
    out = tmp_path / "out"
    polypath.sweep(file, out=out)
    before = StoredSweep.read(out)
    old = {now: name for name, now in OLD.items() if now in before.points.columns}
    assert "video_startup_s" in old
    before.points.rename(old).write_parquet(out / "points.parquet")
    named = before.statistics.with_columns(pl.col("measure").replace(old))
    named.write_parquet(out / "statistics.parquet")
    after = StoredSweep.read(out)
    assert after.points.columns == before.points.columns
    assert after.statistics.equals(before.statistics)


def test_a_percentile_of_too_few_is_no_claim(recording: Recording) -> None:
    with pytest.raises(MetricError, match=r"^measure 'delay_p95' needs 20 requests, and there are 3$"):
        figure(recording, "delay_p95", connection="msg")
