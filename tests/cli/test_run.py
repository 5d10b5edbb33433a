import json
from pathlib import Path
from typing import Any

import pytest

from polypath import labs
from polypath.cli import jobs
from polypath.results import Recording
from polypath.scenario import Scenario


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_the_table_has_goodput_share_rtt_and_rate(polypath: Any, engine: Any, scenario: Path) -> None:
    outcome = polypath("run", scenario)
    assert outcome.code == 0
    rows = {line.split()[0]: " ".join(line.split()) for line in outcome.out.splitlines() if line.strip()}
    assert rows["iperf"] == "iperf mptcp 12.00 ▅█"
    assert rows["10.0.0.1:1000"] == "10.0.0.1:1000 → 10.1.0.1:5001 eth0 8.00 66.7% 50.0 2.33% ▃▇"
    assert rows["[fd00::1]:1001"] == "[fd00::1]:1001 → [fd01::1]:5001, backup eth1 4.00 33.3% 0.00% ▃▃"
    assert rows["msg:"].startswith("msg: 3 requests, delay median 55.0 ms, 1 unanswered (33%)")


def test_without_out_nothing_is_written(
    polypath: Any, engine: Any, scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert polypath("run", scenario).code == 0
    assert files(tmp_path) == {"small.toml"}


def test_out_has_the_documented_layout(polypath: Any, engine: Any, scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    assert polypath("run", scenario, "--out", out, "--pcap", "hosts", "--plot").code == 0
    series = {f"series/{name}.parquet" for name in engine.recording.tables if name != "events"}
    plots = {
        f"plots/{name}.png"
        for name in ("rate", "window-rtt", "sequence-beginning", "delays-cdf", "waits-causes", "topology")
    }
    single = {"manifest.json", "plan.json", "scenario.toml", "summary.json", "events.parquet", "capture/client.pcapng"}
    assert files(out) == single | series | plots
    assert Recording.load(out).metadata.scenario == "small"
    assert json.loads((out / "summary.json").read_text())["connections"][0]["goodput_mbps"] == 12.0


def test_the_resolved_scenario_loads_back_with_its_settings(
    polypath: Any, engine: Any, scenario: Path, tmp_path: Path
) -> None:
    assert polypath("run", scenario, "--set", "link.path0.rate=7 Mbps", "--out", tmp_path / "out").code == 0
    resolved = Scenario.load(tmp_path / "out" / "scenario.toml")
    assert resolved.plan().data["links"][0]["forward"]["rate_bps"] == 7_000_000
    assert resolved.plan() == engine.plans[0]


def test_seed_and_plot_reach_the_engine(polypath: Any, engine: Any, scenario: Path, tmp_path: Path) -> None:
    assert polypath("run", scenario, "--seed", "42", "--plot", "--out", tmp_path / "out").code == 0
    (plan,) = engine.plans
    assert plan.data["seed"] == 42
    assert [options.segments for options in engine.options] == [True]


def test_an_earlier_run_is_replaced_whole(polypath: Any, engine: Any, scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    polypath("run", scenario, "--out", out, "--pcap", "hosts", "--plot")
    polypath("run", scenario, "--out", out)
    assert not any(name.startswith(("capture/", "plots/")) for name in files(out))
    assert Recording.load(out).table("requests").height == 3


def test_a_lab_of_several_runs_has_a_folder_each(polypath: Any, engine: Any, tmp_path: Path) -> None:
    outcome = polypath("run", "aggregation", "--out", tmp_path)
    assert outcome.code == 0
    runs = [run.name for run in labs.get("aggregation").runs]
    assert {path.name for path in tmp_path.iterdir()} == set(runs)
    transports = [plan.data["applications"][0]["transport"] for plan in engine.plans]
    assert dict(zip(runs, transports, strict=True))["tcp"] == "tcp"
    assert transports.count("mptcp") == len(runs) - 1
    assert Recording.load(tmp_path / "tcp").metadata.scenario == "aggregation/tcp"
    assert "aggregation/tcp" in outcome.out
    assert "aggregation/mptcp" in outcome.out


def test_one_run_of_a_lab(polypath: Any, engine: Any) -> None:
    assert polypath("run", "aggregation", "--run", "mptcp").code == 0
    assert [plan.data["applications"][0]["transport"] for plan in engine.plans] == ["mptcp"]


def test_an_interrupted_run_is_kept_and_marked(polypath: Any, engine: Any, tmp_path: Path) -> None:
    engine.interrupted = True
    outcome = polypath("run", "aggregation", "--out", tmp_path, "--pcap", "hosts")
    assert outcome.code == 130
    assert "interrupted at 4.000 s of simulated time" in outcome.out
    assert len(engine.plans) == 1
    assert json.loads((tmp_path / "tcp" / "manifest.json").read_text())["interrupted"] is True
    assert json.loads((tmp_path / "tcp" / "summary.json").read_text())["interrupted"] is True
    assert (tmp_path / "tcp" / "capture" / "client.pcapng").exists()


def test_a_run_that_fails_leaves_no_result(polypath: Any, engine: Any, scenario: Path, tmp_path: Path) -> None:
    engine.failure = "no such thing"
    outcome = polypath("run", scenario, "--out", tmp_path / "out", "--pcap", "hosts")
    assert (outcome.code, outcome.err) == (2, "polypath: no such thing\n")
    assert not (tmp_path / "out").exists()


def test_one_seed_takes_the_place_of_an_axis_of_seeds(scenario: Path) -> None:
    varied = scenario.with_name("varied.toml")
    varied.write_text(scenario.read_text() + '\n[vary]\n"defaults.congestion" = ["lia", "olia"]\nseeds = 3\n')
    (job,) = jobs.of_file(varied, (), 7)
    assert [axis.name for axis in job.scenario.axes] == ["defaults.congestion"]
    assert [(point.plan.data["seed"], *point.values) for point in job.points] == [(7, "defaults.congestion")] * 2
    (job,) = jobs.of_file(varied, ["defaults.congestion=lia"], 7)
    assert not job.varies
    assert job.plan.data["seed"] == 7
