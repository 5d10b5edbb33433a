"""Columns of numbers as a page holds them: whole numbers, thinned out, as differences, deflated, in base64."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

Number = int | float
Column = Sequence[Number | None]

#: Values of one chart at most; beyond, each series is thinned out.
MOST_VALUES: Final = 12_000
#: Pieces of the time that have the extremes of all series; where there is no room for so many, those of the first.
_LEAST_PIECES: Final = 50


@dataclass(frozen=True)
class Chart:
    """Series over the same times."""

    times_ns: Sequence[int]
    series: Sequence[Column]

    def averaged(self, most: int = MOST_VALUES) -> dict[str, Any]:
        """As `packed`, of rates over the time since the row before: means over longer times, in which all that was
        carried is."""
        rows, count = len(self.times_ns), max(1, len(self.series))
        if rows * count <= most:
            return self.packed(most)
        pieces = max(1, most // count - 1)
        kept = [round((rows - 1) * piece / pieces) for piece in range(pieces + 1)]
        times = np.array(self.times_ns)
        means = []
        for column in self.series:
            carried = np.concatenate([[0.0], np.cumsum(np.array(column[1:], dtype=float) * np.diff(times))])
            rates = np.diff(carried[kept]) / np.diff(times[kept])
            means.append([rates[0].item(), *rates.tolist()])
        found = Chart([self.times_ns[row] for row in kept], means).packed(most)
        return {**found, "of": rows, "extremes": 0}

    def packed(self, most: int = MOST_VALUES) -> dict[str, Any]:
        """For a page: times in microseconds and the series, thinned out where there is too much.

        `of` is the number of samples before, `extremes` of how many series the extremes are kept, 0 of means.
        """
        kept = keep(self.series, len(self.times_ns), most)
        return {
            "t": differences([round(self.times_ns[row] / 1000) for row in kept]),
            "v": [differences([_whole(column[row]) for row in kept]) for column in self.series],
            "of": len(self.times_ns),
            "extremes": _followed(len(self.series), most),
        }


def keep(series: Sequence[Column], rows: int, most: int = MOST_VALUES) -> list[int]:
    """The rows to keep so that there are about `most` values.

    The time is cut into pieces of equal numbers of rows; of each piece the first row stays, and those in which some
    series has its least or its greatest value there, or of very many series the first one. Every value that stays is
    one that was sampled.
    """
    if rows * len(series) <= most or not series:
        return list(range(rows))
    followed = _followed(len(series), most)
    pieces = min(rows, max(1, most // (len(series) * (1 + 2 * followed))))
    chosen = {0, rows - 1}
    for first, beyond in pairwise(round(rows * piece / pieces) for piece in range(pieces + 1)):
        chosen.add(first)
        for column in series[:followed]:
            known = [row for row in range(first, beyond) if column[row] is not None]
            if known:
                chosen.add(min(known, key=lambda row: column[row] or 0))
                chosen.add(max(known, key=lambda row: column[row] or 0))
    return sorted(chosen)


def _followed(series: int, most: int) -> int:
    return series if most >= _LEAST_PIECES * series * (1 + 2 * series) else min(1, series)


def differences(values: Sequence[int | None]) -> list[int | None]:
    """Each value less the one before that is there; null where there is none."""
    found: list[int | None] = []
    before = 0
    for value in values:
        if value is None:
            found.append(None)
        else:
            found.append(value - before)
            before = value
    return found


def deflated(data: Mapping[str, Any]) -> str:
    """JSON, deflated (RFC 1951), in base64."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return base64.b64encode(packer.compress(text.encode()) + packer.flush()).decode("ascii")


def _whole(value: Number | None) -> int | None:
    return None if value is None else round(value)
