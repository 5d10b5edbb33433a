"""Columns of numbers as a page holds them: whole numbers, thinned out, as differences, deflated, in base64."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

Number = int | float
Column = Sequence[Number | None]

#: Values of one chart at most; beyond, each series is thinned out.
MOST_VALUES: Final = 12_000


@dataclass(frozen=True)
class Chart:
    """Series over the same times."""

    times_ns: Sequence[int]
    series: Sequence[Column]

    def packed(self, most: int = MOST_VALUES) -> dict[str, Any]:
        """For a page: times in microseconds and the series, thinned out where there is too much.

        `of` is the number of samples before.
        """
        kept = keep(self.series, len(self.times_ns), most)
        return {
            "t": differences([round(self.times_ns[row] / 1000) for row in kept]),
            "v": [differences([_whole(column[row]) for row in kept]) for column in self.series],
            "of": len(self.times_ns),
        }


def keep(series: Sequence[Column], rows: int, most: int = MOST_VALUES) -> list[int]:
    """The rows to keep so that there are about `most` values.

    The time is cut into pieces of equal numbers of rows; of each piece the rows stay in which some series has its least
    or its greatest value there. Every value that stays is one that was sampled.
    """
    if rows * len(series) <= most or not series:
        return list(range(rows))
    pieces = max(1, most // (2 * len(series) ** 2))
    chosen = {0, rows - 1}
    for first, beyond in pairwise(round(rows * piece / pieces) for piece in range(pieces + 1)):
        for column in series:
            known = [row for row in range(first, beyond) if column[row] is not None]
            if known:
                chosen.add(min(known, key=lambda row: column[row] or 0))
                chosen.add(max(known, key=lambda row: column[row] or 0))
    return sorted(chosen)


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
