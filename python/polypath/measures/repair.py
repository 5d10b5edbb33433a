"""What a connection sent again, and what its receiver waited for."""

from __future__ import annotations

from collections.abc import Sequence

from polypath.measures.measure import KILOBYTES, SECONDS, Figure, Measure, over_connection
from polypath.results import metrics
from polypath.results.metrics import Connection
from polypath.results.recording import Recording


def _retransmitted(recording: Recording, of: Connection) -> Figure:
    return sum(each.retransmitted_bytes for each in metrics.subflows(recording, of))


def _reinjected(recording: Recording, of: Connection) -> Figure:
    return metrics.reinjected_bytes(metrics.subflows(recording, of))


def _reassembly_max(recording: Recording, of: Connection) -> Figure:
    return metrics.reassembly_max(recording, of)


def _blocked(
    recording: Recording,
    of: Connection,
    level: metrics.Level | None,
    cause: str | None,
    interface: str | Sequence[str] | None,
) -> list[metrics.Blocking] | None:
    chosen = [interface] if isinstance(interface, str) else interface
    found = metrics.blocking(recording, of)
    interfaces = {subflow.id: subflow.interface for subflow in metrics.subflows(recording, of)}
    return found and [
        each
        for each in found
        if level in (None, each.level)
        and cause in (None, each.cause)
        and (chosen is None or (each.subflow is not None and interfaces.get(each.subflow) in chosen))
    ]


def _blocked_time(
    recording: Recording,
    of: Connection,
    *,
    cause: str | None = None,
    interface: str | Sequence[str] | None = None,
) -> Figure:
    found = _blocked(recording, of, "connection", cause, interface)
    return None if found is None else sum(each.time_ns for each in found)


def _blocked_data(
    recording: Recording,
    of: Connection,
    *,
    level: metrics.Level | None = None,
    cause: str | None = None,
    interface: str | Sequence[str] | None = None,
) -> Figure:
    found, passed = _blocked(recording, of, level, cause, interface), of.until_ns - of.start_ns
    return None if found is None or passed <= 0 else sum(each.byte_s for each in found) * metrics.SECOND / passed


FIGURES = (
    Measure(
        "retransmitted",
        KILOBYTES,
        "connection",
        "retransmitted",
        "bytes sent again on the subflow that sent them first, of all subflows",
        _retransmitted,
        heading="resent kB",
        kept=("subflows", "retransmitted_bytes"),
        beside=True,
        applies=over_connection,
    ),
    Measure(
        "reinjected",
        KILOBYTES,
        "connection",
        "reinjected",
        "bytes sent again on another subflow than before",
        _reinjected,
        source="RFC 8684 section 3.3.6",
        heading="reinjected kB",
        kept=("subflows", "reinjected_bytes"),
    ),
    Measure(
        "reassembly_max",
        KILOBYTES,
        "connection",
        "largest reassembly queue",
        "the most bytes that waited at the receiver for those before them, of the samples",
        _reassembly_max,
        heading="reassembly kB",
        kept=("reassembly_max_bytes",),
    ),
    Measure(
        "blocked_time",
        SECONDS,
        "connection",
        "time blocked",
        "time during which data in sequence on its subflow waited for other bytes of the stream; of one cause, or for"
        " what came by an interface",
        _blocked_time,
        source="docs/recording.md",
    ),
    Measure(
        "blocked_data",
        KILOBYTES,
        "connection",
        "mean of the bytes blocked",
        "mean of the bytes that waited at the receiver for those before them; at one level (subflow, connection), of"
        " one cause (late, retransmitted, reinjected, missing), for what came by an interface",
        _blocked_data,
        source="docs/recording.md",
    ),
)
