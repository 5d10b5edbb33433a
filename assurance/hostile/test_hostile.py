"""A few commands on a few machines, and that the judge finds what is wrong; `make hostile` tries all of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from polypath.results import Recording

from .__main__ import all_tried
from .commands import COMMANDS
from .judge import judge
from .machines import MACHINES
from .place import Done, Place, Prepared
from .registry import Start, Wrong

NAMES = ("full-disk:run", "home-read-only:validate", "all-closed:run")


@pytest.mark.skipif(
    subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "true"], capture_output=True, check=False
    ).returncode
    != 0,
    reason="no namespaces can be made on this machine",
)
def test_each_works_or_ends_with_one_true_line() -> None:
    outcomes = [outcome for of_one in all_tried(NAMES, 1) for outcome in of_one]
    assert [outcome for outcome in outcomes if outcome.wrong] == []
    assert {outcome.machine for outcome in outcomes} == {name.partition(":")[0] for name in NAMES}
    assert {outcome.worked for outcome in outcomes} == {True, False}


class Friendly:
    """What a command did there that is not wrong, to be spoilt."""

    def __init__(self, folder: Path, name: str) -> None:
        self.command = COMMANDS[name]
        self.prepared = Prepared(folder / "prepared")
        for each in (self.prepared.work, self.prepared.folder / f"{name}.made"):
            each.mkdir(parents=True)
        (self.prepared.work / "small.toml").write_text("mine")
        for what, text in (("out", "shown"), ("err", "results in out\n"), ("code", "0")):
            (self.prepared.folder / f"{name}.{what}").write_text(text)
        self.place = Place(folder / "place", self.prepared, self.command)
        for each in (self.place.work, self.place.home, self.place.temporary):
            each.mkdir(parents=True)
        self.place.fill()
        self.place.found = self.place.listed()
        self.done = Done(0, "shown", "results in out\n", [])

    def judge(self, machine: str = "full-disk") -> None:
        judge(self.place, self.command, MACHINES[machine], Start(), self.done)


@pytest.fixture
def friendly(tmp_path: Path) -> Friendly:
    made = Friendly(tmp_path, "run")
    made.judge()
    return made


FAILED = "polypath: cannot write out/series/x.parquet: No space left on device\n"


def test_one_true_line_is_right(friendly: Friendly) -> None:
    friendly.done = Done(2, "", FAILED, [])
    friendly.judge()
    friendly.done = Done(2, "", f"polypath: a.toml runs code with your rights: b.py\n{FAILED}", [])
    friendly.judge()


@pytest.mark.parametrize(
    ("done", "wrong"),
    [
        (Done(2, "", "", []), "ended with 2 and 0 lines"),
        (Done(2, "", FAILED * 2, []), "ended with 2 and 2 lines"),
        (Done(2, "", "No space left on device\n", []), "ended with 2 and said"),
        (Done(2, "", "polypath: the kernel is not built\n", []), "it blames something else"),
        (Done(2, "", f"Traceback (most recent call last):\n{FAILED}", []), "a traceback"),
        (Done(-6, "", FAILED, []), "ended with -6"),
        (Done(0, "shown", FAILED, []), "it succeeded, and said"),
        (Done(0, "shown otherwise", "", []), "prints something else"),
        (Done(0, "shown", "", ["7"]), "processes are left: 7"),
    ],
)
def test_what_is_said_badly_is_found(friendly: Friendly, done: Done, wrong: str) -> None:
    friendly.done = done
    with pytest.raises(Wrong, match=wrong):
        friendly.judge()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("work/small.toml", "small.toml was changed or removed"),
        ("work/stray", "stray is left behind"),
        ("tmp/polypath-1", "polypath-1 is left behind"),
        ("work/out/x", "left out/x, which a friendly"),
        ("work/out/.polypath.partial/x", "partial/x is left behind"),
    ],
)
def test_what_is_left_behind_is_found(friendly: Friendly, name: str, wrong: str) -> None:
    path = friendly.place.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("not theirs")
    with pytest.raises(Wrong, match=wrong):
        friendly.judge()


def test_a_result_of_a_run_that_did_not_happen_is_found(friendly: Friendly, recording: Recording) -> None:
    out = friendly.place.work / "out"
    recording.save(out)
    friendly.done = Done(2, "", FAILED, [])
    with pytest.raises(Wrong, match="is not what the run had"):
        friendly.judge()
    shutil.copytree(out, friendly.prepared.folder / "run.made" / "out")
    friendly.judge()
    next(out.rglob("*.parquet")).write_bytes(b"PAR1")
    with pytest.raises(Wrong, match="out counts as a result, but: cannot read"):
        friendly.judge()
    shutil.rmtree(out)
    friendly.done = Done(0, "shown", "", [])
    with pytest.raises(Wrong, match="it succeeded without out/"):
        friendly.judge()
