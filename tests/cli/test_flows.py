"""Flows that arrive, in sweeps and comparisons: rows for all of them and for each class of sizes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import fmean, median

import polars as pl
import pytest

from .conftest import Polypath

SCENARIO = """
name = "arriving"
duration = "20 s"
[host.client]
[host.server]
[link.a]
ends = ["client:wifi", "server:eth0"]
rate = "20 Mbps"
delay = "5 ms"
loss = "0.2 %"
[link.b]
ends = ["client:lte", "server:eth1"]
rate = "10 Mbps"
delay = "30 ms"
[[application]]
name = "files"
kind = "bulk"
arrivals = 30
duration = "1 s"
sizes = { kind = "cdf", points = [["10 kB", "0 %"], ["100 kB", "60 %"], ["1 MB", "90 %"], ["2 MB", "100 %"]] }
[[application]]
name = "other"
kind = "bulk"
size = "100 kB"
[record]
interval = "1 s"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "arriving.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def test_a_sweep_has_rows_of_classes_of_sizes(polypath: Polypath, file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = polypath("run", file, "--vary", "seeds=2", "--out", out)
    assert done.code == 0, done.err
    assert "files, up to 100 kB" in done.out
    assert "files-1" not in done.out
    points = pl.read_parquet(out / "points.parquet")
    assert points.filter(seed="1")["connection"].to_list() == [
        "other",
        "files",
        "files, up to 100 kB",
        "files, 100 kB to 1 MB",
        "files, above 1 MB",
    ]
    for row in points.filter(application="flows").iter_rows(named=True):
        times = row["flow_times_s"]
        assert len(times) == row["flows"]
        assert row["flows_unfinished"] == 0
        assert math.isclose(row["flow_mean_s"], fmean(times))
        assert math.isclose(row["flow_median_s"], median(times))
        assert (row["flow_p95_s"] is None) == (row["flows"] < 20)
        assert row["flow_p99_s"] is None
        assert row["completion_s"] is None
    whole, *classes = points.filter(seed="1", application="flows")["flows"]
    assert whole == sum(classes)
    summary = json.loads((out / "seed=1" / "summary.json").read_text())
    assert len(summary["groups"][0]["times_s"]) == whole == len(summary["connections"]) - 1


def test_a_flow_that_does_not_finish_leaves_no_mean(polypath: Polypath, file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert polypath("run", file, "--vary", "seeds=2", "--set", "duration=1.2 s", "--out", out).code == 0
    rows = pl.read_parquet(out / "points.parquet").filter(connection="files")
    assert all(count > 0 for count in rows["flows_unfinished"].to_list())
    assert rows["flow_mean_s"].to_list() == [None, None]
    assert rows["flow_times_s"].list.eval(pl.element().is_null().sum()).explode().to_list() == [
        *rows["flows_unfinished"]
    ]
    statistics = pl.read_parquet(out / "statistics.parquet").filter(connection="files", measure="flow_mean_s")
    assert statistics["unfinished"].to_list() == [2]


def test_a_comparison_has_the_flows_and_their_classes(polypath: Polypath, file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    by = ("--by", "defaults.scheduler=default,redundant", "--seeds", "2")
    done = polypath("compare", file, *by, "--out", out)
    assert done.code == 0, done.err
    for title in ("files", "files, up to 100 kB", "files, above 1 MB"):
        assert f"{title}: mean completion time of the flows, ms" in done.out
    assert "files: 95th percentile of the flows' completion times, ms" in done.out
    assert "files, above 1 MB: 95th percentile" not in done.out
    assert "other: completion time, s" in done.out
    drawn = polypath("plot", out, "--kind", "cdf-completion", "--out", tmp_path / "cdf.png")
    assert drawn.code == 0, drawn.err
    chosen = polypath("compare", file, *by, "--measure", "flow_median")
    assert "files: median completion time of the flows, ms" in chosen.out


def test_a_sweep_is_exported_as_one_tidy_table(polypath: Polypath, file: Path, tmp_path: Path) -> None:
    out, made = tmp_path / "out", tmp_path / "sweep.csv"
    varied = ("--vary", "link.a.delay=5 ms,50 ms", "--vary", "seeds=2")
    assert polypath("run", file, *varied, "--out", out).code == 0
    done = polypath("export", "csv", out, "--out", made)
    assert (done.code, done.err) == (0, f"20 rows in {made}\n")
    table = pl.read_csv(made)
    points = pl.read_parquet(out / "points.parquet")
    assert table.select("link.a.delay", "seed", "connection").is_unique().all()
    assert table["link.a.delay_s"].to_list() == points["link.a.delay_s"].to_list()
    assert table["flow_mean_s"].to_list() == points["flow_mean_s"].to_list()
    own = table.filter(connection="other")
    assert all(math.isclose(sum(pair), 1, abs_tol=1e-5) for pair in own.select("share[wifi]", "share[lte]").iter_rows())
    assert "video_rate_mbps" not in table.columns
    assert polypath("export", "csv", out, "--out", made).code == 2
    assert polypath("export", "iperf3", out, "--out", tmp_path / "x.json").code == 2


def test_a_profile_of_one_class_is_drawn_for_a_paper(polypath: Polypath, file: Path, tmp_path: Path) -> None:
    file.write_text(
        SCENARIO + "[vary.network]\n"
        'draw = 3\nset = { "link.a.rate" = { log_uniform = ["5 Mbps", "50 Mbps"] } }\n'
        '[vary.scheduler]\ndefault = {}\nredundant = { "defaults.scheduler" = "redundant" }\n'
    )
    out = tmp_path / "out"
    by = ("--by", "scheduler", "--networks", "network", "--seeds", "1", "--measure", "flow_mean")
    done = polypath("compare", file, *by, "--out", out)
    assert done.code == 0, done.err
    assert {path.name for path in (out / "plots").iterdir()} == {
        f"profile-files{size}-flow_mean.png" for size in ("", "-up-to-100-kB", "-100-kB-to-1-MB", "-above-1-MB")
    }
    chosen = ("--kind", "profile-flow_mean", "--connection")
    assert polypath("plot", out, *chosen, "files, above 1 MB", "--format", "pdf").code == 0
    assert (out / "plots" / "profile-flow_mean.pdf").read_bytes().startswith(b"%PDF")
    wrong = polypath("plot", out, *chosen, "file")
    assert (wrong.code, wrong.err) == (
        2,
        f"polypath: --connection: {out} has no connection 'file'; did you mean 'files'?\n",
    )
    single = polypath("plot", out / "seed=1,network=n1,scheduler=default", "--connection", "files")
    assert (single.code, single.err.count("\n")) == (2, 1)
