"""Data of a connection over TCP or Multipath TCP from a log of `ss -ti` (iproute2, misc/ss.c).

A log is the output of `ss -ti` again and again, each with the time in seconds since 1970 before it, as of
`while sleep 0.1; do date +%s.%N; ss -tinH dst SERVER; done`. One output without a time tells totals alone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from polypath.capture import CaptureError
from polypath.results.phrases import counted
from polypath.twin.counters import Counted, Sample, Socket

_TOOL: Final = "ss"
_TIME: Final = re.compile(r"^\s*(\d{9,10}(?:\.\d+)?)\s*$")
#: State, two queues, and two ends.
_ENDS: Final = re.compile(
    r"^\s*(?:tcp\s+)?(?:ESTAB|[A-Z]+-[A-Z0-9-]+|CLOSED?|LISTEN|UNCONN)\s+\d+\s+\d+\s+(\S+:\d+)\s+(\S+:\d+)(.*)$"
)
_ENDS_ALONE: Final = re.compile(r"^\s*\d+\s+\d+\s+(\S+:\d+)\s+(\S+:\d+)(.*)$")
_PAIR: Final = re.compile(r"(?:^|\s)([a-z_]+):(\S+)")
_CONGESTION: Final = re.compile(
    r"(?:^|\s)(cubic|reno|bbr\d*|vegas|westwood|scalable|dctcp|lia|olia|balia|wvegas|htcp|illinois|bic|cdg|hybla|nv|veno|yeah|lp|highspeed)(?=\s)"
)
_TOKEN: Final = re.compile(r"token:([0-9a-f]+)\(id:\d+\)/([0-9a-f]+)\(id:\d+\)")
#: Limits that are worth a word, as parts of the time in which there was something to send.
_LIMITED: Final = 0.2


@dataclass(frozen=True)
class _Reading:
    """One socket at one time."""

    time_s: float | None
    local: str
    remote: str
    token: tuple[str, str] | None
    congestion: str | None
    values: Mapping[str, str]

    def number(self, name: str) -> float | None:
        """The number at the begin of a value; of rtt:1.2/0.3 the first."""
        match = re.match(r"[\d.]+", self.values.get(name, ""))
        return float(match[0]) if match else None

    def total(self, name: str) -> float:
        """The second number of retrans:1/25."""
        last = self.values.get(name, "").rpartition("/")[2]
        return float(last) if last.replace(".", "", 1).isdigit() else 0.0

    @property
    def acked(self) -> float:
        return self.number("bytes_acked") or 0.0

    @property
    def received(self) -> float:
        return self.number("bytes_received") or 0.0

    @property
    def busy_s(self) -> float:
        return (self.number("busy") or 0.0) / 1e3


def is_one(begin: bytes) -> bool:
    """Whether a file that begins like this is text with sockets in it."""
    text = begin.decode("utf-8", "replace")
    return "\0" not in text and any(
        _TIME.match(line) or _ENDS.match(line) or line.startswith(("State", "Netid")) for line in text.splitlines()
    )


def read(file: Path, connection: str | None) -> Counted:
    """The connection of this name (the remote end), or that with most bytes. Raises CaptureError."""
    by_connection: dict[object, list[_Reading]] = defaultdict(list)
    for each in _readings(file.read_text(encoding="utf-8", errors="replace")):
        by_connection[each.token or (each.local, each.remote)].append(each)
    names = {key: of[0].remote for key, of in by_connection.items()}
    chosen = [key for key in by_connection if connection in (None, names[key])]
    if not chosen:
        there = f"there is {', '.join(dict.fromkeys(names.values()))}" if names else "run `ss -ti`, with both letters"
        wanted = f"no connection '{connection}'" if connection else "no connection with its counters"
        raise CaptureError(f"{file}: {wanted}; {there}")
    key = max(chosen, key=lambda it: max(max(each.acked, each.received) for each in by_connection[it]))
    return _counted(file, names[key], by_connection[key], others=len(by_connection) - 1)


def _readings(text: str) -> Iterator[_Reading]:
    """Sockets with their counters, which stand on the same line or on the next."""
    time_s: float | None = None
    ends: tuple[str, str] | None = None
    rest = ""
    for line in [*text.splitlines(), ""]:
        met = _ENDS.match(line) or _ENDS_ALONE.match(line)
        clock = _TIME.match(line)
        if ends is not None and (met or clock or not line.strip() or "cwnd:" in line):
            words = rest + (" " + line if not met and not clock else "")
            if "cwnd:" in words:
                token, name = _TOKEN.search(words), _CONGESTION.search(words + " ")
                pairs = dict(_PAIR.findall(words))
                yield _Reading(time_s, *ends, (token[1], token[2]) if token else None, name[1] if name else None, pairs)
            ends = None
        if met:
            ends, rest = (met[1], met[2]), met[3]
        if clock:
            time_s = float(clock[1])


def _counted(file: Path, name: str, readings: Sequence[_Reading], others: int) -> Counted:
    last: dict[tuple[str, str], _Reading] = {(each.local, each.remote): each for each in readings}
    acked, received = (sum(getattr(each, key) for each in last.values()) for key in ("acked", "received"))
    if not max(acked, received):
        raise CaptureError(f"{file}: {name} carried no data")
    sends = acked >= received
    times = [each.time_s for each in readings if each.time_s is not None]
    sockets = [
        _socket(ends, [each for each in readings if (each.local, each.remote) == ends], times[:1], sends=sends)
        for ends in last
    ]
    seconds = max((each.end_s for socket in sockets for each in socket.samples), default=0.0)
    if seconds <= 0:
        raise CaptureError(
            f"{file}: nothing tells for how long {name} was busy; write `date +%s.%N` before each `ss -ti`"
        )
    final = list(last.values())
    window = _window(final)
    return Counted(
        tool=_TOOL,
        name=name,
        sender="client" if sends else "server",
        multipath=readings[0].token is not None,
        sockets=sockets,
        congestion=next((each.congestion for each in readings if each.congestion), None) if sends else None,
        seconds=seconds,
        kind="bulk",
        settings={**({} if sends else {"reverse": True}), "duration": f"{seconds:.6g} s"},
        receive_buffer=window if sends else None,
        notes=tuple(_notes(final, others, sends=sends, timed=bool(times))),
    )


def _socket(ends: tuple[str, str], readings: Sequence[_Reading], begin: Sequence[float], *, sends: bool) -> Socket:
    final = readings[-1]
    least = [value / 1e3 for each in readings if (value := each.number("minrtt"))]
    return Socket(
        source=ends[0],
        destination=ends[1],
        samples=list(_samples(readings, begin[0] if begin else 0.0, sends=sends)),
        segment=int(final.number("mss") or 0) or None,
        least_rtt_s=min(least, default=None) if sends else None,
        segments=int(final.number("data_segs_out") or 0) or None if sends else None,
    )


def _samples(readings: Sequence[_Reading], zero_s: float, *, sends: bool) -> Iterator[Sample]:
    def count(of: _Reading) -> float:
        return of.acked if sends else of.received

    def again(of: _Reading) -> float:
        return max(0.0, of.total("retrans") - (of.number("dsack_dups") or 0.0)) if sends else 0.0

    def rtt(of: _Reading) -> float | None:
        value = of.number("rtt") if sends else None
        return None if value is None else value / 1e3

    def cwnd(of: _Reading) -> float | None:
        packets, size = of.number("cwnd"), of.number("mss")
        return None if not sends or packets is None or size is None else packets * size

    timed = [each for each in readings if each.time_s is not None]
    if len(timed) < 2:
        only = readings[-1]
        if only.busy_s > 0:
            yield Sample(0.0, only.busy_s, count(only), rtt(only), round(again(only)), cwnd(only))
        return
    before = timed[0]
    for now in timed[1:]:
        since, until = (each.time_s or 0.0 for each in (before, now))
        if count(now) <= count(before) or until <= since:
            before = now if count(now) < count(before) else before
            continue
        lost = round(max(0.0, again(now) - again(before)))
        yield Sample(since - zero_s, until - zero_s, count(now) - count(before), rtt(now), lost, cwnd(now))
        before = now


def _window(last: Sequence[_Reading]) -> int | None:
    """The peer's window if it limited the sender."""
    for each in last:
        if each.busy_s and (each.number("rwnd_limited") or 0.0) / 1e3 > _LIMITED * each.busy_s:
            return int(each.number("snd_wnd") or 0) or None
    return None


def _notes(last: Sequence[_Reading], others: int, *, sends: bool, timed: bool) -> Iterator[str]:
    if not sends:
        yield "the receiver's sockets tell no losses, and no round trip of the data; `ss -ti` at the sender does"
    if not timed:
        yield "without times only totals are told; write `date +%s.%N` before each `ss -ti`"
    if others:
        yield f"{counted(others, 'other connection')} left out"
    for each in last:
        for key, what in (("sndbuf_limited", "the send buffer"), ("rwnd_limited", "the receive window")):
            limited = (each.number(key) or 0.0) / 1e3
            if each.busy_s and limited > _LIMITED * each.busy_s:
                yield f"{each.local} to {each.remote}: {what} limited it for {limited / each.busy_s:.0%} of its time"
