"""How mutants are drawn and counted; `make mutants` is the campaign."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from . import page, rust, shared
from .page import Reason, Sample, described
from .python import FAMILIES, where_types_are
from .shared import ASLEEP, LATE, NOTICED, ROOT, UNBUILT, Verdict, draw, kept, wilson

FILE = "crates/net/src/ids.rs"
LINES = (ROOT / FILE).read_text(encoding="utf-8").splitlines()


def verdict(line: int, outcome: str, stage: int = 0) -> Verdict:
    return Verdict("polypath-net", f"{FILE}:{line}:1: replace {line}", stage, outcome, "code", "tests")


def test_a_seed_draws_the_same_and_another_one_others() -> None:
    names = [str(number) for number in range(1000)]
    assert draw(names, 1, "a", 50) == draw(reversed(names), 1, "a", 50)
    assert draw(names, 1, "a", 80)[:50] == draw(names, 1, "a", 50)
    assert len({*draw(names, 1, "a", 50), *draw(names, 2, "a", 50), *draw(names, 1, "b", 50)}) > 120


def test_the_interval_is_the_one_of_wilson() -> None:
    """Newcombe 1998, table I, method 3."""
    for (hits, of), bounds in {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0.0, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }.items():
        assert wilson(hits, of) == pytest.approx(bounds, abs=5e-5)
    assert wilson(0, 0) == (0, 1)


def test_what_is_kept_comes_back_without_a_line_that_was_cut(tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    assert list(kept(file)) == []
    file.write_text(verdict(1, NOTICED).json() + "\n" + verdict(2, ASLEEP).json()[:-5])
    assert list(kept(file)) == [verdict(1, NOTICED)]


def test_a_new_test_may_wake_and_a_new_code_begins_again() -> None:
    for outcome, again in ((NOTICED, False), (UNBUILT, False), (LATE, False), (ASLEEP, True)):
        assert verdict(1, outcome).holds("code", "others") is not again
        assert verdict(1, outcome).holds("code", "tests")
        assert not verdict(1, outcome).holds("changed", "tests")


@pytest.mark.parametrize(
    ("script", "code"), [("raise SystemExit(3)", 3), ("while True: pass", None), ("import time; time.sleep(1)", 0)]
)
def test_tests_are_hung_once_they_took_too_much_cpu_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, code: int | None
) -> None:
    monkeypatch.setattr(shared, "TREE", tmp_path)
    assert shared.ended([sys.executable, "-c", script], {}, 1) == code


def test_the_page_counts_what_became_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = [verdict(1, NOTICED), verdict(2, NOTICED, 1), verdict(3, LATE), verdict(4, UNBUILT)]
    verdicts += [verdict(5, ASLEEP, 1), verdict(6, ASLEEP, 1)]
    stated = [Reason(f"{FILE}: replace 5", LINES[4].strip(), "no one can tell", equivalent=True)]
    samples = [Sample(rust.NET, 7, 1234, verdicts)]
    (row,) = page.counts(samples, stated)[2:]
    counted, shares = "1,234 | 6 | 1 | 1 | 1 | 1 | 2", "3 of 5, 60.0% (23.1% to 88.2%) | 3 of 4, 75.0% (30.1% to 95.4%)"
    assert row == f"| `polypath-net` | 7 | {counted} | {shares} |"
    first, second = page.asleep(samples, stated)[2:]
    assert first.endswith("| Equivalent: no one can tell. |")
    assert second.startswith(f"| `{FILE}: replace 6` | ")
    assert second.endswith(" |  |")
    assert page.stale(samples, stated) == []
    monkeypatch.setattr(page.Reason, "all", lambda: stated)
    assert row in page.page(samples)


def test_a_reason_is_stale_once_its_mutant_is_noticed_or_its_line_is_gone() -> None:
    samples = [Sample(rust.NET, 7, 1, [verdict(1, NOTICED)])]
    stated = [
        Reason(f"{FILE}: replace 1", LINES[0].strip(), "a"),
        Reason(f"{FILE}: replace 2", "no such line", "b"),
        Reason("crates/net/src/no.rs: replace 2", "", "c"),
        Reason(f"{FILE}: replace 2", LINES[1].strip(), "d"),
    ]
    assert [line[-1] for line in page.stale(samples, stated)] == ["a", "b", "c"]


def test_the_reasons_are_read() -> None:
    assert all(reason.text and reason.line for reason in Reason.all())


def test_a_name_says_where_and_what() -> None:
    assert described(f"{FILE}:1:1: replace > with >= in a") == (f"{FILE}: replace > with >= in a", LINES[0].strip())
    name = "python/polypath/results/video.py:1:9: AddNot 3"
    assert described(name)[0] == "python/polypath/results/video.py: AddNot"


def test_types_are_no_place_for_a_fault() -> None:
    source = "def f(a: int | None = 1 | 2) -> int | str:\n    b: int | None = 3 | 4\n"
    lines = source.splitlines()
    ors = [(row + 1, column) for row, line in enumerate(lines) for column, it in enumerate(line) if it == "|"]
    typed = [any(start <= place < end for start, end in where_types_are(source)) for place in ors]
    assert typed == [True, False, True, True, False]


def test_families_are_apart() -> None:
    assert sum(map(len, FAMILIES)) == len(set().union(*FAMILIES))
