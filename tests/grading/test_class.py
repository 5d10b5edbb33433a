"""A class of twenty, of whom some hand in what does not work: each has its own points and words, and harms no other."""

from __future__ import annotations

import csv
import json
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ..commands import called
from ..two_paths import fetching

NETWORK = fetching("200 kB")
RUBRIC = """
title = "Two paths"
submission = "scheduler"
class = "Mine"
scenario = "network.toml"
place = "host.server.scheduler"
limits = { cpu = "1 s", memory = "300 MB" }

[vary]
"link.lte.delay" = ["30 ms", "100 ms"]

[[points]]
name = "it arrives"
points = 1
measure = "unfinished"
max = 0

[[points]]
name = "quickly"
points = 3
measure = "completion"
connection = "get"
max = 0.25
share = true
"""


def scheduler(body: str, before: str = "") -> str:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return f"{before}\nclass Mine:\n    def select(self, view):\n{lines}\n"


READY = "ready = [path.index for path in view.paths if path.ready]\n"
GOOD = scheduler(READY + "return ready[0] if ready else None")
SLOW = scheduler("return len(view.paths) - 1")
NOISY = scheduler(
    "import sys\nprint('x' * 1000)\nsys.stderr.write('y' * 1000)\n" + READY + "return ready[0] if ready else None"
)


class Wrong(NamedTuple):
    """What does not work, and the words for it."""

    text: str | None
    said: str


#: A file without text is not there.
WRONG = {
    "class-name": Wrong(GOOD.replace("Mine", "Mien"), "class-name.py: no class 'Mine'; did you mean 'Mien'?"),
    "deep-exit": Wrong(scheduler("import os\nos._exit(0)"), "it ended the process that ran it, with exit code 0"),
    "endless-deaf": Wrong(
        scheduler("import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"),
        "stopped after 1 s of CPU time",
    ),
    "endless": Wrong(scheduler("while True: pass"), "stopped after 1 s of CPU time"),
    "exception": Wrong(scheduler("return 1 / 0"), "exception.py:4: ZeroDivisionError: division by zero"),
    "exit": Wrong(scheduler("import sys\nsys.exit(3)"), "exit.py:5: SystemExit: 3"),
    "killed": Wrong(scheduler("import os\nos.kill(os.getpid(), 9)"), "it ended the process that ran it, by SIGKILL"),
    "hog": Wrong(scheduler("held = [bytes(50_000_000) for _ in range(100)]\nreturn 0"), "hog.py:4: MemoryError"),
    "missing": Wrong(None, "missing.py is missing"),
    "no-method": Wrong("class Mine:\n    pass\n", "no-method.py:1: class 'Mine' has no method 'select(self, view)'"),
    "nonsense": Wrong(scheduler("return 'wifi'"), "nonsense.py"),
    "syntax": Wrong("class Mine\n", "syntax.py:1: expected ':'"),
}
#: Of all who hand in, what they do.
CLASS = {
    **{f"good-{number}": GOOD for number in range(4)},
    **{f"noisy-{number}": NOISY for number in range(2)},
    **{f"slow-{number}": SLOW for number in range(2)},
    **{name: wrong.text for name, wrong in WRONG.items()},
}


def handed_in(folder: Path, of: dict[str, str | None]) -> list[Path]:
    """The rubric and what is handed in, the last name first."""
    folder.joinpath("network.toml").write_text(NETWORK)
    folder.joinpath("rubric.toml").write_text(RUBRIC)
    paths = []
    for name, text in sorted(of.items(), reverse=True):
        paths.append(folder / f"{name}.py")
        if text is not None:
            paths[-1].write_text(text)
    return paths


def graded(folder: Path, paths: list[Path], capsys: Any, *options: str | Path) -> dict[str, Any]:
    outcome = called(capsys, "grade", folder / "rubric.toml", *paths, "--json", *options)
    assert outcome.returncode == 0, outcome.stderr
    assert f"{len(paths)} submissions are code that runs on this machine with your rights" in outcome.stderr
    grades = json.loads(outcome.stdout)["grades"]
    assert [each["submission"] for each in grades] == sorted(path.stem for path in paths)
    return {each["submission"]: each for each in grades}


def words(grade: dict[str, Any]) -> str:
    return " ".join([grade["problem"] or "", *(mark["seen"] for mark in grade["marks"])])


def test_some_of_each_kind(tmp_path: Path, capsys: Any) -> None:
    some = {name: CLASS[name] for name in ("good-0", "endless", "missing")}
    found = graded(tmp_path, handed_in(tmp_path, some), capsys)
    require(found)


def require(found: dict[str, Any]) -> None:
    """That each has what it deserves."""
    for name, grade in found.items():
        if name in WRONG:
            assert grade["points"] == 0, name
            assert WRONG[name].said in words(grade), name
        else:
            assert grade["problem"] is None
            assert grade["points"] == {"good": 4, "noisy": 4, "slow": 1}[name.partition("-")[0]], name


SLEEPS = scheduler("import subprocess, time\nsubprocess.Popen(['sleep', '1000'], cwd='.')\ntime.sleep(1000)")


@pytest.mark.slow
def test_what_sleeps_is_ended_with_what_it_started(tmp_path: Path, capsys: Any) -> None:
    paths = handed_in(tmp_path, {"asleep": SLEEPS})
    (tmp_path / "rubric.toml").write_text(RUBRIC.replace('"1 s"', '"1 s", wall = "5 s"'))
    before = sleepers()
    outcome = called(capsys, "grade", tmp_path / "rubric.toml", *paths)
    assert "stopped after 5 s on the clock" in outcome.stdout
    assert sleepers() <= before


def sleepers() -> set[str]:
    """The processes that sleep so long."""
    found = set()
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if command.read_bytes() == b"sleep\0001000\0":
                found.add(command.parent.name)
    return found


@pytest.mark.slow
def test_the_whole_class(tmp_path: Path, capsys: Any) -> None:
    """Twenty, in the order of their names, and the same with another number of processes."""
    paths = handed_in(tmp_path, CLASS)
    assert len(paths) == 20
    found = graded(tmp_path, paths, capsys, "--csv", tmp_path / "grades.csv", "--jobs", "2")
    require(found)
    assert found["good-0"]["marks"][1]["seen"] == found["good-1"]["marks"][1]["seen"]
    assert graded(tmp_path, paths[::-1], capsys, "--jobs", "3") == found
    with (tmp_path / "grades.csv").open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert {row["submission"]: float(row["points"]) for row in rows} == {
        name: grade["points"] for name, grade in found.items()
    }
    assert all(WRONG[row["submission"]].said in " ".join(row.values()) for row in rows if row["submission"] in WRONG)
