"""A run's result as a table: goodput, share and RTT of each subflow, and the rate over time."""

from __future__ import annotations

from rich.markup import escape

from polypath.cli.console import out, table
from polypath.cli.sparkline import means, sparkline
from polypath.results import Recording, metrics

_NUMBERS = frozenset({"Mbps", "share", "RTT ms", "resent"})


def show(recording: Recording, title: str) -> None:
    """Prints the result of one run."""
    rows = table("connection", "transport", "Mbps", "share", "RTT ms", "resent", "rate", numbers=_NUMBERS, title=title)
    for connection in metrics.connections(recording):
        rates = means(metrics.goodput_series(recording, connection)[1])
        goodput = metrics.goodput(recording, connection)
        top = max(rates, default=0.0)
        rows.add_row(
            f"[bold]{escape(connection.name)}[/bold]",
            connection.transport,
            "" if goodput is None or not connection.bytes else f"[bold]{_mbps(goodput)}[/bold]",
            "",
            "",
            "",
            sparkline(rates, top),
        )
        for subflow in metrics.subflows(recording, connection):
            rows.add_row(*_subflow(recording, connection, subflow, top))
    out.print(rows)
    for connection in metrics.connections(recording):
        _print_delays(recording, connection)
    if recording.metadata.interrupted:
        out.print(f"[yellow]interrupted at {recording.metadata.end_ns / 1e9:.3f} s of simulated time[/yellow]")


def _subflow(
    recording: Recording, connection: metrics.Connection, subflow: metrics.Subflow, top: float
) -> tuple[str, ...]:
    rates = means(metrics.subflow_series(recording, connection, subflow)[1])
    srtt = metrics.srtt_us(recording, connection, subflow.id).mean()
    passed = connection.until_ns - connection.start_ns
    resent = subflow.retransmitted_bytes / subflow.bytes if subflow.bytes else 0.0
    notes = "".join(
        f", {note}"
        for note, applies in (("backup", subflow.backup), ("not established", subflow.established_ns is None))
        if applies
    )
    return (
        f"  {escape(subflow.source)} → {escape(subflow.destination)}{notes}",
        escape(subflow.interface),
        _mbps(subflow.bytes * 8e9 / passed) if passed > 0 else "",
        f"{subflow.share:.1%}",
        f"{srtt / 1000:.1f}" if isinstance(srtt, float) else "",
        f"{resent:.2%}",
        sparkline(rates, top),
    )


def _mbps(bits_per_second: float) -> str:
    """Two decimals, more for a rate that would be nothing with them."""
    rate = bits_per_second / 1e6
    return f"{rate:.2f}" if rate >= 0.1 or rate == 0 else f"{rate:.2g}"


def _print_delays(recording: Recording, connection: metrics.Connection) -> None:
    known = metrics.Delays.of(metrics.delays(recording, connection))
    parts = []
    if known.sent:
        parts.append(f"{known.sent} requests")
        if known.answered:
            parts.append(f"delay median {_delay(known, 0.5)}")
            parts.append(f"95th percentile {_delay(known, 0.95)}")
            if not known.unanswered:
                parts.append(f"longest {_delay(known, 1.0)}")
        if known.unanswered:
            parts.append("none answered" if not known.answered else f"{known.unanswered} unanswered")
    if connection.finished is False:
        parts.append("unfinished")
    if parts:
        out.print(f"{escape(connection.name)}: {', '.join(parts)}")


def _delay(known: metrics.Delays, part: float) -> str:
    found = known.quantile(part)
    return "unanswered" if found is None else f"{found / 1e6:.1f} ms"
