"""A twin of a captured connection: the scenario, its origin, and its distance from the capture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any, Final

import numpy as np

from polypath import capture
from polypath.capture import CaptureError
from polypath.results import Recording
from polypath.results.phrases import counted as counted_of
from polypath.scenario import Scenario
from polypath.twin import counted
from polypath.twin.calibrated import by_round_trips
from polypath.twin.fit import Fitter, Seen, Trial, fit, rtt_p95_s
from polypath.twin.network import SEALED, Network, Path, named, network
from polypath.twin.observed import Place
from polypath.twin.pattern import Pattern, pattern
from polypath.twin.text import Choice, written
from polypath.twin.value import Value

#: Called with the number of runs that were made.
Told = Callable[[int], None]
_MBPS, _MS, _PERCENT = 1e6, 1e-3, 0.01
_PROFILE: Final = "not told by packets; Linux's defaults"


@dataclass(frozen=True)
class Row:
    """One figure of the capture and of its twin."""

    figure: str
    path: str
    unit: str
    capture: float | None
    twin: float | None


@dataclass(frozen=True)
class Twin:
    """What was made of a capture."""

    text: str
    network: Network
    pattern: Pattern
    trial: Trial
    rows: tuple[Row, ...]
    #: What is not told, and which capture would tell it; a line each.
    notes: tuple[str, ...]
    #: What the figures were taken from.
    source: str = "capture"

    @property
    def scenario(self) -> Scenario:
        """The text, read."""
        return Scenario.parse(self.text, "twin.toml")

    def data(self) -> dict[str, Any]:
        """For JSON: rates in bits a second, times in seconds, loss as a part of all packets."""
        return {
            "connection": self.network.name,
            "paths": [_path(each) for each in self.network.paths],
            "application": {"kind": self.pattern.kind, **self.pattern.settings},
            "congestion": self.trial.choice.congestion,
            "scheduler": self.trial.choice.scheduler,
            "compared": [each.__dict__ for each in self.rows],
            "notes": list(self.notes),
            "scenario": self.text,
        }


def _path(path: Path) -> dict[str, Any]:
    found = path.estimate
    values = {
        "rate_bps": found.rate_bps,
        "delay_s": found.delay_s,
        "jitter_s": found.jitter_s,
        "queue_bytes": found.queue_bytes,
        "loss": found.loss,
    }
    return {
        "name": path.name,
        "source": path.source,
        "destination": path.destination,
        **{key: None if value is None else value.__dict__ for key, value in values.items()},
    }


def make(
    files: Sequence[File], connection: str | None = None, told: Told | None = None, keys: Sequence[File] = ()
) -> Twin:
    """A twin of the connection of this name, or of the one with most bytes; `keys` are key logs, which open QUIC.

    Several files are captures of the same traffic, at one end or at both. One file may be what `iperf3 -J` printed, or
    a log of `ss -ti`.

    Raises CaptureError, ScenarioError, EngineError.
    """
    for file in files:
        if (read := counted.reader(file)) is not None:
            if len(files) > 1:
                raise CaptureError(f"{file} is no capture; a twin is made of one such file alone")
            made = counted.make(file, connection, read)
            rows = tuple(_rows(made.original, made.trial.closest))
            return Twin(made.text, made.network, made.pattern, made.trial, rows, made.notes, made.tool)
    traced = capture.trace(files, segments=True, keys=keys)
    recording = traced.recording
    found = network(recording, connection, both_ends=len(files) > 1)
    if found is None:
        raise _nothing(recording, connection, files)
    if len(files) > 1:
        found = by_round_trips(found, files, keys)
    trip_s = found.trip_s
    if trip_s is None:
        raise CaptureError(f"{files[0]}: no handshake of {found.name} was captured, so that nothing tells its delay")
    asked = pattern(recording, found.connection["connection"], found.paths[0].ways, trip_s)
    fitter = Fitter(recording, found, asked, told)
    best = fit(fitter)
    found = fitter.found
    text = written(found, asked, best.choice, fitter.seconds, _said(fitter, best), best.seed)
    rows = tuple(_rows(fitter.original, best.closest))
    return Twin(text, found, asked, best, rows, (*traced.notes, *_notes(found)))


def _nothing(recording: Recording, connection: str | None, files: Sequence[File]) -> CaptureError:
    ends = recording.table("connection_ends")
    if connection is not None and (chosen := named(ends, connection)).height:
        ends = chosen
    over_quic = ends.filter(ends["transport"].is_in(SEALED))
    if over_quic.height == ends.height > 0:
        name = over_quic["name"][0]
        return CaptureError(
            f"{files[0]}: {name} is sealed: a twin needs its secrets, in the capture or as a key log (--keys FILE,"
            " which SSLKEYLOGFILE makes), and datagrams that were captured whole"
        )
    names = ends.filter(~ends["transport"].is_in(SEALED))["name"].to_list()
    if connection is not None and names:
        return CaptureError(f"{files[0]}: no connection '{connection}' with data; there is {', '.join(names[:8])}")
    return CaptureError(f"{files[0]}: no connection with data")


def _said(fitter: Fitter, best: Trial) -> dict[str, str]:
    """Why each choice was made."""
    said = {"profile": _PROFILE}
    for key in ("congestion", "scheduler"):
        tried = _tried(fitter.trials, key, best.choice)
        others = ", ".join(f"{name} {apart:.3f}" for name, apart in sorted(tried.items(), key=lambda it: it[1])[:4])
        if len(tried) > 1:
            said[key] = f"by trial, 0 is alike: {others}"
    said["receive_buffer"] = "the window that was offered stayed the same, and what was in flight came near it"
    if len(best.distances) > 1:
        said["seed"] = f"of {len(best.distances)} the one whose losses at random come closest"
    return said


def _tried(trials: Sequence[Trial], key: str, choice: Choice) -> dict[str, float]:
    """How far each value of a choice was, the others as they were when it was tried."""
    found: dict[str, float] = {}
    for each in trials:
        if key == "scheduler" and each.choice.congestion != choice.congestion:
            continue
        if each.choice.loss is None and (key == "scheduler" or each.choice.scheduler is None):
            found.setdefault(str(getattr(each.choice, key) or "the profile's"), each.distance)
    return found


def _rows(original: Sequence[Seen], twin: Sequence[Seen]) -> Iterator[Row]:
    theirs = {each.name: each for each in twin}
    for mine in original:
        other = theirs.get(mine.name)
        yield Row(
            "goodput", mine.name, "Mbps", mine.goodput_bps / _MBPS, None if other is None else other.goodput_bps / _MBPS
        )
        for name, part in (("RTT, median", 0.5), ("RTT, 95th percentile", 0.95)):
            yield Row(name, mine.name, "ms", _rtt(mine, part), None if other is None else _rtt(other, part))
        yield Row("lost", mine.name, "%", mine.lost / _PERCENT, None if other is None else other.lost / _PERCENT)
    both = (sum(each.goodput_bps for each in of) / _MBPS for of in (original, twin))
    yield Row("goodput", "all", "Mbps", *both)
    yield Row("RTT, 95th percentile", "all", "ms", rtt_p95_s(original) / _MS, rtt_p95_s(twin) / _MS)


def _rtt(of: Seen, part: float) -> float | None:
    return float(np.quantile(of.rtt_s, part)) / _MS if of.rtt_s.size else None


def _notes(found: Network) -> Iterator[str]:
    if found.other_bytes:
        others = (
            f"{counted_of(len(found.chosen_of) - 1, 'other connection')}, {found.other_bytes / 1e6:.4g} MB, left out"
        )
        yield f"{found.name} is taken, {others}: a rate is what they left to it; --connection takes another"
    sources = {path.source for path in found.paths}
    if 1 < len(sources) < len(found.paths):
        yield "paths share addresses, and perhaps links; in the twin each has a link of its own"
    for told in _TOLD:
        if names := [path.name for path in found.paths if told.holds(path)]:
            yield f"{', '.join(names)}: {told.note}"


@dataclass(frozen=True)
class _Note:
    """What is said of the paths of which something holds."""

    holds: Callable[[Path], bool]
    note: str


def _is_wide(value: Value) -> bool:
    return value.high > 1.5 * value.value


_TOLD: Final = (
    _Note(
        lambda path: path.estimate.rate_bps is None,
        "too few packets came close behind one another to tell the rate; a bulk transfer would",
    ),
    _Note(
        lambda path: path.estimate.queue_bytes is None,
        "the queue never overflowed, so that its size is open; a longer transfer may fill it",
    ),
    _Note(
        lambda path: path.estimate.loss is not None and path.estimate.random > 0 and _is_wide(path.estimate.loss),
        "few losses tell the random loss roughly; a longer capture would tell it better",
    ),
    _Note(
        lambda path: path.ways[0].place in (Place.SENDER, Place.RECEIVER),
        "the way there may be longer than the way back; captures at both ends would tell",
    ),
    _Note(
        lambda path: not all(way.stamped for way in path.ways),
        "QUIC has no timestamps, so that a receiver's capture tells little of queues and nothing of jitter; one at the"
        " sender would",
    ),
    _Note(
        lambda path: path.estimate.jitter_s is None and any(way.grain_s for way in path.ways),
        "a delay that varies by less than half a tick of the timestamps' clock does not show; a capture at the sender"
        " would tell",
    ),
    _Note(
        lambda path: path.estimate.jitter_s is not None and path.ways[0].place is Place.SENDER,
        "how much the delay varies is divided evenly between both ways; captures at both ends would tell of each",
    ),
    _Note(
        lambda path: path.ways[0].place is Place.BETWEEN,
        "captured between the ends; of a queue before that place only timestamps tell",
    ),
)
