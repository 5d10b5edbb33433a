"""Two plans of the day on both engines; `make beside` is the campaign."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from polypath.engines import EngineError
from polypath.engines.linux.kernel import KernelError, find

from . import program
from .__main__ import apart, figures, outcomes
from .again import RUNS, Again, different
from .compared import GENERATOR, Compared, End, compared

TODAY = datetime.now(UTC).date().toordinal()


@pytest.mark.parametrize("number", [10 * TODAY + place for place in range(2)])
def test_both_deliver_the_same_bytes(number: int) -> None:
    if not GENERATOR.exists():
        pytest.skip("the generator is not built")
    try:
        find()
    except KernelError as error:
        pytest.skip(str(error))
    assert [row.fault for row in compared(number) if row.fault] == []


def row(number: int, sim: End, linux: End, kind: str = "bulk", lossless: bool = True) -> Compared:
    return Compared(number, "a", kind, "tcp", lossless, {"sim": sim, "linux": linux})


def end(received: int = 5, took: float = 2.0, state: str = "finished") -> End:
    return End(state, 0, received, took)


def test_other_bytes_are_a_fault_where_they_do_not_depend_on_time() -> None:
    assert row(1, end(), end()).fault is None
    assert "other bytes" in str(row(1, end(), end(6)).fault)
    assert row(1, end(), end(6), kind="stream").fault is None
    assert row(1, end(), end(2, state="timed-out")).fault is None
    assert Compared(1, "", failed=str(EngineError("x"))).fault == "x"


def test_a_row_comes_back_as_it_was_written() -> None:
    for each in (row(1, end(), end(6)), Compared(2, "", refused="no")):
        assert Compared.load(each.json()) == each
    once_more = repeated(3, [1.0, None], [2.0, 3.0])
    assert Again.load(once_more.json()) == once_more


def test_the_page_counts_and_names() -> None:
    rows = [row(number, end(took=2.0 + number / 100), end()) for number in range(20)]
    rows += [row(77, end(took=20.0), end()), row(78, end(state="timed-out"), end())]
    assert outcomes(rows)[2:] == ["| finished | finished | 21 |", "| timed-out | finished | 1 |"]
    (line,) = figures(rows)[2:]
    assert line.startswith("| tcp, queues alone lose | 21 | 1.1")
    assert line.endswith("| 52% | 95% |")
    assert [each.number for each in rows if each.far] == [77, 78]


def repeated(number: int, sim: list[float | None], linux: list[float | None]) -> Again:
    return Again(number, "a", "bulk", "tcp", {"sim": sim, "linux": linux})


def test_draws_that_overlap_are_chance_and_others_are_not() -> None:
    fast: list[float | None] = [1 + place / 100 for place in range(RUNS)]
    slow: list[float | None] = [9 + place / 100 for place in range(RUNS)]
    never: list[float | None] = [None] * RUNS
    mixed = [*fast[: RUNS // 2], *never[: RUNS // 2]]
    rows = [repeated(number, fast, fast) for number in range(2)]
    rows += [repeated(77, fast, slow), repeated(78, never, slow), repeated(79, mixed, fast), repeated(80, never, never)]
    found = different(rows)
    assert [each.number for each, _ in found] == [77, 78]
    # of all ways to deal 16 runs out, two put one engine's before the other's
    assert found[0][1] == pytest.approx(6 * 2 / 12870)
    assert apart(rows)[2:] == [
        "| 77 | bulk, tcp | 1.04 | 9.04 | 0.00093 | **not known** |",
        "| 78 | bulk, tcp | not done | 9.04 | 0.00093 | **not known** |",
    ]
    assert apart(rows[:2]) == ["None."]


def test_another_program_has_rows_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = SimpleNamespace(sha256="1")
    monkeypatch.setattr(program, "find", lambda: kernel)
    generator, drawn = tmp_path / "campaign", tmp_path / "campaign" / "drawn.py"
    generator.mkdir()
    other = tmp_path / "generator"
    found = set[str]()
    for content, own, kernel.sha256 in (("a", "", "1"), ("b", "", "1"), ("b", "", "2"), ("b", "c", "2")):
        drawn.write_text(content)
        other.write_text(own)
        assert program.program(generator, other) == program.program(generator, other)
        found.add(program.program(generator, other))
    assert len(found) == 4
