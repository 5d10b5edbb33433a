"""Points, folders, and a sweep that goes on where it was stopped."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sysconfig
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest

from polypath import engines, sweeps
from polypath.cli import output
from polypath.engines.base import Options, Progress, no_progress
from polypath.engines.sim import Simulator
from polypath.recorded import Captures, Record
from polypath.results import OutputError, Recording, folder, layout
from polypath.results.stored import StoredSweep
from polypath.scenario import Plan, Scenario, ScenarioError
from polypath.sweeps import executor, grid

from ..processes import LIMIT_S, session, wait

COMMAND = Path(sysconfig.get_path("scripts")) / "polypath"


def swept(scenario: Scenario, out: Path | None = None, jobs: int = 1) -> sweeps.Result:
    (result,) = sweeps.run([sweeps.Sweep("small", scenario, sweeps.points(scenario), out)], jobs=jobs, save=output.save)
    return result


def started(*arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [COMMAND, "run", *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"engine": "linus"}, "unknown engine 'linus'; did you mean 'linux'?"),
        ({"record": Record(captures=cast("Captures", "host"))}, "unknown captures 'host'; did you mean 'hosts'?"),
        ({"jobs": 0}, "a sweep needs at least 1 job, not 0"),
        (
            {"record": Record(captures="hosts")},
            "captures, qlogs and figures of a sweep need a directory to go to, and save",
        ),
    ],
)
def test_what_no_point_can_have_is_said_at_once(scenario: Scenario, wrong: dict[str, Any], message: str) -> None:
    small = [sweeps.Sweep("small", scenario, sweeps.points(scenario))]
    with pytest.raises(engines.EngineError) as caught:
        sweeps.run(small, **wrong)
    assert str(caught.value) == message


def manifests(out: Path) -> set[Path]:
    return set(out.glob(f"*/{layout.MANIFEST}"))


def wait_for_points(out: Path, count: int) -> None:
    wait(lambda: len(manifests(out)) >= count)


def test_the_first_axis_changes_slowest(scenario: Scenario) -> None:
    found = sweeps.points(scenario)
    assert [tuple(point.values.values()) for point in found] == [
        (buffer, seed) for buffer in ("30 kB", "1 MB") for seed in ("4", "5", "6")
    ]
    assert found[0].folder == "receive_buffer=30kB,seed=4"
    assert found[0].title == "defaults.receive_buffer=30 kB, seed=4"
    assert [point.plan.data["seed"] for point in found] == [4, 5, 6, 4, 5, 6]


def test_another_seed_takes_the_place_of_all(scenario: Scenario) -> None:
    assert [point.plan.data["seed"] for point in sweeps.points(scenario, seed=9)] == [9, 9]


def test_a_scenario_without_axes_is_one_point(plain: str) -> None:
    (point,) = sweeps.points(Scenario.parse(plain, "x"), seed=3)
    assert (point.values, point.folder, point.plan.data["seed"]) == ({}, ".", 3)


def test_values_that_do_not_go_together_are_named(plain: str) -> None:
    table = '[vary]\n"application.iperf.start" = ["0 s", "3 s"]\nduration = ["5 s", "2 s"]'
    with pytest.raises(ScenarioError, match=r"axis 'application\.iperf\.start' at 3 s: it starts at 3 s"):
        Scenario.parse(plain + table, "x")
    long = Scenario.parse(plain.replace('"1 s"', '"5 s"') + table, "x")
    with pytest.raises(ScenarioError, match=r"^application\.iperf\.start=3 s, duration=2 s: it starts at 3 s, but the"):
        sweeps.points(long)


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["defaults.receive_buffer", "seed"], ["receive_buffer", "seed"]),
        (["link.path0.rate", "link.path1.rate"], ["path0.rate", "path1.rate"]),
        (["link.path0.rate, link.path1.rate"], ["rate"]),
        (["rate", "link.path1.rate"], ["rate", "path1.rate"]),
    ],
)
def test_short_names_tell_axes_apart(names: list[str], short: list[str]) -> None:
    assert grid.short_names(names) == short


@pytest.mark.parametrize(
    "tables",
    [
        ["[vary.kind]\n{} = {{}}\n{} = {{ duration = '2 s' }}", '"a b"', "ab"],
        ["[vary.kind]\n{} = {{}}\n{} = {{ duration = '2 s' }}", '"5 %"', '"5"'],
        [
            "[vary.a]\n{} = {{}}\n1 = {{ duration = '2 s' }}\n"
            "[vary.b]\n{} = {{}}\n3 = {{ 'link.path0.delay' = '5 ms' }}",
            '"1,b=2"',
            '"2,b=3"',
        ],
    ],
)
def test_folders_differ_where_labels_do_in_what_a_name_leaves_out(plain: str, tables: list[str]) -> None:
    table, *labels = tables
    of = Scenario.parse(f"{plain}[vary]\nseeds = 2\n{table.format(*labels)}\n", "x")
    folders = [point.folder for point in sweeps.points(of)]
    assert len(set(folders)) == len(folders)


def test_folders_differ_whatever_the_labels(plain: str) -> None:
    labels = ("a/b", "a b", "a:b", f"..{'n' * 300}")
    table = "[vary.x]\n" + "".join(f'"{label}" = {{ seed = {seed} }}\n' for seed, label in enumerate(labels))
    folders = [point.folder for point in sweeps.points(Scenario.parse(plain + table, "x"))]
    assert len(set(folders)) == 4
    assert all(folder == Path(folder).name and len(folder) <= 120 and not folder.startswith(".") for folder in folders)


class TestResults:
    def test_tables_do_not_depend_on_the_number_of_processes(self, scenario: Scenario, tmp_path: Path) -> None:
        one, two = tmp_path / "one", tmp_path / "two"
        result = swept(scenario, one)
        swept(scenario, two, jobs=2)
        for name in ("points.parquet", "statistics.parquet", "sweep.json"):
            assert (one / name).read_bytes() == (two / name).read_bytes()
        assert pl.read_parquet(one / "points.parquet").equals(result.points)
        assert result.points["defaults.receive_buffer_bytes"].to_list() == [30_000.0] * 3 + [1_000_000.0] * 3
        assert result.points["goodput_mbps"].min() > 1  # type: ignore[operator]
        assert result.points["links_mbps"].to_list() == [15.0] * 6
        assert result.points["rule_of_thumb_bytes"].to_list() == [2 * 15e6 / 8 * 0.04] * 6

    def test_a_point_is_what_a_single_run_gives(self, scenario: Scenario, tmp_path: Path) -> None:
        swept(scenario, tmp_path)
        point = sweeps.points(scenario)[1]
        folder = tmp_path / point.folder
        alone = engines.get("sim").run(point.plan)
        assert Recording.load(folder).metadata.recording_sha256 == alone.metadata.recording_sha256
        assert Scenario.load(folder / "scenario.toml").plan() == point.plan
        index = json.loads((tmp_path / "sweep.json").read_text())
        assert index["axes"][0] == {
            "name": "defaults.receive_buffer",
            "labels": ["30 kB", "1 MB"],
            "numbers": [30_000.0, 1_000_000.0],
            "unit": "bytes",
        }
        assert index["points"][1] == {
            "folder": point.folder,
            "values": {"defaults.receive_buffer": "30 kB", "seed": "5"},
            "seed": 5,
            "plan_sha256": point.plan.sha256(),
            "state": "done",
        }

    def test_only_what_is_missing_or_different_runs_again(self, scenario: Scenario, tmp_path: Path) -> None:
        assert swept(scenario, tmp_path).kept == 0
        times = {path: path.stat().st_mtime_ns for path in manifests(tmp_path)}
        first, second, *rest = sorted(times)
        shutil.rmtree(first.parent)
        data = json.loads(second.read_text())
        second.write_text(json.dumps({**data, "plan_sha256": "0"}))
        again = swept(scenario, tmp_path)
        assert again.kept == 4
        assert all(path.stat().st_mtime_ns == times[path] for path in rest)
        assert json.loads(second.read_text())["plan_sha256"] == data["plan_sha256"]
        assert swept(scenario.with_axes(["seed=4,5,6,7"]), tmp_path).kept == 6
        assert swept(scenario.with_settings(["link.path0.rate=9 Mbps"]), tmp_path).kept == 0

    def test_a_sweep_that_is_stopped_shows_no_figures_that_are_not_its_own(
        self, scenario: Scenario, tmp_path: Path
    ) -> None:
        def stop(done: int, total: int) -> None:
            if done == total - 1:
                raise KeyboardInterrupt

        def stopped(of: Scenario) -> None:
            one = sweeps.Sweep("small", of, sweeps.points(of), tmp_path)
            with pytest.raises(KeyboardInterrupt):
                sweeps.run([one], jobs=1, save=output.save, progress=stop)

        swept(scenario, tmp_path)
        stopped(scenario.with_axes(["seed=4,5,6,7"]))
        assert StoredSweep.read(tmp_path).points.height == 6
        stopped(scenario.with_settings(["link.path0.rate=9 Mbps"]))
        with pytest.raises(OutputError, match=r"no points\.parquet; the command that began it goes on, and makes it"):
            StoredSweep.read(tmp_path)

    def test_its_folder_is_not_taken_for_a_runs(self, scenario: Scenario, tmp_path: Path) -> None:
        swept(scenario.with_settings(["seed=4"]), tmp_path)
        with pytest.raises(OutputError, match=r"holds a sweep; name the folder of one of its points$"):
            Recording.load(tmp_path)

    def test_results_of_another_version_are_not_kept(self, scenario: Scenario, tmp_path: Path) -> None:
        swept(scenario, tmp_path)
        one = sweeps.Sweep("small", scenario, sweeps.points(scenario), tmp_path)
        assert sweeps.run([one], save=output.save, versions={"polypath": "0.0.0"})[0].kept == 0

    def test_results_of_another_kernel_are_not_kept(
        self, scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class OnKernel(Simulator):
            release = "6.12"

            def versions(self) -> dict[str, str]:
                return {"linux": self.release}

            def run(self, plan: Plan, options: Options = Options(), progress: Progress = no_progress) -> Recording:
                made = super().run(plan, options, progress)
                return replace(made, metadata=replace(made.metadata, versions=self.versions()))

        monkeypatch.setattr(engines, "REGISTRY", {"sim": OnKernel})
        swept(scenario, tmp_path)
        assert swept(scenario, tmp_path).kept == 6
        monkeypatch.setattr(OnKernel, "release", "6.13")
        assert swept(scenario, tmp_path).kept == 0
        assert json.loads((tmp_path / "sweep.json").read_text())["versions"] == {"linux": "6.13"}

    def test_what_a_killed_process_left_half_written_goes(self, scenario: Scenario, tmp_path: Path) -> None:
        swept(scenario, tmp_path)
        left = tmp_path / "seed=99"
        (left / folder.PARTIAL / "series").mkdir(parents=True)
        (left / folder.LOCK).touch()
        beside = tmp_path / sweeps.points(scenario)[0].folder / folder.PARTIAL
        beside.mkdir()
        (tmp_path / "empty").mkdir()
        assert swept(scenario, tmp_path).kept == 6
        assert not left.exists()
        assert not beside.exists()
        assert (tmp_path / "empty").exists()

    def test_a_folder_that_is_no_result_is_left_alone(self, scenario: Scenario, tmp_path: Path) -> None:
        swept(scenario.with_settings(["seed=1"]), tmp_path)
        point = sweeps.points(scenario)[0]
        (tmp_path / point.folder).mkdir()
        (tmp_path / point.folder / "plan.json").write_text("my plan for the thesis")
        (failure,) = swept(scenario, tmp_path).failures
        assert failure[0].folder == point.folder
        assert "is not empty and is not a Polypath result" in failure[1]
        assert (tmp_path / point.folder / "plan.json").read_text() == "my plan for the thesis"

    @pytest.mark.parametrize("content", [b"", b"PAR1 half"])
    def test_a_table_that_cannot_be_read_is_computed_again(
        self, scenario: Scenario, tmp_path: Path, content: bytes
    ) -> None:
        swept(scenario, tmp_path)
        table = tmp_path / sweeps.points(scenario)[1].folder / "series" / "subflows.parquet"
        table.write_bytes(content)
        again = swept(scenario, tmp_path)
        assert (again.kept, again.failures) == (5, [])
        assert Recording.load(table.parent.parent).table("subflows").height > 0

    def test_a_file_that_a_person_changed_is_kept_and_named(self, scenario: Scenario, tmp_path: Path) -> None:
        swept(scenario, tmp_path)
        changed = tmp_path / sweeps.points(scenario)[1].folder / "scenario.toml"
        changed.write_text("# my own\n")
        again = swept(scenario, tmp_path)
        (failure,) = again.failures
        assert again.kept == 5
        assert failure[1] == f"{changed} was changed since it was written; move it away, or name another folder"
        assert changed.read_text() == "# my own\n"


def test_a_process_that_dies_takes_no_other_point_with_it() -> None:
    def square(number: int) -> int:
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return number * number

    found = dict(executor.Local(2).map(square, range(5)))
    lost = found.pop(2)
    assert isinstance(lost, executor.WorkerLost)
    assert found == {0: 0, 1: 1, 3: 9, 4: 16}


class TestStopped:
    #: No machine is through with that many before the signal.
    POINTS = 400

    @pytest.fixture
    def file(self, text: str, tmp_path: Path) -> Path:
        path = tmp_path / "small.toml"
        long = text.replace('"1 s"', '"100 s"').replace("seed = [4, 5, 6]", f"seeds = {self.POINTS // 2}")
        path.write_text(long)
        return path

    @pytest.mark.parametrize("jobs", ["1", "2"])
    def test_ctrl_c_keeps_what_is_done(self, file: Path, tmp_path: Path, jobs: str) -> None:
        out = tmp_path / "out"
        process = started(file, "--out", out, "--jobs", jobs)
        wait_for_points(out, 2)
        os.killpg(process.pid, signal.SIGINT)
        _, error = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 130, error
        # a slow machine has said before how far it was
        told = re.search(
            rf"^(\d+) of {self.POINTS} points are done; the same command goes on from there$", error, re.MULTILINE
        )
        assert told is not None, error
        assert int(told[1]) <= len(manifests(out)) < self.POINTS
        assert not list(out.glob(".*"))

    def test_kill_keeps_what_is_done_and_leaves_no_process(self, file: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        process = started(file, "--out", out, "--jobs", "2")
        wait_for_points(out, 2)
        process.kill()
        process.communicate(timeout=LIMIT_S)
        wait(lambda: not session(process.pid))
        before = {path: path.stat().st_mtime_ns for path in manifests(out)}
        assert 2 <= len(before) < self.POINTS
        short = file.read_text().replace(f"seeds = {self.POINTS // 2}", f"seeds = {1 + len(before) // 2}")
        file.write_text(short)
        finished = started(file, "--out", out, "--jobs", "2")
        finished.communicate(timeout=LIMIT_S)
        assert finished.returncode == 0
        assert all(path.stat().st_mtime_ns == time_ns for path, time_ns in before.items())
        states = [point["state"] for point in json.loads((out / "sweep.json").read_text())["points"]]
        assert set(states) == {"done"}
        assert not list(out.glob(".*"))
