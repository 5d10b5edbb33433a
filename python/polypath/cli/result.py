"""A run's result as a table: goodput, share and RTT of each subflow, and the rate over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.markup import escape

from polypath.cli import many
from polypath.cli.console import GAP, out, table
from polypath.cli.sparkline import WIDTH, means, sparkline
from polypath.measures import REGISTRY, Measure
from polypath.measures.measure import PART
from polypath.results import Recording, metrics, notes, other_tables
from polypath.results.phrases import milliseconds, significant

_MEASURES: Final = tuple(each for each in REGISTRY.values() if each.of == "subflow")
_HEADINGS: Final = ("connection", "transport", *(each.heading for each in _MEASURES))
_NUMBERS: Final = frozenset(_HEADINGS[2:])
#: Fewer characters show no course.
_SPARKS: Final = 8


def show(recording: Recording, title: str) -> None:
    """Prints the result of one run, in quantiles where a row for each subflow would be too many."""
    found = [(each, metrics.subflows(recording, each)) for each in metrics.connections(recording)]
    more = list(other_tables.tables(recording))
    each_connection = len(found) <= many.ROWS
    each_subflow = each_connection and sum(len(own) for _, own in found) <= many.ROWS
    if each_connection and (found or not more):
        _show_each(recording, found, title, subflows=each_subflow)
    if not each_subflow:
        many.show(
            recording, many.groups(recording, found), "" if each_connection else title, connections=not each_connection
        )
    if each_connection:
        for connection, own in found:
            for line in notes.of(recording, connection, own if each_subflow else ()):
                out.print(escape(line))
    for number, each in enumerate(more):
        _print_table(each, title if not found and number == 0 else "")
    for host, told in recording.metadata.kernels.items():
        name, _, what = told.partition(": ")
        release, sha256 = what.split(", ")[:2]
        out.print(escape(f"{host}: kernel {name}, {release}, {sha256[:19]}"))
    if recording.metadata.interrupted:
        out.print(f"[yellow]interrupted at {recording.metadata.end_ns / 1e9:.3f} s of simulated time[/yellow]")


def _show_each(
    recording: Recording,
    found: Sequence[tuple[metrics.Connection, Sequence[metrics.Subflow]]],
    title: str,
    *,
    subflows: bool,
) -> None:
    """A row for each connection and, if `subflows`, for each of its subflows, with the rates where there is room."""
    rows: list[tuple[tuple[str, ...], Sequence[float], float]] = []
    for connection, own in found:
        rates = [] if connection.transport == "icmp" else metrics.goodput_series(recording, connection)[1]
        top = max(means(rates), default=0.0)
        rows.append((_connection(recording, connection), rates, top))
        for subflow in own if subflows else ():
            rates = metrics.subflow_series(recording, connection, subflow)[1] if subflow.is_counted else []
            rows.append((_subflow(recording, connection, subflow), rates, top))
    widths = [max(len(cell) for cell in column) for column in zip(_HEADINGS, *(row for row, _, _ in rows), strict=True)]
    room = out.width - sum(width + GAP for width in widths)
    sparks = min(WIDTH, room) if room >= _SPARKS else 0
    shown = table(*_HEADINGS, *(["rate"] if sparks else []), numbers=_NUMBERS, whole=_NUMBERS, title=title)
    for (name, *cells), course, top in rows:
        is_subflow = name.startswith(" ")
        line = [escape(name) if is_subflow else f"[bold]{escape(name)}[/bold]", *map(escape, cells)]
        shown.add_row(*line, *([sparkline(means(course, sparks), top)] if sparks else []))
    out.print(shown)


def _connection(recording: Recording, connection: metrics.Connection) -> tuple[str, ...]:
    goodput = metrics.goodput(recording, connection)
    nothing = goodput is None or not connection.bytes or connection.transport == "icmp"
    return (
        connection.name,
        connection.transport,
        "" if nothing else _mbps(goodput or 0.0),
        *([""] * (len(_MEASURES) - 1)),
    )


def _subflow(recording: Recording, connection: metrics.Connection, subflow: metrics.Subflow) -> tuple[str, ...]:
    """Its cells; rate, share and repetitions are left blank where bytes are not counted by path."""
    remarks = "".join(
        f", {remark}"
        for remark, applies in (("backup", subflow.backup), ("not established", subflow.established_ns is None))
        if applies
    )
    return (
        f"  {subflow.source} → {subflow.destination}{remarks}",
        subflow.interface,
        *(_cell(each, each.value(recording, connection, subflow)) for each in _MEASURES),
    )


def _cell(measure: Measure, value: float | None) -> str:
    if value is None:
        return ""
    if measure.unit is PART:
        return f"{value:.{measure.digits}%}"
    return milliseconds(1e6 * value) if measure.unit.data == "ms" else _mbps(1e6 * value)


def _mbps(bits_per_second: float) -> str:
    """Two decimals, more for a rate that would be nothing with them."""
    rate = bits_per_second / 1e6
    return f"{rate:.2f}" if rate >= 0.1 or rate == 0 else significant(rate, 2)


def _print_table(found: other_tables.Table, title: str) -> None:
    rows = table(*found.headings, numbers=frozenset(found.headings[found.words :]), title=title or None)
    for row in found.rows:
        rows.add_row(*map(escape, row))
    out.print(rows)
    if found.note:
        out.print(found.note, markup=False)
