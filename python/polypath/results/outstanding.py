"""Whether data was outstanding when a run ended, so that an earlier silence is worth a note."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, get_args

from polypath.results import metrics
from polypath.results.metrics import SECOND
from polypath.results.recording import Recording

SILENT_NS: Final = SECOND
"""A pause at the end that is worth a word."""


def something_is(recording: Recording, of: metrics.Connection) -> bool:
    """Whether a connection had data outstanding throughout the last second.

    - Bytes that one end wrote and the other did not acknowledge are outstanding; for a capture, packets in flight.
    - A request without an answer is outstanding.
    - So is an unarrived message sent after the last byte arrived.

    A player with a full buffer, or a stream whose next block is due later, has nothing outstanding.
    """
    since = recording.metadata.end_ns - SILENT_NS
    sides: Sequence[metrics.Side] = get_args(metrics.Side)
    return _request_is(recording, of, since) or any(
        _lasted(*_unacknowledged(recording, of, side), since) for side in sides
    )


def _request_is(recording: Recording, of: metrics.Connection, since: int) -> bool:
    own = recording.groups("requests", ("application",), ("index",))
    sent, delays = (own.column(name, of.application) for name in ("sent_ns", "delay_ns"))
    before = of.last_byte_ns or 0 if metrics.sends_messages(recording, of) else 0
    return any(delay is None and before <= at <= since for at, delay in zip(sent, delays, strict=True))


def _unacknowledged(
    recording: Recording, of: metrics.Connection, side: metrics.Side
) -> tuple[Sequence[int], Sequence[int]]:
    """Times of samples and what waited then: bytes, or where an end's queue is not known packets."""
    samples = metrics.connection_samples(recording)
    times, sizes = (samples.column(name, of.id, side) for name in ("time_ns", "send_queue_bytes"))
    if None not in sizes:
        return times, sizes
    flying: defaultdict[int, int] = defaultdict(int)
    for subflow in metrics.subflows(recording, of):
        for time, packets in zip(*metrics.sampled(recording, of, subflow, "in_flight_packets", side), strict=True):
            flying[time] += packets
    times = sorted(flying)
    return times, [flying[time] for time in times]


def _lasted(times: Sequence[int], sizes: Sequence[int], since: int) -> bool:
    recent = [size for time, size in zip(times, sizes, strict=True) if time >= since] or sizes[-1:]
    return len(recent) > 0 and all(recent)
