"""The public interface as a researcher types it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

import polypath
from polypath.labs import get
from polypath.results.stored import StoredSweep

from .commands import called

SCENARIO = """
name = "small"
[host.client]
[host.server]
[link.wifi]
ends = ["client:eth0", "server:eth0"]
rate = "10 Mbps"
delay = "10 ms"
loss = "1 %"
[link.lte]
ends = ["client:eth1", "server:eth1"]
rate = "5 Mbps"
delay = "30 ms"
[[application]]
name = "file"
kind = "bulk"
client = "client"
server = "server"
transport = "mptcp"
size = "500 kB"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def test_a_run_of_a_file_has_figures_by_application(file: Path) -> None:
    run = polypath.run(str(file), seed=3)
    of = run["file"]
    told = polypath.summary(run)["connections"][0]
    assert (of.goodput_mbps, of.completion_s, of.bytes) == (told["goodput_mbps"], told["completion_s"], 500_000)
    assert [each.interface for each in of.subflows] == [each["interface"] for each in told["subflows"]]
    table = of.subflows.to_polars()
    assert table["share"].sum() == pytest.approx(1)
    assert table["bytes"].to_list() == [each["bytes"] for each in told["subflows"]]
    assert run.connections.to_polars()["name"].to_list() == ["file"]
    assert of.rate.columns == ["t_s", "mbps"]
    assert of.account is None
    assert re.fullmatch(r"<small: engine sim, seed 3, [\d.]+ s, \d+ rows>", repr(run))


def test_a_lab_is_run_by_its_name() -> None:
    run = polypath.run("aggregation/tcp")
    lab = get("aggregation")
    same = polypath.run(lab.runs[0].of(lab.scenario()))
    assert run.metadata.scenario == "aggregation/tcp"
    assert run.metadata.recording_sha256 == same.metadata.recording_sha256


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("aggregation", "lab 'aggregation' has several runs; name one of aggregation/tcp, aggregation/mptcp"),
        ("aggregation/x", "lab 'aggregation' has no run 'x'; it has tcp, mptcp"),
        ("agregation", "unknown lab 'agregation'; did you mean 'aggregation'?"),
        ("nowhere.toml", "nowhere.toml"),
    ],
)
def test_what_is_no_scenario_is_named(name: str, message: str) -> None:
    with pytest.raises(polypath.ScenarioError) as caught:
        polypath.run(name)
    assert message in str(caught.value)


def test_an_unknown_connection_or_figure_is_named(file: Path) -> None:
    run = polypath.run(file)
    with pytest.raises(polypath.MetricError, match="unknown connection 'fil'; did you mean 'file'"):
        run["fil"]
    with pytest.raises(polypath.MetricError, match="unknown kind of figure 'rat'; did you mean 'rate'"):
        run.plot.rat()


def test_a_figure_is_drawn_by_its_name(file: Path) -> None:
    run = polypath.run(file)
    assert run.plot.rate().get_ylabel() == polypath.plots.rate(run).get_ylabel()
    assert "window" in dir(run.plot)


def test_out_is_the_folder_of_the_command(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved, written = tmp_path / "python", tmp_path / "command"
    run = polypath.run(file, out=saved, captures="hosts")
    assert called(capsys, "run", file, "--out", written, "--pcap", "hosts").returncode == 0
    listed = [sorted(str(each.relative_to(folder)) for each in folder.rglob("*")) for folder in (saved, written)]
    assert listed[0] == listed[1]
    for name in ("scenario.toml", "summary.json", "plan.json", "series/subflows.parquet", "capture/client.pcapng"):
        assert (saved / name).read_bytes() == (written / name).read_bytes()
    account = run["file"].account
    assert account is not None
    told = json.loads((saved / "summary.json").read_text())["connections"][0]["account"]
    assert account["bytes"].sum() == told["capacity_bytes"] - told["delivered_bytes"]
    again = polypath.load(saved)
    assert isinstance(again, polypath.Recording)
    assert again["file"].goodput_mbps == run["file"].goodput_mbps
    copied = tmp_path / "copied"
    again.save(copied)
    assert (copied / "summary.json").read_bytes() == (saved / "summary.json").read_bytes()
    assert (copied / "scenario.toml").read_bytes() == (saved / "scenario.toml").read_bytes()


def test_a_sweep_s_runs_iterate_and_are_compared(file: Path, tmp_path: Path) -> None:
    axes = {"defaults.scheduler": ["default", "redundant"]}
    result = polypath.sweep(file, axes, seeds=3, jobs=1, out=tmp_path / "out")
    runs = list(result)
    assert [(run.values["defaults.scheduler"], run.seed) for run in runs] == [
        (scheduler, seed) for scheduler in axes["defaults.scheduler"] for seed in (1, 2, 3)
    ]
    alone = polypath.run(polypath.Scenario.load(file).with_({"defaults.scheduler": "redundant"}), seed=2)
    assert runs[4]["file"].completion_s == runs[4]["file"]["completion_s"] == alone["file"].completion_s
    assert runs[4].load().metadata.recording_sha256 == alone.metadata.recording_sha256
    compared = polypath.compare(result, by="defaults.scheduler")
    assert compared["measure"].unique().to_list() == ["completion_s"]
    assert compared.filter(pl.col("defaults.scheduler") == "redundant")["difference"].item() > 0
    stored = polypath.load(tmp_path / "out")
    assert isinstance(stored, StoredSweep)
    assert [run.values for run in stored] == [run.values for run in runs]
    assert polypath.compare(stored, measure="goodput")["measure"].unique().to_list() == ["goodput_mbps"]


def test_a_comparison_names_what_there_is(file: Path) -> None:
    result = polypath.sweep(file, {"defaults.scheduler": ["default", "redundant"]}, seeds=[4, 5], jobs=1)
    wrong = [
        ({"by": "scheduler"}, "unknown axis 'scheduler'; did you mean 'defaults.scheduler'"),
        ({"base": "defaut"}, "unknown value of defaults.scheduler 'defaut'; did you mean 'default'"),
        ({"measure": "godput"}, "unknown measure 'godput'; did you mean 'goodput'"),
    ]
    for given, message in wrong:
        with pytest.raises(polypath.MetricError, match=message):
            polypath.compare(result, **given)
    with pytest.raises(polypath.OutputError, match="give it a folder with out="):
        next(iter(result)).load()
    with pytest.raises(polypath.MetricError, match="unknown column 'godput_mbps'; did you mean 'goodput_mbps'"):
        next(iter(result))["file"]["godput_mbps"]
    with pytest.raises(AttributeError, match="did you mean 'goodput_mbps'"):
        _ = next(iter(result))["file"].godput_mbps


def test_nothing_to_vary_and_no_results_are_said(file: Path, tmp_path: Path) -> None:
    with pytest.raises(polypath.ScenarioError, match="small varies nothing: give axes as"):
        polypath.sweep(file)
    with pytest.raises(polypath.ScenarioError, match="scheduler"):
        polypath.sweep(file, {"defaults.scheduler": ["rondrobin"]})
    with pytest.raises(polypath.OutputError, match="is no folder of results"):
        polypath.load(tmp_path / "nowhere")
    with pytest.raises(polypath.OutputError, match="holds neither a run nor a sweep"):
        polypath.load(tmp_path)
