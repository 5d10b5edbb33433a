"""Notes below a run's table: delays, losses, unfinished work, and the time since the last arrival."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from polypath.results import Recording, client_addresses, metrics, outstanding, pages, video
from polypath.results.metrics import SECOND
from polypath.results.outstanding import SILENT_NS
from polypath.results.phrases import counted, milliseconds, significant


def of(recording: Recording, connection: metrics.Connection, subflows: Sequence[metrics.Subflow]) -> Iterator[str]:
    """Lines below the table; `subflows` are those that have a row in it."""
    parts = [
        *_datagrams(recording, connection),
        *_video(recording, connection),
        *_page(recording, connection),
        *_both_ways(recording, connection),
        *_delays(recording, connection),
        *_ending(recording, connection),
    ]
    if parts:
        yield f"{connection.name}: {', '.join(parts)}"
    yield from _moves(recording, connection, subflows)
    if not all(subflow.is_counted for subflow in subflows):
        yield "  bytes in datagrams are not counted by path"
        return
    until = _until(recording, connection)
    for subflow in subflows if len(subflows) > 1 else ():
        since = metrics.silent_since_ns(recording, connection, subflow)
        if since is not None and until - since >= SILENT_NS:
            yield f"  {subflow.source} → {subflow.destination}: nothing arrived after {_seconds(since)}"


def _moves(recording: Recording, connection: metrics.Connection, subflows: Sequence[metrics.Subflow]) -> Iterator[str]:
    """A row has the addresses that its path ended with, and the figures of all that it had."""
    if not connection.over_quic:
        return
    known = client_addresses.of_connection(recording, connection)
    for subflow in subflows:
        own = known[subflow.id, "client"]
        turns = zip(pairwise(own.clients), own.turns, strict=True)
        before = [f"{one} until {_seconds(at)}" for (one, other), at in turns if one != other]
        if before:
            yield f"  {subflow.source} → {subflow.destination}: its figures are also of {', '.join(before)}"


def _datagrams(recording: Recording, connection: metrics.Connection) -> Iterator[str]:
    found = metrics.datagrams(recording, connection)
    if found is None:
        return
    yield f"{found.received:,} of {found.sent:,} datagrams arrived"
    if found.received > found.sent:
        yield "some more than once"
    elif found.sent:
        yield f"{(found.sent - found.received) / found.sent:.2%} lost"
    if found.delay_mean_ns is not None:
        yield f"mean delay {milliseconds(found.delay_mean_ns)} ms"
    if found.jitter_ns is not None:
        yield f"jitter {significant(found.jitter_ns / 1e6, 2)} ms"


def _video(recording: Recording, connection: metrics.Connection) -> Iterator[str]:
    found = video.playback(recording, connection)
    if found is None:
        return
    if found.rate_bps is None or found.startup_ns is None or found.stalled_ns is None:
        yield "nothing was shown"
        return
    yield f"video at {found.rate_bps / 1e6:.2f} Mbps on average"
    yield f"first picture after {found.startup_ns / SECOND:.1f} s"
    yield _stalls(len(found.stalls), found.stalled_ns)
    yield counted(found.switches, "change of rate", "changes of rate")


def _stalls(number: int, stalled_ns: int) -> str:
    """How often the picture stood still, and for how long altogether."""
    if not number:
        return "no stall"
    lasted = _seconds(stalled_ns)
    return f"1 stall of {lasted}" if number == 1 else f"{counted(number, 'stall')}, {lasted} in all"


def _page(recording: Recording, connection: metrics.Connection) -> Iterator[str]:
    found = pages.load(recording, connection)
    if found is None or not pages.has_objects(recording, connection):
        return
    if found.load_ns is None:
        yield f"{found.missing} of {counted(found.of, 'object')} of the page did not come"
    else:
        yield f"page of {counted(found.of, 'object')} after {_seconds(found.load_ns)}"
    if found.first_ns is not None:
        yield f"first object after {_seconds(found.first_ns)}"


def _both_ways(recording: Recording, connection: metrics.Connection) -> Iterator[str]:
    for way in metrics.both_ways(recording, connection) or ():
        rate = metrics.goodput(recording, way)
        yield f"{way.bytes:,} B to the {way.receiver}" + ("" if rate is None else f" at {rate / 1e6:.2f} Mbps")


def _delays(recording: Recording, connection: metrics.Connection) -> Iterator[str]:
    known = metrics.Delays.of(metrics.delays(recording, connection))
    if not known.sent:
        return
    messages = metrics.sends_messages(recording, connection)
    lost = "lost" if messages else "unanswered"
    yield counted(known.sent, "message" if messages else "request")
    if known.answered:
        yield f"delay median {_delay(known, 0.5, lost)}"
        if known.sent >= metrics.FEWEST["p95"]:
            yield f"95th percentile {_delay(known, 0.95, lost)}"
        if not known.unanswered:
            yield f"longest {_delay(known, 1.0, lost)}"
    if known.unanswered:
        all_lost = "none arrived" if messages else "none answered"
        part = f"{known.unanswered} {lost} ({known.unanswered / known.sent:.0%})"
        yield part if known.answered else all_lost
    if refused := metrics.refused(recording, connection):
        yield f"{refused} of them fit no packet"


def _ending(recording: Recording, connection: metrics.Connection) -> Iterator[str]:
    if connection.id is not None and connection.established_ns is None:
        yield "not established"
    if connection.finished is False:
        yield "unfinished"
    if _fell_silent(recording, connection):
        yield f"nothing arrived after {_seconds(connection.last_byte_ns or 0)}"


def _fell_silent(recording: Recording, connection: metrics.Connection) -> bool:
    """Whether nothing came in the end though something was to; one that was idle did not fall silent."""
    last = connection.last_byte_ns
    if connection.end_ns is not None or last is None or recording.metadata.end_ns - last < SILENT_NS:
        return False
    return outstanding.something_is(recording, connection)


def _until(recording: Recording, connection: metrics.Connection) -> int:
    """Until when its subflows had something to bring."""
    whole = metrics.completion_ns(connection)
    if whole is not None:
        return connection.start_ns + whole
    if connection.end_ns is None and connection.last_byte_ns is not None and not _fell_silent(recording, connection):
        return connection.last_byte_ns
    return connection.until_ns


def _delay(known: metrics.Delays, part: float, lost: str) -> str:
    found = known.quantile(part)
    return lost if found is None else f"{milliseconds(found)} ms"


def _seconds(time_ns: int) -> str:
    return f"{time_ns / SECOND:.1f} s"
