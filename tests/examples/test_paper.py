"""The comparison of docs/paper.md on fewer networks: algorithms in Python and a trained one in one table."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from polypath.scenario import Scenario

PAPER = Path(__file__).parents[2] / "examples" / "paper"
BINARY = Path(sys.executable).parent / "polypath"


def _run(*words: object, cwd: Path) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd), "COLUMNS": "120"}
    ran = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(PAPER, tmp_path_factory.mktemp("walk") / "paper"))


@pytest.fixture(scope="module")
def table(folder: Path) -> str:
    short = ("--vary", "network=2", "--vary", "seeds=1", "--vary", "algorithm=default,gentle,learned")
    chosen = ("--measure", "flow_mean", "--measure", "video_rate_mbps")
    return _run(
        BINARY, "compare", "downloads.toml", "--by", "algorithm", "--networks", "network", *short, *chosen,
        "--out", "results", cwd=folder,
    )  # fmt: skip


def test_the_trained_agent_is_in_the_same_table(folder: Path, table: str) -> None:
    assert "files: mean completion time of the flows, less is better" in table
    assert all(table.count(f"\n{name} ") >= 2 for name in ("default", "gentle", "learned"))
    found = pl.read_parquet(folder / "results" / "points.parquet")
    times = {name: own["flow_mean_s"].to_list() for (name,), own in found.group_by("algorithm")}
    assert len({str(each) for each in times.values()}) == 3
    assert (folder / "results" / "inputs" / "policy.json").read_bytes() == (PAPER / "policy.json").read_bytes()


def test_its_figures_are_drawn_for_a_paper(folder: Path, table: str) -> None:
    for kind in ("profile-flow_mean", "cdf-completion"):
        _run(BINARY, "plot", "results", "--kind", kind, "--connection", "files", "--size", "3.5x2.6", cwd=folder)
        assert (folder / "results" / "plots" / f"{kind}.png").stat().st_size > 5000


@pytest.mark.slow
def test_the_bundle_runs_again_elsewhere(folder: Path, table: str, tmp_path: Path) -> None:
    _run(BINARY, "bundle", "results", "--light", "--out", tmp_path / "paper.zip", cwd=folder)
    told = _run(BINARY, "rerun", "paper.zip", "--trust", cwd=tmp_path)
    assert "6 of 6 recordings, 6 of 6 figures" in told


@pytest.mark.slow
def test_the_training_gives_the_same_table_each_time(folder: Path, tmp_path: Path) -> None:
    made = [tmp_path / "one.json", tmp_path / "other.json"]
    for file in made:
        _run(sys.executable, "train.py", 30, file, cwd=folder)
    assert made[0].read_bytes() == made[1].read_bytes()


def test_the_shipped_table_knows_the_states_of_the_scheduler() -> None:
    policy = json.loads((PAPER / "policy.json").read_text())
    assert set(policy.values()) <= {"fast", "slow", "wait"}
    assert all(len(state) == 4 and state.isdecimal() for state in policy)


def test_training_networks_are_not_those_of_the_comparison() -> None:
    training, judged = (Scenario.load(PAPER / name) for name in ("train.toml", "downloads.toml"))
    (seen,) = (axis for axis in training.axes if axis.name == "network")
    (held,) = (axis for axis in judged.axes if axis.name == "network")
    drawn = [
        {(value.settings["link.wifi.rate"], value.settings["link.cellular.delay"]) for value in axis.values}
        for axis in (seen, held)
    ]
    assert [len(each) for each in drawn] == [200, 60]
    assert not drawn[0] & drawn[1]
