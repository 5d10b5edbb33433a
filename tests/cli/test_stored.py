"""A stored result holds all that it needs to run again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import polypath as package
from polypath.results import Recording

SCHEDULER = """\
class Last:
    def select(self, view):
        ready = [index for index, path in enumerate(view.paths) if path.usable and path.ready]
        return ready[-1] if ready else None
"""
SCENARIO = """\
duration = "3 s"

[defaults]
path_manager = "fullmesh"
scheduler = "last.py:Last"

[host.client]
[host.server]
[router.r]

[link.a]
ends = ["client", "r"]
rate = { trace = "traces/slow.trace" }
delay = "10 ms"

[link.b]
ends = ["client", "r"]
rate = "10 Mbps"
delay = "20 ms"
loss = "1 %"

[link.server]
ends = ["r", "server"]

[[application]]
name = "page"
kind = "page"
transport = "mptcp"
client = "client"
server = "server"
csv = "objects.csv"
"""
OBJECTS = "object,size_bytes,after\n1,20000,\n2,400000,1\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A scenario with a scheduler, a trace and a page's table."""
    folder = tmp_path / "own"
    (folder / "traces").mkdir(parents=True)
    (folder / "last.py").write_text(SCHEDULER)
    (folder / "objects.csv").write_text(OBJECTS)
    (folder / "traces" / "slow.trace").write_text("2\n4\n5\n")
    (folder / "traces" / "fast.trace").write_text("1\n2\n")
    file = folder / "scenario.toml"
    file.write_text(SCENARIO)
    return file


def manifest(directory: Path) -> Any:
    return json.loads((directory / "manifest.json").read_text())


def hashes(directory: Path) -> dict[str, tuple[str, str]]:
    """The hashes of plan and recording, by the folders of runs."""

    def found() -> Iterator[tuple[str, tuple[str, str]]]:
        for path in sorted(directory.rglob("manifest.json")):
            made = manifest(path.parent)
            yield path.parent.name, (made["plan_sha256"], made["recording_sha256"])

    return dict(found())


def moved(directory: Path, own: Path) -> Path:
    """The result at another place, without the files that it was made of."""
    shutil.rmtree(own.parent)
    return Path(shutil.move(directory, directory.parent / "elsewhere"))


def test_a_run_runs_again_without_the_files_it_was_made_of(polypath: Any, own: Path, tmp_path: Path) -> None:
    assert polypath("run", own, "--seed", 7, "--out", tmp_path / "result").code == 0
    there = moved(tmp_path / "result", own)
    assert str(tmp_path) not in (there / "scenario.toml").read_text()
    assert {path.name for path in (there / "inputs").iterdir()} == {"last.py", "objects.csv", "slow.trace"}
    made = manifest(there)
    for number, target in enumerate((there, there / "scenario.toml", there / "plan.json")):
        again = tmp_path / f"again{number}"
        outcome = polypath("run", target, "--out", again)
        assert (outcome.code, manifest(again)["seed"]) == (0, 7), outcome.err
        assert hashes(again).popitem()[1] == (made["plan_sha256"], made["recording_sha256"])
        assert (again / "scenario.toml").read_text() == (there / "scenario.toml").read_text()


def test_a_sweep_runs_again_at_the_same_places(polypath: Any, own: Path, tmp_path: Path) -> None:
    axes = ("defaults.scheduler=default,own/last.py:Last", "link.b.delay=20 ms,40 ms", "seeds=2")
    own.write_text(
        own.read_text() + '[vary]\n"link.a.rate" = [{ trace = "traces/slow.trace" }, { trace = "traces/fast.trace" }]\n'
    )
    given = [word for axis in axes for word in ("--vary", axis)]
    assert polypath("run", own, *given, "--out", tmp_path / "sweep").code == 0
    there = moved(tmp_path / "sweep", own)
    before = {name: (there / name).read_bytes() for name in ("points.parquet", "statistics.parquet", "scenario.toml")}
    assert str(tmp_path) not in before["scenario.toml"].decode()
    assert polypath("run", there, "--out", tmp_path / "again").code == 0
    assert len(hashes(there)) == 16
    assert hashes(tmp_path / "again") == hashes(there)
    assert {name: (tmp_path / "again" / name).read_bytes() for name in before} == before
    one = sorted(there.glob("*/manifest.json"))[0].parent
    assert polypath("run", one, "--out", tmp_path / "one").code == 0
    assert hashes(tmp_path / "one").popitem()[1] == hashes(there)[one.name]


