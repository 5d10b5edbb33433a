"""Data of a TCP test from `iperf3 -J` (iperf 3.12, src/iperf_api.c)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from polypath.capture import CaptureError
from polypath.twin.counters import Counted, Sample, Socket

_TOOL: Final = "iperf3"
#: A last interval that is shorter than this part of the others says little.
_WHOLE: Final = 0.5


def is_one(begin: bytes) -> bool:
    """Whether a file that begins like this is JSON."""
    return begin.lstrip().startswith(b"{")


def read(file: Path, connection: str | None) -> Counted:
    """Raises CaptureError for what is no test over TCP with data."""
    try:
        found = _document(file.read_text(encoding="utf-8"))
        return _counted(file, found, connection)
    except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
        if isinstance(error, CaptureError):
            raise
        raise CaptureError(f"{file}: it is JSON, but not what `iperf3 -J` prints of a test that ended") from error


def _document(text: str) -> Mapping[str, Any]:
    """One object; or, of `--json-stream`, a line for each event."""
    try:
        found = json.loads(text)
    except ValueError:
        events = [json.loads(line) for line in text.splitlines() if line.strip()]
        found = {"intervals": [each["data"] for each in events if each["event"] == "interval"]}
        found |= {each["event"]: each["data"] for each in events if each["event"] != "interval"}
    return dict(found)


def _counted(file: Path, found: Mapping[str, Any], connection: str | None) -> Counted:
    if found.get("error"):
        raise CaptureError(f"{file}: the test failed: {found['error']}")
    start, test = found["start"], found["start"]["test_start"]
    if test["protocol"] != "TCP":
        raise CaptureError(f"{file}: a test over {test['protocol']}; a twin is made of TCP")
    reverse = bool(test["reverse"])
    first = start["connected"][0]
    name = f"{first['remote_host']}:{first['remote_port']}"
    if connection not in (None, name):
        raise CaptureError(f"{file}: no connection '{connection}'; there is {name}")
    # The sender's own counters tell more than what the receiver printed.
    told = found.get("server_output_json", {}).get("intervals") if reverse else None
    own = _samples(told or found["intervals"])
    segment = start.get("tcp_mss_default") or None
    sockets = [
        Socket(
            f"{end['local_host']}:{end['local_port']}",
            f"{end['remote_host']}:{end['remote_port']}",
            samples,
            segment,
            segments=None if segment is None else round(sum(each.bytes for each in samples) / segment),
        )
        for end, samples in zip(start["connected"], own, strict=False)
    ]
    total = found["end"].get("sum_sent", {})
    return Counted(
        tool=_TOOL,
        name=name,
        sender="server" if reverse else "client",
        multipath=False,
        sockets=_with_total(sockets, total),
        congestion=found["end"].get("sender_tcp_congestion"),
        seconds=max(each.end_s for socket in sockets for each in socket.samples),
        **_application(test, len(sockets), reverse=reverse),
        receive_buffer=int(start.get("sock_bufsize") or 0) or None,
        notes=tuple(_notes(sockets, told is None and reverse)),
    )


def _samples(intervals: Sequence[Mapping[str, Any]]) -> list[list[Sample]]:
    """By stream, in the order of their sockets."""
    found: dict[int, list[Sample]] = defaultdict(list)
    for interval in intervals:
        for each in interval["streams"]:
            if each.get("omitted") or each["end"] <= each["start"]:
                continue
            rtt = each.get("rtt")
            found[each["socket"]].append(
                Sample(
                    start_s=float(each["start"]),
                    end_s=float(each["end"]),
                    bytes=float(each["bytes"]),
                    rtt_s=rtt / 1e6 if rtt else None,
                    retransmits=int(each.get("retransmits") or 0),
                    cwnd_bytes=each.get("snd_cwnd"),
                )
            )
    kept = [list(_whole(samples)) for samples in found.values()]
    if not kept or not any(each.bytes for samples in kept for each in samples):
        raise KeyError("intervals")
    return kept


def _whole(samples: Sequence[Sample]) -> Iterator[Sample]:
    usual = max(each.end_s - each.start_s for each in samples)
    for each in samples:
        if each.end_s - each.start_s >= _WHOLE * usual or len(samples) == 1:
            yield each


def _with_total(sockets: Sequence[Socket], total: Mapping[str, Any]) -> Sequence[Socket]:
    """The receiver's own intervals, which lack retransmissions, with the total that the sender reported."""
    count = int(total.get("retransmits") or 0)
    if not count or any(each.retransmits for socket in sockets for each in socket.samples):
        return sockets
    first, *others = sockets
    last = first.samples[-1]
    told = Sample(last.start_s, last.end_s, last.bytes, last.rtt_s, count, last.cwnd_bytes)
    replaced = Socket(first.source, first.destination, [*first.samples[:-1], told], first.segment, None, first.segments)
    return [replaced, *others]


def _application(test: Mapping[str, Any], streams: int, *, reverse: bool) -> dict[str, Any]:
    """As `_start` of polypath.formats.iperf3 writes it, the other way round."""
    settings: dict[str, str | int | bool] = {"reverse": True} if reverse else {}
    if streams > 1:
        settings["count"] = streams
    size = int(test.get("bytes") or 0) or int(test.get("blocks") or 0) * int(test.get("blksize") or 0)
    rate = int(test.get("target_bitrate") or 0)
    if rate:
        settings |= {"rate": f"{rate / 1e6:.6g} Mbps", "block": f"{test['blksize']} B"}
    if size and not rate:
        settings["size"] = f"{size // streams} B"
    else:
        settings["duration"] = f"{float(test['duration']) or size * 8 / max(rate, 1):.6g} s"
    return {"kind": "stream" if rate else "bulk", "settings": settings}


def _notes(sockets: Sequence[Socket], at_receiver: bool) -> Iterator[str]:
    if at_receiver:
        yield "the receiver's figures have no round trips; `iperf3 -J -R --get-server-output` has the sender's"
    elif all(each.rtt_s is None for socket in sockets for each in socket.samples):
        yield "no round trips are told: the sender was no Linux; a capture would tell them"
    else:
        yield (
            "iperf3 tells smoothed round trips once an interval, which may all have waited in the queue; `ss -ti` has"
            " the least one, and a capture each"
        )
