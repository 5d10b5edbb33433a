"""A twin without a capture: from the output of `iperf3 -J`, or from a log of `ss -ti`.

Rate: what was acknowledged while round trips show a queue. Delay: half of the least round trip. Queue: what the longest
round trip adds to the least, where segments were sent again. Losses and a full queue are told apart by that alone, so
that intervals are wide, and notes say which capture would tell more.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import Final

import numpy as np

from polypath import engines
from polypath.results import Recording
from polypath.scenario import Scenario, ScenarioError
from polypath.twin import iperf3, sockets
from polypath.twin.counters import Counted, Sample, Socket
from polypath.twin.estimate import Estimate
from polypath.twin.fit import Seen, Trial, distance, miss
from polypath.twin.network import Network, Path
from polypath.twin.observed import ETHERNET, IPV4, IPV6, MAPPING, NS, TCP, TIMESTAMPS, Floats
from polypath.twin.pattern import Pattern
from polypath.twin.text import Choice, written
from polypath.twin.value import Value

_Read = Callable[[File, str | None], Counted]
#: What reads a file that begins in such a way.
READERS: Final[Sequence[tuple[Callable[[bytes], bool], _Read]]] = (
    (iperf3.is_one, iperf3.read),
    (sockets.is_one, sockets.read),
)
_BEGIN: Final = 4096
#: A round trip this many times as long as the least, and longer by so much, waited in a queue.
_QUEUED, _QUEUED_S = 1.25, 0.001
#: Where the least round trip is above this part of the usual one, the queue may never have been empty.
_ALIKE: Final = 0.6
#: What a rate over stretches may be off by, at least.
_RATE: Final = 0.02
#: What the longest of round trips that were smoothed and sampled may be off by.
_SMOOTHED: Final = 0.25
_LINUX: Final = "cubic"
_NAME: Final = "twin.toml"


def reader(file: File) -> _Read | None:
    """What reads this file; None for a capture, or what cannot be read at all."""
    try:
        with file.open("rb") as opened:
            begin = opened.read(_BEGIN)
    except OSError:
        return None
    return next((read for is_one, read in READERS if is_one(begin)), None)


def estimated(of: Sequence[Socket], *, multipath: bool) -> Estimate:
    """The estimate from parallel sockets on one path."""
    samples = _together(of)
    wire = _wire(of, multipath=multipath)
    trips = np.array([each.rtt_s for each in samples if each.rtt_s is not None])
    least_told = min((each.least_rtt_s for each in of if each.least_rtt_s is not None), default=None)
    least = least_told if least_told is not None else (float(trips.min()) if trips.size else None)
    waits = [] if least is None else [each for each in samples if _queues(each, least)]
    again = sum(each.retransmits for each in samples)
    rate = _rate(samples, waits, wire)
    delay = None if least is None else _delay(least, least_told is not None, trips)
    queue = None if delay is None or not trips.size else _queue(float(trips.max()), delay, rate)
    full = bool(waits) and again > 0
    return Estimate(
        rate_bps=rate,
        moves=(),
        delay_s=delay,
        trips_s=(None, least),
        jitter_s=None,
        queue_bytes=queue if full else None,
        queued_bytes=0.0 if queue is None else queue.value,
        loss=None if full else _loss(of, again),
        overflows=again if full else 0,
        random=0 if full else again,
    )


def _together(of: Sequence[Socket]) -> list[Sample]:
    """Sockets side by side as one: they were sampled at the same times."""
    if len(of) == 1:
        return list(of[0].samples)
    by_time: dict[float, list[Sample]] = defaultdict(list)
    for each in of:
        for sample in each.samples:
            by_time[round(sample.end_s, 1)].append(sample)
    found = []
    for _, those in sorted(by_time.items()):
        trips = [each.rtt_s for each in those if each.rtt_s is not None]
        found.append(
            Sample(
                min(each.start_s for each in those),
                max(each.end_s for each in those),
                sum(each.bytes for each in those),
                sum(trips) / len(trips) if trips else None,
                sum(each.retransmits for each in those),
            )
        )
    return found


def _wire(of: Sequence[Socket], *, multipath: bool) -> float:
    """Bytes of a full segment's frame for each of its payload."""
    segment = max((each.segment for each in of if each.segment), default=1448)
    ip = IPV6 if of[0].source.startswith("[") else IPV4
    return (segment + ETHERNET + ip + TCP + TIMESTAMPS + (MAPPING if multipath else 0)) / segment


