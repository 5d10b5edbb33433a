"""Changing rates: the times from which a link sends at another rate, as far as queues show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from polypath.twin.observed import Floats

#: Trains are taken together for so long, if there are so many.
_SLOT_S: Final = 0.5
_LEAST: Final = 4
#: Another rate differs by more than this part, and is seen in so many slots in a row.
_APART: Final = 0.1
_LASTING: Final = 2


@dataclass(frozen=True)
class Move:
    """A rate and when it begins, in seconds since the capture's first packet."""

    at_s: float
    rate_bps: float


def moves(times: Floats, rates: Floats) -> tuple[Move, ...]:
    """The rates that trains show one after the other, the first from the beginning on; none if there is but one."""
    slots = np.floor(times / _SLOT_S)
    known = [(slot, rates[slots == slot]) for slot in np.unique(slots)]
    medians = [(float(slot) * _SLOT_S, float(np.median(found))) for slot, found in known if found.size >= _LEAST]
    found: list[list[tuple[float, float]]] = []
    for at, rate in medians:
        if found and _is_near(rate, found[-1]):
            found[-1].append((at, rate))
        else:
            found.append([(at, rate)])
    lasting = [each for each in found if len(each) >= _LASTING]
    merged: list[list[tuple[float, float]]] = []
    for each in lasting:
        if merged and _is_near(_rate(each), merged[-1]):
            merged[-1].extend(each)
        else:
            merged.append(each)
    if len(merged) < 2:
        return ()
    return tuple(Move(0.0 if not number else each[0][0], _rate(each)) for number, each in enumerate(merged))


def _rate(of: Sequence[tuple[float, float]]) -> float:
    return float(np.median([rate for _, rate in of]))


def _is_near(rate: float, of: Sequence[tuple[float, float]]) -> bool:
    return abs(rate / _rate(of) - 1) <= _APART
