"""Properties found by trial: the twin is run and captured as the original was, and the closest one is taken."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import Final

import numpy as np

from polypath import capture, engines
from polypath.engines import Options
from polypath.results import Recording
from polypath.scenario import Scenario
from polypath.twin.calibrated import by_round_trips, calibrated
from polypath.twin.network import Network, Path, network
from polypath.twin.observed import NS, Floats, Place
from polypath.twin.pattern import Pattern
from polypath.twin.text import Choice, written

#: Of each distribution that is compared.
_QUANTILES: Final = np.linspace(0.05, 0.95, 10)
#: Runs of a choice where the twin loses packets at random, and of the last one.
_SEEDS: Final = 3
_LAST_SEEDS: Final = 24
#: So close a twin needs no other seed.
_CLOSE: Final = 0.06
#: A goodput that is further off has the random loss tried again.
_OFF: Final = 0.03
_SLOT_S: Final = 0.2
#: A choice is clearly closer than the first if that is this far, and this part of it is more than the choice's.
_FAR, _CLEARLY = 0.01, 0.8
#: Of a receive buffer of Linux, which learns from its segments how much of it is payload (`tcp_scaling_ratio`).
_WINDOW_PART: Final = 0.6
_ALONE: Final = ("cubic", "reno", "bbr")
_COUPLED: Final = ("cubic", "reno", "lia", "olia", "balia", "bbr")
#: Besides the profile's.
_SCHEDULERS: Final = ("default", "roundrobin", "redundant", "blest", "ecf")


@dataclass(frozen=True)
class Seen:
    """What is compared of a path, in a capture or its twin's."""

    name: str
    goodput_bps: float
    rtt_s: Floats
    #: Bits a second in each slot of time.
    rates_bps: Floats
    #: Bytes that were lost, of those sent.
    lost: float


@dataclass(frozen=True)
class Trial:
    """A choice, and how far its twins are from the capture: 0 is the same."""

    choice: Choice
    #: Of each seed, from 1 on.
    distances: tuple[float, ...]
    #: The same with the figures that matter most counted once more.
    misses: tuple[float, ...]
    runs: tuple[tuple[Seen, ...], ...]

    @property
    def distance(self) -> float:
        """The mean of all seeds."""
        return float(np.mean(self.distances))

    @property
    def margin(self) -> float:
        """Twice the standard error of it; 0 where chance has no part."""
        if len(self.distances) < 2:
            return 0.0
        return float(2 * np.std(self.distances, ddof=1) / np.sqrt(len(self.distances)))

    @property
    def seed(self) -> int:
        """The seed with the closest twin, by goodput and RTT above all."""
        return int(np.argmin(self.misses)) + 1

    @property
    def closest(self) -> tuple[Seen, ...]:
        """What that seed's twin shows."""
        return self.runs[self.seed - 1]


def seen(found: Network, recording: Recording) -> tuple[Seen, ...]:
    """The observations of each path, from the connection's start to its last byte."""
    start = found.connection["start_ns"] / NS
    last = max(float(np.nanmax(way.told_s)) for path in found.paths for way in path.ways)
    return tuple(_of(path, start, last) for path in found.paths)


def _of(path: Path, start: float, last: float) -> Seen:
    base = 0.0 if path.estimate.delay_s is None else 2 * path.estimate.delay_s.value
    queued = np.concatenate([way.queued_s for way in path.ways])
    told = np.concatenate([way.told_s for way in path.ways])
    size = np.concatenate([(way.end - way.begin).astype(np.float64) for way in path.ways])
    known = np.isfinite(told)
    counts, _ = np.histogram(told[known], bins=np.arange(start, last + _SLOT_S, _SLOT_S), weights=size[known])
    lost = sum(int(way.lost.sum()) for way in path.ways) / max(1, sum(way.lost.size for way in path.ways))
    return Seen(
        path.name,
        float(size[known].sum()) * 8 / (last - start),
        base + queued[np.isfinite(queued)],
        counts * 8 / _SLOT_S,
        lost,
    )