def _queues(sample: Sample, least: float) -> bool:
    return sample.rtt_s is not None and sample.rtt_s > max(_QUEUED * least, least + _QUEUED_S)


def _rate(samples: Sequence[Sample], waits: Sequence[Sample], wire: float) -> Value:
    """What left a queue; where none was seen, the most that was carried, which is the least that the link can."""
    counted = [each for each in waits if each.start_s > samples[0].start_s] or waits or samples
    rates = np.array([each.rate_bps * wire for each in counted])
    weights = np.array([each.end_s - each.start_s for each in counted])
    if not waits:
        return Value(float(rates.max()), float(rates.max()) * (1 - _RATE), float(rates.max()) * 2)
    # What a stretch has too much, as it was written and not sent yet, the next one lacks.
    mean = float((rates * weights).sum() / weights.sum())
    error = 2 * float(rates.std()) / np.sqrt(rates.size) + _RATE * mean
    return Value(mean, mean - error, mean + error)


def _delay(least: float, is_minimum: bool, trips: Floats) -> Value:
    value = least / 2
    if is_minimum:
        return Value(value, 0.9 * value - 0.0001, 1.05 * value + 0.0001)
    may_wait = float(trips.min()) > _ALIKE * float(np.median(trips))
    return Value(value, 0.0 if may_wait else 0.5 * value, 1.05 * value)


def _queue(longest_s: float, delay: Value, rate: Value) -> Value:
    """What the longest round trip has above the least, which a smoothed one falls short of."""
    value, low, high = (
        max(0.0, longest_s - 2 * least) * rate.value / 8 for least in (delay.value, delay.high, delay.low)
    )
    return Value(value, (1 - _SMOOTHED) * low, (1 + _SMOOTHED) * high)


def _loss(of: Sequence[Socket], again: int) -> Value | None:
    segments = sum(each.segments or 0 for each in of)
    if not segments:
        return None
    error = 2 * np.sqrt(max(again, 1))
    return Value(again / segments, max(0.0, again - error) / segments, (again + error) / segments)


@dataclass(frozen=True)
class Made:
    """What a twin of counters is written from, and how close it is."""

    tool: str
    network: Network
    pattern: Pattern
    trial: Trial
    original: tuple[Seen, ...]
    text: str
    notes: tuple[str, ...]


def make(file: File, connection: str | None, read: _Read) -> Made:
    """Raises CaptureError, ScenarioError, EngineError."""
    told = read(file, connection)
    by_path: dict[tuple[str, str], list[Socket]] = defaultdict(list)
    for each in told.sockets:
        by_path[_address(each.source), _address(each.destination)].append(each)
    paths = tuple(_path(f"path{number}", pair, told, of) for number, (pair, of) in enumerate(by_path.items()))
    row = {"transport": "mptcp" if told.multipath else "tcp", "name": told.name}
    network = Network(row, told.name, paths, 0, None)
    pattern = Pattern(lasts="duration" in told.settings, kind=told.kind, settings=told.settings, note="")
    text, scenario, choice = _written(network, pattern, told)
    original = tuple(_seen(path.name, by_path[pair], told.seconds) for path, pair in zip(paths, by_path, strict=True))
    twin = _ran(scenario, told.sender, [path.name for path in paths])
    trial = Trial(choice, (distance(original, twin),), (miss(original, twin),), (twin,))
    return Made(told.tool, network, pattern, trial, original, text, (*told.notes, *_notes(paths)))


