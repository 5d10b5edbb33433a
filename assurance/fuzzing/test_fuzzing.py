"""How slices run and are recorded; `make fuzz` is the campaign."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from . import campaign as running
from . import page
from .campaign import HANG, campaign, first_in_turn
from .fuzzers import CRASH, FIRST_SEED, ROOT, Attack, Command, Found, Fuzzer, Slice, Target
from .record import CLEAN, RECORD, Line, Taken, lines, opened

PROGRAM = Path("/programs/x")
BURN = "import time\nwhile time.process_time() < 0.1: pass\nprint('done')"


def line(fuzzer: str, **other: object) -> Line:
    given = {"date": "2026-11-26T12:00:00Z", "commit": "abc", "cpu_seconds": 36.0, "executions": 1000, "outcome": CLEAN}
    return Line(**{**given, **other, "fuzzer": fuzzer})  # type: ignore[arg-type]


class Script(Fuzzer):
    """Runs a program in Python, in whose output nothing is an execution."""

    def __init__(self, name: str, program: str, seconds: float | None = None) -> None:
        self.name, self.commit, self.program, self.seconds = name, "abc", program, seconds

    def slice(self, seconds: int, before: Sequence[Line]) -> Slice:
        return Ran(self.program, self.seconds)


class Ran(Slice):
    def __init__(self, program: str, seconds: float | None) -> None:
        self.seconds = seconds
        self.command = Command([sys.executable, "-c", program], Path(), {})

    def found(self, code: int, printed: str) -> Found:
        return Found(printed.count("done")) if code == 0 else Found(0, CRASH, artefact="crash-1", again="once more")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "BUILT", tmp_path / "built")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_what_is_recorded_comes_back_without_a_line_that_was_cut(tmp_path: Path) -> None:
    file = tmp_path / "record.jsonl"
    first, second = line("a", seeds=(3, 9)), line("b", outcome=CRASH, artefact="crash-1")
    with opened(file) as record:
        record.append(first)
    cut = file.read_text() + first.json()[:-5]
    file.write_text(cut)
    with opened(file) as record:
        assert record.lines == [first]
        record.append(second)
    assert file.read_text().startswith(cut)
    assert list(lines(file)) == [first, second]


def test_a_record_is_of_one_campaign_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "record.jsonl"
    with opened(file), pytest.raises(Taken, match="another campaign"), opened(file):
        pass
    with opened(file):
        pass


def test_the_one_that_rested_for_longest_is_next() -> None:
    fuzzers = [Script(name, "") for name in "abcd"]
    order = first_in_turn(fuzzers, [line("b"), line("a"), line("c"), line("b")])
    assert [it.name for it in order] == ["d", "a", "c", "b"]


@pytest.mark.parametrize("jobs", [1, 3])
def test_slices_follow_until_the_cpu_time_is_used_up(tmp_path: Path, jobs: int) -> None:
    with opened(tmp_path / "record.jsonl") as record:
        again = campaign([Script("a", BURN), Script("b", BURN)], record, 0.5, 0, jobs)
    assert again == []
    ran = list(lines(tmp_path / "record.jsonl"))
    assert {it.fuzzer for it in ran} == {"a", "b"}
    assert all(it.cpu_seconds >= 0.1 and it.executions == 1 for it in ran)
    before = sum(it.cpu_seconds for it in ran[:-jobs])
    assert before < 0.5 <= sum(it.cpu_seconds for it in ran)


def test_a_sleeper_uses_no_cpu_time(tmp_path: Path) -> None:
    slept = "import time; time.sleep(0.4)"
    with opened(tmp_path / "record.jsonl") as record:
        campaign([Script("a", slept), Script("b", BURN)], record, 0.15, 0, 1)
    by = {it.fuzzer: it.cpu_seconds for it in lines(tmp_path / "record.jsonl")}
    assert by["a"] < 0.3


def test_a_crash_is_recorded_and_the_others_go_on(tmp_path: Path) -> None:
    with opened(tmp_path / "record.jsonl") as record:
        again = campaign([Script("a", "raise SystemExit(77)"), Script("b", BURN)], record, 0.4, 0, 1)
    assert again == ["once more"]
    ran = list(lines(tmp_path / "record.jsonl"))
    assert [(it.outcome, it.artefact) for it in ran if it.fuzzer == "a"] == [(CRASH, "crash-1")]
    assert sum(it.outcome == CLEAN for it in ran) > 1


WILLING = "import signal, sys\nsignal.signal(signal.SIGUSR1, lambda *_: sys.exit(print('done')))\nwhile True: pass"


def test_a_slice_that_goes_on_is_asked_to_end(tmp_path: Path) -> None:
    with opened(tmp_path / "record.jsonl") as record:
        assert campaign([Script("a", WILLING, 0.2)], record, 0.1, 1, 1) == []
    (ran,) = lines(tmp_path / "record.jsonl")
    assert (ran.outcome, ran.executions) == (CLEAN, 1)
    assert ran.cpu_seconds >= 0.2


def test_what_does_not_end_is_a_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "PATIENCE", 1)
    with opened(tmp_path / "record.jsonl") as record:
        campaign([Script("a", "while True: pass")], record, 1, 0, 1)
    assert [it.outcome for it in lines(tmp_path / "record.jsonl")] == [HANG]


def test_a_campaign_that_is_stopped_loses_only_what_cannot_be_asked_to_end(tmp_path: Path) -> None:
    file, pid, ready = (tmp_path / name for name in ("record.jsonl", "pid", "ready"))
    willing = WILLING.replace("while", f"open({str(ready)!r}, 'w').close()\nwhile")
    hangs = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    scripts = f"[Script('a', BURN), Script('b', {willing!r}, 60), Script('c', {hangs!r})]"
    program = (
        "import signal\n"
        "from pathlib import Path\n"
        "from assurance.fuzzing.__main__ import stopped\n"
        "from assurance.fuzzing.campaign import campaign\n"
        "from assurance.fuzzing.record import opened\n"
        "from assurance.fuzzing.test_fuzzing import BURN, Script\n"
        "signal.signal(signal.SIGTERM, stopped)\n"
        f"with opened(Path({str(file)!r})) as record:\n"
        f"    campaign({scripts}, record, 9, 0, 2)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stderr=subprocess.DEVNULL)
    limit = time.monotonic() + 30
    while not (ready.exists() and pid.exists() and pid.read_text()) and time.monotonic() < limit:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) != 0
    assert [(it.fuzzer, it.outcome) for it in lines(file)] == [("a", CLEAN), ("b", CLEAN)]
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


PRINTED = """\
#2097152 pulse  cov: 96 ft: 237 corp: 53/2050b exec/s: 95325 rss: 401Mb
Done 2500000 runs in 22 second(s)
stat::number_of_executed_units: 2500000
stat::average_exec_per_sec:     113636
"""


def test_executions_of_a_target_are_those_that_libfuzzer_counts() -> None:
    found = Target("tcp", PROGRAM, "abc").slice(20, []).found(0, PRINTED)
    assert found == Found(2_500_000)
    assert Target("tcp", PROGRAM, "abc").slice(20, []).found(-signal.SIGUSR1, "") == Found(0)


def test_a_crash_of_a_target_names_its_input() -> None:
    slice_ = Target("tcp", PROGRAM, "abc").slice(20, [])
    (artefacts,) = (word.partition("=")[2] for word in slice_.command.words if word.startswith("-artifact_prefix="))
    printed = f"artifact_prefix='{artefacts}'; Test unit written to {artefacts}oom-12\n{PRINTED}"
    found = slice_.found(71, printed)
    assert (found.executions, found.outcome, found.artefact) == (2_500_000, CRASH, "oom-12")
    assert found.again == f"cargo +nightly fuzz run --fuzz-dir assurance/fuzz --sanitizer none tcp {artefacts}oom-12"
    assert slice_.found(1, "no such file").outcome == CRASH


def test_no_seed_of_an_attack_comes_twice() -> None:
    attack = Attack("tcp::blind", PROGRAM, "abc")
    first = attack.slice(20, [line("attack tcp::other", seeds=(0, FIRST_SEED * 2))])
    assert first.command.variables["POLYPATH_FUZZ_FIRST"] == str(FIRST_SEED)
    before = [line(attack.name, seeds=(FIRST_SEED, FIRST_SEED + 500), executions=500, cpu_seconds=5.0)]
    second = attack.slice(20, before)
    assert second.command.variables["POLYPATH_FUZZ_FIRST"] == str(FIRST_SEED + 500)
    assert second.command.variables["POLYPATH_FUZZ_CASES"] == "2000"


def test_what_an_attack_prints_says_how_far_it_came() -> None:
    before = [line("attack tcp::blind", seeds=(FIRST_SEED, FIRST_SEED + 10), executions=10, cpu_seconds=1.0)]
    slice_ = Attack("tcp::blind", PROGRAM, "abc").slice(10, before)
    first = FIRST_SEED + 10
    found = slice_.found(0, "running 1 test\ntest tcp::blind ... blind: 100 cases, 9.8s\nok\n")
    assert found == Found(100, seeds=(first, first + 100))
    command = f"POLYPATH_FUZZ_SEED={first + 41} cargo test -p polypath-transport --test attack blind"
    found = slice_.found(101, f"thread panicked\nagain: {command}\nFAILED\n")
    assert found == Found(42, CRASH, (first, first + 42), str(first + 41), command)
    killed = slice_.found(-9, "running 1 test\n")
    assert (killed.outcome, killed.executions, killed.seeds) == (CRASH, 0, (first, first + 100))
    assert slice_.found(0, "running 0 tests\n").outcome == CRASH


def test_the_table_sums_up_by_fuzzer() -> None:
    ran = [line("b", commit="c1"), line("a", commit="c1+"), line("b", commit="c2", date="2026-12-01T00:00:00Z")]
    ran.append(line("b", commit="c2", outcome=CRASH, artefact="crash-1", executions=5))
    _, _, *rows = page.table(ran).splitlines()
    assert rows == [
        "| `a` | 0.01 | 1,000 | 0 | 2026-11-26 | 2026-11-26 | `c1+` |",
        "| `b` | 0.03 | 2,005 | 1 | 2026-11-26 | 2026-12-01 | `c1` to `c2`, 2 |",
        "| all | 0.04 | 3,005 | 1 | 2026-11-26 | 2026-12-01 | `c1` to `c2`, 3 |",
    ]


def test_the_table_goes_between_its_markers() -> None:
    text = f"a\n{page.BEGIN}\nold\n{page.END}\nb\n"
    assert page.replaced(text, "new") == f"a\n{page.BEGIN}\nnew\n{page.END}\nb\n"
    with pytest.raises(ValueError, match="fuzzed: begin"):
        page.replaced("a", "new")


def test_the_page_says_what_the_record_says() -> None:
    """Slices that ended since it was written may be missing."""
    ran = list(lines(RECORD))
    text = page.PAGE.read_text(encoding="utf-8")
    assert any(page.replaced(text, page.table(ran[:count])) == text for count in range(len(ran), -1, -1))


def test_seeds_of_the_record_are_apart() -> None:
    ran = [it for it in lines(RECORD) if it.seeds]
    for name in {it.fuzzer for it in ran}:
        spans = sorted(it.seeds for it in ran if it.fuzzer == name and it.seeds)
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
