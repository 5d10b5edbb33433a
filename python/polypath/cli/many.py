"""A run with many connections or subflows: quantiles and extremes instead of a row for each.

Files keep every row. What failed is counted here and named, whatever the quantiles say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from rich.markup import escape
from rich.table import Table

from polypath.cli.console import out, table
from polypath.cli.sparkline import sparkline
from polypath.results import Recording, metrics
from polypath.results.phrases import counted, significant

#: With more connections or subflows than this, these have no row of their own.
ROWS: Final = 40
#: How many of those that failed are named.
_NAMED: Final = 8
_QUANTILES: Final = {"min": 0.0, "5 %": 0.05, "median": 0.5, "95 %": 0.95, "max": 1.0}
_BINS: Final = 12

Measured = tuple[float | None, str]
"""A value, and whose it is; None of what did not finish or was not answered, which is longer than any that was."""
_Owned = tuple[metrics.Connection, metrics.Subflow]


@dataclass
class Group:
    """The connections of one kind of application over one transport."""

    title: str
    connections: list[metrics.Connection] = field(default_factory=list)
    subflows: list[_Owned] = field(default_factory=list)


def groups(
    recording: Recording, subflows: Sequence[tuple[metrics.Connection, Sequence[metrics.Subflow]]]
) -> list[Group]:
    """The connections by kind and transport, in the order of the first of each."""
    applications = recording.plan.get("applications", [])
    found: dict[tuple[str, str], Group] = {}
    for connection, own in subflows:
        kind = str(applications[connection.application]["work"]["kind"])
        group = found.setdefault((kind, connection.transport), Group(f"{kind} over {connection.transport}"))
        group.connections.append(connection)
        group.subflows += [(connection, subflow) for subflow in own]
    return list(found.values())


def show(recording: Recording, found: Sequence[Group], title: str, *, connections: bool) -> None:
    """Prints quantiles of the subflows and, if `connections`, of the connections; then what failed."""
    if title:
        out.print(f"[bold]{escape(title)}[/bold]")
    for group in found:
        out.print(escape(f"{group.title}: {', '.join(_totals(recording, group))}"))
        rows = table("", *_QUANTILES, "min to max", "min is of", "max is of", numbers=frozenset(_QUANTILES))
        blank = connections and _of_connections(rows, recording, group)
        lane = _lane(group)
        for what, backup in ((lane, False), (f"backup {lane}", True)):
            own = [each for each in group.subflows if each[1].backup is backup]
            _of_subflows(rows, recording, own, what)
        out.print(rows)
        if blank:
            out.print("What is unfinished or unanswered is longer than all else: a blank depends on it.")
        for line in failures(recording, group, connections=connections):
            out.print(f"[yellow]{escape(line)}[/yellow]")


def failures(recording: Recording, group: Group, *, connections: bool) -> Iterator[str]:
    """What failed in a group, a line for each way: its number, and the first names."""
    if connections:
        of = group.connections
        for state in sorted({each.failure for each in of if each.failure is not None}):
            yield _line(state, "connection", [each.name for each in of if each.failure == state])
        for what, names in (
            ("unfinished", [each.name for each in of if each.finished is False]),
            ("without a byte delivered", [each.name for each in of if not each.bytes]),
            ("with requests unanswered", [each.name for each in of if None in metrics.delays(recording, each)]),
        ):
            if names:
                yield _line(what, "connection", names)
    if missing := Counter(each.name for each, subflow in group.subflows if subflow.established_ns is None):
        names = [f"{name} ({number})" for name, number in missing.items()]
        yield _line("not established", _lane(group), names, missing.total())


def _of_connections(rows: Table, recording: Recording, group: Group) -> bool:
    """Whether a blank depends on what did not finish or was not answered."""
    rates = [(metrics.goodput(recording, each), each.name) for each in group.connections]
    _row(rows, "connection, Mbps", [(rate / 1e6, name) for rate, name in rates if rate is not None])
    ends = all(each.finished is not None for each in group.connections)
    times = [(_in(metrics.SECOND, metrics.completion_ns(each)), each.name) for each in group.connections if ends]
    delays = [(_in(1e6, delay), each.name) for each in group.connections for delay in metrics.delays(recording, each)]
    return any([_row(rows, "completion, s", times), _row(rows, "request, ms", delays)])


def _in(unit_ns: float, time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / unit_ns


def _of_subflows(rows: Table, recording: Recording, own: Sequence[_Owned], what: str) -> None:
    rates: list[Measured] = []
    resent: list[Measured] = []
    delays: list[Measured] = []
    for connection, subflow in own:
        name = _name(connection, subflow)
        goodput = metrics.subflow_goodput(recording, connection, subflow)
        if goodput is not None:
            rates.append((goodput / 1e6, name))
        if subflow.resent is not None:
            resent.append((100 * subflow.resent, name))
        if samples := metrics.srtt_us(recording, connection, subflow):
            delays.append((fmean(samples) / 1e3, name))
    _row(rows, f"{what}, Mbps", rates)
    siblings = Counter(connection.application for connection, _ in own)
    if max(siblings.values(), default=0) > 1:
        _row(
            rows,
            f"{what}, share %",
            [(100 * subflow.share, _name(each, subflow)) for each, subflow in own if subflow.share is not None],
        )
    _row(rows, f"{what}, RTT ms", delays)
    _row(rows, f"{what}, resent %", resent)


def _row(rows: Table, figure: str, measured: Sequence[Measured]) -> bool:
    """A row where anything is known; whether a blank in it depends on what is not."""
    known = metrics.Delays.of([value for value, _ in measured])
    if not known.answered:
        return False
    low, high = known.quantile(0.0), known.quantile(1.0)
    quantiles = [known.quantile(part) for part in _QUANTILES.values()]
    cells = ["" if value is None else _number(value) for value in quantiles]
    spread = "" if high is None or low == high else _histogram(known.answered)
    rows.add_row(f"  {figure}", *cells, spread, escape(_whose(measured, low)), escape(_whose(measured, high)))
    return None in quantiles


def _histogram(ordered: Sequence[float]) -> str:
    low, width = ordered[0], (ordered[-1] - ordered[0]) / _BINS
    counts = Counter(min(int((value - low) / width), _BINS - 1) for value in ordered)
    return sparkline([counts[place] for place in range(_BINS)], max(counts.values()))


def _whose(measured: Sequence[Measured], extreme: float | None) -> str:
    """The one that has the extreme value, or how many have it."""
    names = [name for value, name in measured if value == extreme]
    return names[0] if len(names) == 1 else f"{len(names):,} alike"


def _name(connection: metrics.Connection, subflow: metrics.Subflow) -> str:
    return f"{connection.name} {subflow.kind} {subflow.id}"


def _lane(group: Group) -> str:
    """What the subflows of a group are called; "subflow" where some are not paths of QUIC."""
    return "path" if all(each.over_quic for each in group.connections) else "subflow"


def _totals(recording: Recording, group: Group) -> Iterator[str]:
    yield counted(len(group.connections), "connection")
    if group.subflows:
        yield counted(len(group.subflows), _lane(group))
    yield f"{_number(_together(group.connections))} Mbps together"
    requests = [metrics.Delays.of(metrics.delays(recording, each)) for each in group.connections]
    if sent := sum(each.sent for each in requests):
        yield counted(sent, "request")
    if unanswered := sum(each.unanswered for each in requests):
        yield f"{unanswered:,} unanswered"


def _together(connections: Sequence[metrics.Connection]) -> float:
    """All that they delivered, over the time from the first start to the last end, in Mbps."""
    passed = max(each.until_ns for each in connections) - min(each.start_ns for each in connections)
    return sum(each.bytes for each in connections) * 8e3 / passed if passed > 0 else 0.0


def _line(happened: str, what: str, names: Sequence[str], number: int | None = None) -> str:
    shown = ", ".join(names[:_NAMED])
    rest = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{counted(number or len(names), what)} {happened}: {shown}{rest}"


def _number(value: float) -> str:
    """Two decimals, more for a value that would be nothing with them, none where they say nothing."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 0.1 or value == 0 else significant(value, 2)
