"""A run's result as a table: goodput, share and RTT of each subflow, and the rate over time."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Final

from rich.markup import escape

from polypath.cli import many
from polypath.cli.console import GAP, out, table
from polypath.cli.sparkline import WIDTH, means, sparkline
from polypath.results import Recording, bridges, completions, control, metrics, notes

_HEADINGS: Final = ("connection", "transport", "Mbps", "share", "RTT ms", "resent")
_NUMBERS: Final = frozenset(_HEADINGS[2:])
#: How a program of the machine ended.
_ENDED: Final = {"exited": "by itself", "killed": "by a signal", "ended": "with the run", "open": "not"}
#: Fewer characters show no course.
_SPARKS: Final = 8


def show(recording: Recording, title: str) -> None:
    """Prints the result of one run, in quantiles where a row for each subflow would be too many."""
    found = [(each, metrics.subflows(recording, each)) for each in metrics.connections(recording)]
    each_connection = len(found) <= many.ROWS
    each_subflow = each_connection and sum(len(own) for _, own in found) <= many.ROWS
    if each_connection and (found or not recording.table("programs").height):
        _show_each(recording, found, title, subflows=each_subflow)
    if not each_subflow:
        many.show(
            recording, many.groups(recording, found), "" if each_connection else title, connections=not each_connection
        )
    if each_connection:
        for connection, own in found:
            for line in notes.of(recording, connection, own if each_subflow else ()):
                out.print(escape(line))
    for group, completed in completions.of_groups(recording).items():
        _print_completions(group, completed)
    _print_controller(recording)
    _print_bridges(recording)
    _print_programs(recording, "" if found else title)
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
        counted = notes.are_counted(connection, own)
        for subflow in own if subflows else ():
            rates = metrics.subflow_series(recording, connection, subflow)[1] if counted else []
            rows.append((_subflow(recording, connection, subflow, counted), rates, top))
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
    return connection.name, connection.transport, "" if nothing else _mbps(goodput or 0.0), "", "", ""


def _subflow(
    recording: Recording, connection: metrics.Connection, subflow: metrics.Subflow, counted: bool
) -> tuple[str, ...]:
    """Its cells; rate, share and repetitions are left blank where bytes are not `counted` by path."""
    samples = metrics.srtt_us(recording, connection, subflow)
    passed = connection.until_ns - connection.start_ns
    remarks = "".join(
        f", {remark}"
        for remark, applies in (("backup", subflow.backup), ("not established", subflow.established_ns is None))
        if applies
    )
    return (
        f"  {subflow.source} → {subflow.destination}{remarks}",
        subflow.interface,
        _mbps(subflow.bytes * 8e9 / passed) if passed > 0 and counted else "",
        f"{subflow.share:.1%}" if counted else "",
        f"{fmean(samples) / 1000:.1f}" if samples else "",
        f"{subflow.resent:.2%}" if counted and subflow.resent is not None else "",
    )


def _mbps(bits_per_second: float) -> str:
    """Two decimals, more for a rate that would be nothing with them."""
    rate = bits_per_second / 1e6
    return f"{rate:.2f}" if rate >= 0.1 or rate == 0 else f"{rate:.2g}"


def _print_completions(group: str, completed: Sequence[completions.Completions]) -> None:
    """A row for each class of sizes: completion times, and what they are of the least possible."""
    columns = ("flows", "unfinished", "mean ms", "p50", "p95", "p99", "slowdown", "p50 ", "p99 ")
    rows = table(group, *columns, numbers=frozenset(columns))
    for each in completed:
        mean, slower = each.mean_ns(), each.mean_slowdown()
        rows.add_row(
            each.sizes,
            f"{each.flows:,}",
            f"{each.unfinished:,}" if each.unfinished else "",
            "" if mean is None else _significant(mean / 1e6),
            *(_significant_or_blank(each.times.quantile(part), 1e6) for part in (0.5, 0.95, 0.99)),
            "" if slower is None else _significant(slower),
            *(_significant_or_blank(each.slowdowns.quantile(part), 1) for part in (0.5, 0.99)),
        )
    out.print(rows)
    if any(each.unfinished for each in completed):
        out.print("An unfinished flow is longer than any other: a blank depends on one.")


def _print_programs(recording: Recording, title: str) -> None:
    """A row for each program of the machine: how it ended, and how much it printed."""
    found = recording.table("programs")
    if not found.height:
        return
    columns = ("from s", "to s", "exit code", "printed B")
    rows = table("program", "host", "ended", *columns, numbers=frozenset(columns), title=title or None)
    for row in found.iter_rows(named=True):
        rows.add_row(
            f"[bold]{escape(row['name'])}[/bold]",
            escape(row["host"]),
            _ENDED.get(row["state"], row["state"]),
            f"{row['start_ns'] / 1e9:.3f}",
            "" if row["end_ns"] is None else f"{row['end_ns'] / 1e9:.3f}",
            "" if row["exit_code"] is None else str(row["exit_code"]),
            f"{row['stdout_bytes'] + row['stderr_bytes']:,}",
        )
    out.print(rows)


def _print_controller(recording: Recording) -> None:
    """A row: what passed between switches and controller, and how long flows waited for it."""
    found = control.of(recording)
    if found is None:
        return
    columns = ("packet-ins", "flow-mods", "most entries", "flows set up", "mean ms", "p50", "p99", "longest")
    rows = table("controller", *columns, numbers=frozenset(columns))
    mean, delays = found.mean_delay_ns, found.delays
    rows.add_row(
        _rule(recording),
        f"{found.packet_ins:,}",
        f"{found.flow_mods:,}",
        f"{found.most_entries:,}",
        f"{delays.sent:,}",
        "" if mean is None else _significant(mean / 1e6),
        *(_significant_or_blank(delays.quantile(part), 1e6) for part in (0.5, 0.99, 1.0)),
    )
    out.print(rows)
    if delays.unanswered:
        out.print(f"{delays.unanswered} of these flows were never sent on: a blank depends on one.")


def _print_bridges(recording: Recording) -> None:
    """A row: the tree that bridges found, and what that and learning took."""
    found = bridges.of(recording)
    if found is None:
        return
    columns = ("bridges", "blocked ports", "last change s", "BPDUs", "learned", "flushed", "flooded")
    rows = table("root", *columns, numbers=frozenset(columns))
    rows.add_row(
        escape(", ".join(found.roots)),
        f"{found.bridges:,}",
        f"{len(found.blocked):,}",
        f"{found.changed_ns / 1e9:.6f}",
        f"{found.bpdus:,}",
        f"{found.learned:,}",
        f"{found.flushed:,}",
        f"{found.flooded_packets:,}",
    )
    out.print(rows)


def _rule(recording: Recording) -> str:
    controller = recording.plan["controller"]
    if controller.get("app") is not None:
        return escape(controller["app"]["file"])
    return escape(f"{controller['routing']['name']}, {controller['mode']}")


def _significant(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _significant_or_blank(value: float | None, unit: float) -> str:
    return "" if value is None else _significant(value / unit)