def rtt_p95_s(of: Sequence[Seen]) -> float:
    """The 95th percentile of the RTT of all segments of all paths."""
    found = np.concatenate([np.zeros(0), *(each.rtt_s for each in of)])
    return float(np.quantile(found, 0.95)) if found.size else 0.0


def goodput_bps(of: Sequence[Seen]) -> float:
    """The goodput of all paths together."""
    return sum(each.goodput_bps for each in of)


def miss(one: Sequence[Seen], other: Sequence[Seen]) -> float:
    """By how much the goodput and the 95th percentile of RTT of the second are off, as parts of the first's."""
    pairs = ((goodput_bps(one), goodput_bps(other)), (rtt_p95_s(one), rtt_p95_s(other)))
    return float(np.mean([abs(theirs / mine - 1) for mine, theirs in pairs if mine]))


def distance(one: Sequence[Seen], other: Sequence[Seen]) -> float:
    """How far two are from one another, as a mean of relative differences."""
    by_name = {each.name: each for each in other}
    total = goodput_bps(one) or 1.0
    parts = [miss(one, other)]
    for mine in one:
        theirs = by_name.get(mine.name)
        if theirs is None:
            parts.append(mine.goodput_bps / total)
            continue
        parts.append(abs(mine.goodput_bps - theirs.goodput_bps) / total)
        parts.append(_between(mine.rates_bps, theirs.rates_bps))
        parts.append(_between(mine.rtt_s, theirs.rtt_s))
    return float(np.mean(parts))


def _between(one: Floats, other: Floats) -> float:
    """The mean distance of two distributions' quantiles, of the first one's mean."""
    if not one.size or not other.size:
        return 0.0 if one.size == other.size else 1.0
    apart = np.abs(np.quantile(one, _QUANTILES) - np.quantile(other, _QUANTILES))
    return float(apart.mean() / max(one.mean(), 1e-9))


