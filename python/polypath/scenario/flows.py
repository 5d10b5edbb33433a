"""Flows that arrive at random: each is a separate transfer between one of several pairs of hosts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from polypath.scenario import draws
from polypath.scenario.traffic import Application, Bulk

MOST = 50_000
"""Flows of one application: as many as there are ports for, with room for others."""
_SECOND = 1_000_000_000


def arriving(of: Bulk, name: str, pairs: Sequence[Application], end: int, stream: str) -> list[Application]:
    """A transfer for each flow that begins before `end` (ns), as `of` says; each takes its ends from one of `pairs`."""
    return [
        pairs[draws.below(len(pairs), f"{stream} pair {number}")].model_copy(
            update={
                "name": f"{name}-{number + 1}",
                "group": name,
                "start": start,
                "size": of.size if of.sizes is None else of.sizes.at(draws.fraction(f"{stream} size {number}")),
                "duration": None,
                "arrivals": None,
                "sizes": None,
                "port": None if of.port is None else of.port + number,
            }
        )
        for number, start in enumerate(_starts(of, end, stream))
    ]


def expected(of: Bulk, end: int) -> float:
    """How many flows arrive on average before `end` (ns)."""
    return 0 if of.arrivals is None else of.arrivals * (_last(of, end) - of.start) / _SECOND


def _last(of: Bulk, end: int) -> int:
    return end if of.duration is None else min(end, of.start + of.duration)


def _starts(of: Bulk, end: int, stream: str) -> Iterator[int]:
    """Times in ns with exponentially distributed gaps."""
    assert of.arrivals is not None
    at, last = float(of.start), _last(of, end)
    for number in range(MOST):
        at += -math.log1p(-draws.fraction(f"{stream} gap {number}")) / of.arrivals * _SECOND
        if at >= last:
            return
        yield round(at)
