"""Estimates set right by the twin: what the same rules find of it, whose values are known, tells how far they are off.

The method is indirect inference (Gourieroux, Monfort and Renault, Journal of Applied Econometrics 8, 1993). It applies
to paths with jitter. Their least round trip is below the usual one, and packets that keep their order vary less than
the delays that were drawn for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path as File
from typing import Final

from polypath import capture
from polypath.twin.estimate import Estimate
from polypath.twin.jitter import jitter
from polypath.twin.network import Network, Path, network
from polypath.twin.observed import Place
from polypath.twin.value import Value

#: Runs of the twin; so close to the capture it needs no other one.
_ROUNDS, _CLOSE = 4, 0.04
#: A factor of one round.
_MOST: Final = 2.0


def varies(found: Network) -> bool:
    """Whether the delay of a path does."""
    return any(path.estimate.jitter_s is not None for path in found.paths)


def calibrated(found: Network, twin: Callable[[Network], Network | None]) -> Network:
    """The network whose twin shows what the capture shows."""
    now = found
    for _ in range(_ROUNDS if varies(found) else 0):
        theirs = twin(now)
        if theirs is None:
            break
        shown = {path.name: path for path in theirs.paths}
        before = now
        paths = [
            replace(path, estimate=_towards(path.estimate, first.estimate, shown.get(path.name)))
            for path, first in zip(now.paths, found.paths, strict=True)
        ]
        now = replace(now, paths=tuple(paths))
        if all(_is_close(*both) for both in zip(before.paths, now.paths, strict=True)):
            break
    return now


def _towards(now: Estimate, first: Estimate, shown: Path | None) -> Estimate:
    """As much larger as the capture's are than the twin's."""
    if shown is None or now.jitter_s is None or first.jitter_s is None or now.rate_bps is None:
        return now
    # The twin's rate is known. An estimate of it would make waits of jitter, and the twin's jitter another one.
    theirs = jitter(shown.ways, now.rate_bps.value)
    spread = now.jitter_s.times(_factor(first.jitter_s, theirs))
    trips = zip(first.trips_s, shown.estimate.trips_s, strict=True)
    off = next((mine - found for mine, found in trips if mine and found), 0.0)
    return replace(now, jitter_s=spread, delay_s=None if now.delay_s is None else now.delay_s.moved(off / 2))


def _factor(first: Value, shown: Value | None) -> float:
    """The largest factor if the twin does not show the value at all."""
    return _MOST if shown is None else min(_MOST, max(1 / _MOST, first.value / shown.value))


def _is_close(before: Path, now: Path) -> bool:
    one, other = before.estimate.jitter_s, now.estimate.jitter_s
    return one is None or other is None or abs(other.value / one.value - 1) <= _CLOSE


def by_round_trips(found: Network, files: Sequence[File], keys: Sequence[File] = ()) -> Network:
    """With delays from the round trips in each sender's file alone.

    Files of both ends together give only the handshake's round trip, and one round trip does not show a delay that
    varies.
    """
    if not any(path.estimate.jitter_s is not None and path.ways[0].place is Place.BOTH for path in found.paths):
        return found
    told: dict[tuple[str, str], Estimate] = {}
    for file in files:
        alone = network(capture.trace([file], segments=True, keys=keys).recording, found.name, both_ends=False)
        for path in () if alone is None else alone.paths:
            if path.ways[0].place is Place.SENDER and path.estimate.delay_s is not None:
                told[path.source, path.destination] = path.estimate
    return replace(found, paths=tuple(_with(path, told.get((path.source, path.destination))) for path in found.paths))


def _with(path: Path, alone: Estimate | None) -> Path:
    if path.estimate.jitter_s is None or alone is None:
        return path
    return replace(path, estimate=replace(path.estimate, delay_s=alone.delay_s, trips_s=alone.trips_s))
