"""The table of the documentation."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from .fuzzers import ROOT
from .record import CLEAN, Line

PAGE: Final = ROOT / "assurance" / "records" / "fuzzing.md"
BEGIN, END = "<!-- fuzzed: begin -->", "<!-- fuzzed: end -->"
HEAD: Final = ("fuzzer", "CPU time, h", "executions", "found", "first", "last", "commits")


def row(name: str, lines: list[Line]) -> str:
    seconds = sum(line.cpu_seconds for line in lines)
    found = sum(line.outcome != CLEAN for line in lines)
    dates = sorted(line.date[:10] for line in lines)
    commits = list(dict.fromkeys(line.commit for line in lines))
    between = f"`{commits[0]}`" if len(commits) == 1 else f"`{commits[0]}` to `{commits[-1]}`, {len(commits)}"
    cells = (
        name,
        f"{seconds / 3600:.2f}",
        f"{sum(line.executions for line in lines):,}",
        str(found),
        dates[0],
        dates[-1],
        between,
    )
    return f"| {' | '.join(cells)} |"


def table(lines: Iterable[Line]) -> str:
    """Sums by fuzzer, and of all."""
    every = list(lines)
    by: dict[str, list[Line]] = {}
    for line in every:
        by.setdefault(line.fuzzer, []).append(line)
    rows = [f"| {' | '.join(HEAD)} |", "|---|--:|--:|--:|---|---|---|"]
    rows += [row(f"`{name}`", by[name]) for name in sorted(by)]
    if every:
        rows.append(row("all", every))
    return "\n".join(rows)


def replaced(page: str, text: str) -> str:
    """A page with `text` between its markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no lines '{BEGIN}' and '{END}' in the page")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def write(lines: Iterable[Line], page: Path = PAGE) -> None:
    page.write_text(replaced(page.read_text(encoding="utf-8"), table(lines)), encoding="utf-8")
