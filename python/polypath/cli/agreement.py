"""Two engines side by side: a run on one engine, and the table of agreement of their figures, on a terminal and as a
page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.markup import escape

from polypath import engines
from polypath.cli import progress
from polypath.cli.console import out, table
from polypath.cli.numbers import rounded
from polypath.results import Recording
from polypath.scenario import Plan
from polypath.statistics.fidelity import NOT_COMPARED, OFF, OK, SHARE_TOLERANCE, TOLERANCE, Row, Verdict

#: What counts as agreement.
WITHIN = f"figures within {TOLERANCE:.0%}, shares within {SHARE_TOLERANCE:g} points"
_SHOWN: Final[Mapping[Verdict, str]] = {OK: "[green]ok[/green]", OFF: "[bold red]off[/bold red]"}
_WRITTEN: Final[Mapping[Verdict, str]] = {OFF: "**off**"}


def count(subject: str, verdicts: Sequence[Verdict]) -> str:
    """How many of the scenarios or runs agree."""
    bare = verdicts.count(NOT_COMPARED)
    said = f"{verdicts.count(OK)} of {len(verdicts) - bare} {subject} agree: {WITHIN}"
    return f"{said}; {bare} more {'has' if bare == 1 else 'have'} no figure to compare" if bare else said


def recorded(engine: engines.Engine, name: str, plan: Plan) -> Recording:
    """The engine's Recording, with a bar under that name. Raises KeyboardInterrupt where the run was interrupted."""
    with progress.shown(name) as callback:
        recording = engine.run(plan, engines.Options(), callback)
    if recording.metadata.interrupted:
        raise KeyboardInterrupt
    return recording


def show(subject: str, compared: Sequence[tuple[str, Sequence[Row]]], base: str, other: str) -> None:
    """A table on the terminal: a group of lines for each name and its rows."""
    columns = _columns(base, other)
    shown = table(subject, *columns, numbers=frozenset(columns[1:-1]))
    for name, rows in compared:
        for lead, row in _led((escape(name),), rows):
            verdict = _SHOWN.get(row.verdict, row.verdict)
            shown.add_row(*lead, escape(_figure(row, rows)), *_cells(row), verdict)
    out.print(shown)


def markdown(
    leading: Mapping[str, str], compared: Sequence[tuple[Sequence[str], Sequence[Row]]], base: str, other: str
) -> Iterator[str]:
    """The lines of a Markdown table. `leading`: headings and rules of the first columns, filled once a group."""
    yield _line((*leading, *_columns(base, other))).replace("|  |", "| |")
    yield f"|{'|'.join((*leading.values(), '---', '---:', '---:', '---:', '---:', '---'))}|"
    for first, rows in compared:
        for lead, row in _led(first, rows):
            yield _line((*lead, _figure(row, rows), *_cells(row), _WRITTEN.get(row.verdict, row.verdict)))


def _columns(base: str, other: str) -> tuple[str, ...]:
    return ("figure", base, other, f"{base}/{other}", "share, points", "")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _led(first: Sequence[str], rows: Sequence[Row]) -> Iterator[tuple[Sequence[str], Row]]:
    for index, row in enumerate(rows):
        yield (first if index == 0 else [""] * len(first)), row


def _figure(row: Row, rows: Sequence[Row]) -> str:
    of = f" of {row.connection}" if any(other.connection != row.connection for other in rows) else ""
    return f"{row.measure}{of}, {row.unit}"


def _cells(row: Row) -> tuple[str, str, str, str]:
    return (
        _mean(row.value, row.error),
        _mean(row.reference, row.reference_error),
        "" if row.ratio is None else f"{row.ratio:.3f}",
        "" if row.share_difference is None else f"{row.share_difference:.1f}",
    )


def _mean(value: float | None, error: float | None) -> str:
    if value is None or not error:
        return _number(value)
    return f"{rounded(value, error)} ± {rounded(error, error)}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"