def test_a_plan_alone_runs_and_tells_of_its_code(polypath: Any, own: Path, tmp_path: Path) -> None:
    polypath("run", own, "--out", tmp_path / "result")
    plan = tmp_path / "alone.json"
    shutil.copy(tmp_path / "result" / "plan.json", plan)
    outcome = polypath("run", plan, "--out", tmp_path / "again")
    # the class has this content, which the run of its scenario told of
    assert (outcome.code, outcome.err) == (0, f"results in {tmp_path / 'again'}\n")
    assert not (tmp_path / "again" / "scenario.toml").exists()
    assert hashes(tmp_path / "again").popitem()[1] == hashes(tmp_path / "result").popitem()[1]
    plan.write_text(plan.read_text().replace("ready[-1]", "ready[0]"))
    assert polypath("run", plan).err == f"polypath: {plan} runs code with your rights: last.py\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "this is no plan: not JSON"),
        ("[]", "this is no plan of version 1, as a result's plan.json is"),
        ('{"version": 2}', "this is no plan of version 1, as a result's plan.json is"),
        ('{"version": 1, "capture": {}}', "this plan tells what captures show, and nothing can run it"),
        ('{"version": 1}', "the simulator cannot run this plan: not a plan: missing field"),
    ],
)
def test_what_is_no_plan_is_one_line(polypath: Any, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "some.json"
    file.write_text(text)
    outcome = polypath("run", file)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert outcome.err.startswith(f"polypath: {file}: {said}")


def test_a_plan_takes_no_settings(polypath: Any, own: Path, tmp_path: Path) -> None:
    polypath("run", own, "--out", tmp_path / "result")
    plan = tmp_path / "result" / "plan.json"
    for option in (("--set", "link.b.delay=1 ms"), ("--seed", "3"), ("--vary", "seeds=2"), ("--run", "a")):
        outcome = polypath("run", plan, *option)
        said = f"polypath: {option[0]} changes a scenario, and {plan} is a plan; run the scenario that it was made of\n"
        assert (outcome.code, outcome.err) == (2, said)
    assert polypath("run", tmp_path / "result", "--set", "link.b.delay=1 ms").code == 0


def test_a_folder_of_an_earlier_version_still_loads_and_says_what_runs(
    polypath: Any, own: Path, tmp_path: Path
) -> None:
    polypath("run", own, "--out", tmp_path / "result")
    there = tmp_path / "result"
    shutil.rmtree(there / "inputs")
    written = (there / "scenario.toml").read_text().replace("inputs/", f"{own.parent}/")
    (there / "scenario.toml").write_text(written)
    marker = manifest(there)
    marker["files"] = {name: each for name, each in marker["files"].items() if not name.startswith("inputs/")}
    (there / "manifest.json").write_text(json.dumps(marker))
    assert Recording.load(there)["page"].goodput_mbps
    shutil.rmtree(own.parent)
    outcome = polypath("run", there)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert outcome.err.endswith(f"no such file; polypath run {there / 'plan.json'} runs without it\n")
    assert polypath("run", there / "plan.json").code == 0


def test_a_folder_that_is_no_single_result_is_one_line(polypath: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert (
        polypath("run", "empty").err
        == "polypath: empty has neither a lab.toml nor results; polypath new lab NAME writes a lab\n"
    )
    polypath("run", "backup", "--out", "several")
    names = ("announced", "backup", "normal", "short-rto")
    listed = ", ".join(f"several/{name}" for name in names)
    assert polypath("run", "several").err == f"polypath: several has several results; name one: {listed}\n"
    assert polypath("run", "several/backup").code == 0


def test_another_engine_than_the_one_that_made_it_is_said(polypath: Any, own: Path, tmp_path: Path) -> None:
    polypath("run", own, "--out", "result")
    (tmp_path / "result" / "manifest.json").write_text(json.dumps({**manifest(Path("result")), "engine": "linux"}))
    said = "warning: result was made by engine linux, and this is sim; --engine linux runs it as it was\n"
    assert polypath("run", "result").err == said


def test_files_of_one_name_stay_apart(polypath: Any, own: Path, tmp_path: Path) -> None:
    other = own.parent / "other"
    other.mkdir()
    (other / "slow.trace").write_text("9\n10\n")
    text = own.read_text().replace('rate = "10 Mbps"', 'rate = { trace = "other/slow.trace" }')
    own.write_text(text)
    polypath("run", own, "--out", tmp_path / "result")
    there = moved(tmp_path / "result", own)
    assert sorted(path.read_text() for path in there.glob("inputs/**/slow.trace")) == ["2\n4\n5\n", "9\n10\n"]
    polypath("run", there, "--out", tmp_path / "again")
    assert hashes(tmp_path / "again").popitem()[1] == hashes(there).popitem()[1]


def test_python_stores_it_as_the_command_does(polypath: Any, own: Path, tmp_path: Path) -> None:
    package.run(own, seed=3, out=tmp_path / "result")
    package.run(own, seed=3).save(tmp_path / "saved")
    there = moved(tmp_path / "result", own)
    assert hashes(tmp_path / "saved").popitem()[1] == hashes(there).popitem()[1]
    for stored in (there, tmp_path / "saved"):
        loaded = package.load(stored)
        assert isinstance(loaded, Recording)
        loaded.save(tmp_path / "copy")
        polypath("run", tmp_path / "copy", "--out", tmp_path / "again")
        assert hashes(tmp_path / "again").popitem()[1] == hashes(there).popitem()[1]


def test_a_lab_with_a_class_of_its_own_is_stored_without_a_place(polypath: Any, tmp_path: Path) -> None:
    polypath("run", "python-scheduler", "--out", tmp_path / "lab")
    runs = [path.parent for path in (tmp_path / "lab").glob("**/scenario.toml")]
    assert runs
    assert not [path for path in runs if "python/polypath" in (path / "scenario.toml").read_text()]
    assert any((path / "inputs" / "weighted.py").exists() for path in runs)