class Fitter:
    """Runs twins of a capture."""

    def __init__(
        self, recording: Recording, found: Network, pattern: Pattern, told: Callable[[int], None] | None = None
    ) -> None:
        self.found, self.pattern, self._told = found, pattern, told
        self.seconds = recording.metadata.end_ns / 1e9
        self.original = seen(found, recording)
        self.trials: list[Trial] = []
        #: What each twin shows, with its distance and its miss.
        self._runs: dict[tuple[str, int], tuple[tuple[Seen, ...], float, float]] = {}

    @property
    def _is_random(self) -> bool:
        return any(path.estimate.loss is not None and path.estimate.loss.value > 0 for path in self.found.paths)

    def trial(self, choice: Choice, seeds: int | None = None) -> Trial:
        """What comes of a choice. Raises ScenarioError, EngineError."""
        text = written(self.found, self.pattern, choice, self.seconds)
        count = (seeds or _SEEDS) if self._is_random else 1
        for seed in range(1, count + 1):
            if (text, seed) not in self._runs:
                self._runs[text, seed] = self._compared(text, seed)
                if self._told is not None:
                    self._told(len(self._runs))
        runs, distances, misses = zip(*(self._runs[text, seed] for seed in range(1, count + 1)), strict=True)
        found = Trial(choice, distances, misses, runs)
        self.trials.append(found)
        return found

    def best(self, choices: Iterable[Choice]) -> Trial:
        """The closest choice; the first counts if no other is clearly closer."""
        first, *others = [self.trial(each) for each in choices]
        closest = min(others, key=lambda trial: trial.distance, default=first)
        clearly = first.distance > _FAR and closest.distance < _CLEARLY * first.distance
        by_chance = closest.distance + closest.margin / 2 > first.distance - first.margin / 2
        return closest if clearly and not (by_chance and self._is_random) else first

    def closest(self, choice: Choice) -> Trial:
        """With as many seeds as it takes until one comes close. Raises ScenarioError, EngineError."""
        for seeds in range(_SEEDS, _LAST_SEEDS + 1):
            found = self.trial(choice, seeds)
            if not self._is_random or min(found.misses) < _CLOSE:
                break
        return found

    def buffer(self, window: int) -> int:
        """The receive buffer whose window comes out as this. Raises ScenarioError, EngineError."""
        size = round(window / _WINDOW_PART)
        text = written(self.found, self.pattern, Choice("cubic", receive_buffer=size), self.seconds)
        twin, _ = self.run(text, 1)
        offered = None if twin is None else twin.window_bytes
        return size if offered is None else round(size * window / offered[1])

    def calibrate(self, choice: Choice) -> None:
        """Sets values right that a delay that varies spoils. Raises ScenarioError, EngineError."""

        def twin(now: Network) -> Network | None:
            return self.run(written(now, self.pattern, choice, self.seconds), 1, alone=True)[0]

        self.found = calibrated(self.found, twin)

    def _compared(self, text: str, seed: int) -> tuple[tuple[Seen, ...], float, float]:
        twin, recording = self.run(text, seed)
        shown = () if twin is None else seen(twin, recording)
        apart = distance(self.original, shown)
        return shown, apart, apart + miss(self.original, shown)

    def run(self, text: str, seed: int, *, alone: bool = False) -> tuple[Network | None, Recording]:
        """The twin's capture, made at the same places; its network if it carried data.

        With `alone` its round trips are those in a sender's file alone.

        Raises ScenarioError, EngineError.
        """
        place = self.found.paths[0].ways[0].place
        sender = self.found.paths[0].sender
        hosts = {
            Place.BOTH: ("client", "server"),
            Place.SENDER: (sender,),
            Place.RECEIVER: ("server" if sender == "client" else "client",),
        }.get(place, ("client",))
        with tempfile.TemporaryDirectory(prefix="polypath-twin-") as held:
            folder = File(held)
            scenario = folder / "twin.toml"
            scenario.write_text(text, encoding="utf-8")
            plan = Scenario.load(scenario).plan(seed)
            engines.get("sim").run(plan, Options("hosts", folder))
            files = [folder / f"{host}.pcapng" for host in hosts]
            recording = capture.trace(files, segments=True).recording
            twin = network(recording, None, both_ends=place is Place.BOTH)
            if twin is not None and alone and place is Place.BOTH:
                twin = by_round_trips(twin, files)
        return twin, recording


def fit(fitter: Fitter) -> Trial:
    """Chooses controller, scheduler, random loss and seed one after the other. Raises ScenarioError, EngineError."""
    several = len(fitter.found.paths) > 1
    first = Choice("cubic")
    if fitter.found.connection["transport"] == "mpquic":
        # The profile's runs over Multipath TCP alone.
        first = replace(first, scheduler=_SCHEDULERS[0])
    if (window := fitter.found.fixed_window) is not None:
        first = replace(first, receive_buffer=fitter.buffer(window))
    fitter.calibrate(first)
    controllers = _COUPLED if several else _ALONE
    best = fitter.best(replace(first, congestion=each) for each in controllers)
    if several:
        best = fitter.best([best.choice, *(replace(best.choice, scheduler=each) for each in _SCHEDULERS)])
    for choices in _losses(fitter, best):
        best = fitter.best([best.choice, *choices])
    return fitter.closest(best.choice)


def _losses(fitter: Fitter, best: Trial) -> Iterator[list[Choice]]:
    """Random loss within its interval, of each path whose goodput is off."""
    for path in fitter.found.paths:
        loss = path.estimate.loss
        if loss is None or not loss.value:
            continue
        mine = next(each for each in fitter.original if each.name == path.name).goodput_bps
        twins = [each.goodput_bps for run in best.runs for each in run if each.name == path.name]
        off = float(np.mean(twins or [0.0])) - mine
        if abs(off) < _OFF * mine:
            continue
        towards = loss.high if off > 0 else max(loss.low, loss.value / 4)
        yield [best.choice.with_loss(path.name, loss.value + part * (towards - loss.value)) for part in (0.35, 0.7, 1)]