def _written(network: Network, pattern: Pattern, told: Counted) -> tuple[str, Scenario, Choice]:
    """With the sender's congestion control, or Linux's default if no scenario supports it."""
    said = {"profile": "not told; Linux's defaults", "receive_buffer": f"as {told.tool} tells it"}
    if told.congestion is not None:
        choice = Choice(told.congestion, None, told.receive_buffer)
        text = written(network, pattern, choice, told.seconds, said | {"congestion": f"as {told.tool} tells it"})
        with contextlib.suppress(ScenarioError):
            return text, Scenario.parse(text, _NAME), choice
    choice = Choice(_LINUX, None, told.receive_buffer)
    said["congestion"] = f"{told.congestion or 'not told'}; Linux's default"
    text = written(network, pattern, choice, told.seconds, said)
    return text, Scenario.parse(text, _NAME), choice


def _address(end: str) -> str:
    return end.rpartition(":")[0].strip("[]").removeprefix("::ffff:")


def _path(name: str, pair: tuple[str, str], told: Counted, of: Sequence[Socket]) -> Path:
    segment = max((each.segment for each in of if each.segment), default=1448)
    return Path(
        name,
        *pair,
        told.sender,
        (),
        estimated(of, multipath=told.multipath),
        segment * _wire(of, multipath=told.multipath),
    )


def _seen(name: str, of: Sequence[Socket], seconds: float) -> Seen:
    samples = _together(of)
    segments = sum(each.segments or 0 for each in of)
    return Seen(
        name,
        sum(each.bytes for each in samples) * 8 / seconds,
        np.array([each.rtt_s for each in samples if each.rtt_s is not None]),
        np.array([each.rate_bps for each in samples]),
        sum(each.retransmits for each in samples) / segments if segments else 0.0,
    )


def _ran(scenario: Scenario, sender: str, names: Sequence[str]) -> tuple[Seen, ...]:
    """What the twin's counters show: those of the same side."""
    recording = engines.get("sim").run(scenario.plan())
    return tuple(_of_run(recording, sender, name) for name in names)


def _of_run(recording: Recording, sender: str, name: str) -> Seen:
    ends = recording.table("subflow_ends").filter(interface=name)
    mine = (
        recording.table("subflows")
        .filter(side=sender)
        .join(ends.select("connection", "subflow"), on=["connection", "subflow"], how="semi")
    )
    whole = recording.table("connection_ends")
    last = whole["last_byte_ns"].drop_nulls().max()
    seconds = max(1e-3, (float(last) if last is not None else recording.metadata.end_ns) / NS)  # type: ignore[arg-type]
    busy = mine.filter((mine["srtt_us"] > 0) & (mine["time_ns"] <= seconds * NS))
    sent, again = (int(ends[f"{sender}_{key}_bytes"].sum()) for key in ("sent", "retransmitted"))
    other = "server" if sender == "client" else "client"
    return Seen(
        name,
        float(ends[f"{other}_received_bytes"].sum()) * 8 / seconds,
        busy["srtt_us"].to_numpy() / 1e6,
        np.zeros(0),
        again / (sent + again) if sent else 0.0,
    )


def _notes(paths: Sequence[Path]) -> Iterator[str]:
    for path in paths:
        found = path.estimate
        if found.delay_s is None:
            yield f"{path.name}: no round trip is told, and so no delay; a capture at the sender would tell it"
        if found.queue_bytes is not None:
            yield (
                f"{path.name}: counters do not tell which of {found.overflows} retransmissions a full queue made;"
                " a capture at the sender would"
            )
        elif found.rate_bps is not None and found.rate_bps.high >= 2 * found.rate_bps.value:
            yield f"{path.name}: no queue was seen, so that the link may be faster; a larger transfer would tell"
