"""The packets in a path's queue at each moment: those that had entered it and had not left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polypath.twin.observed import Flags, Floats, Ints, Way


@dataclass(frozen=True)
class Found:
    """What each lost packet met in the queue."""

    seconds: Floats
    packets: Floats
    bytes: Floats


def at_losses(way: Way, rate_bps: float) -> Found:
    """What each packet that was lost met, at a link of this rate."""
    told = way.told_s - _behind_bytes(way) * 8 / rate_bps
    counts = np.isfinite(told) & ~way.again
    leaves = _in_order(told[counts] - way.least_s, way.delayed[counts])
    enters = np.sort(way.enters_s[counts])
    packets = np.concatenate(([0.0], np.cumsum(way.packets[counts])))
    wire = np.concatenate(([0.0], np.cumsum(way.wire[counts])))
    times = way.enters_s[way.lost]
    came, gone = np.searchsorted(enters, times, side="right"), np.searchsorted(leaves, times, side="right")
    came = np.minimum(came, _before(counts, way.lost))
    gone = np.minimum(gone, came)
    last = np.concatenate(([-np.inf], leaves))[came]
    more = way.holes[way.lost].astype(np.float64)
    return Found(
        np.maximum(last - times, 0.0),
        packets[came] - packets[gone] + more,
        wire[came] - wire[gone] + more * float(way.wire.max()),
    )


def _in_order(leaves: Floats, delayed: Flags) -> Floats:
    """Packets leave in the order in which they came: one whose acknowledgement was delayed, before the next one."""
    known = np.where(delayed, np.inf, leaves)
    after = np.minimum.accumulate(known[::-1])[::-1]
    return np.asarray(np.maximum.accumulate(np.where(delayed, np.minimum(leaves, after), leaves)), dtype=np.float64)


def _before(counts: Flags, lost: Flags) -> Ints:
    """How many of those that count stand before each lost one."""
    return np.asarray((np.cumsum(counts) - counts)[lost], dtype=np.int64)


def _behind_bytes(way: Way) -> Floats:
    """Per segment, the bytes behind it that are acknowledged first by the same acknowledgement."""
    total = np.cumsum(way.wire)
    same = np.concatenate((np.flatnonzero(np.diff(way.told_s) != 0), [way.told_s.size - 1]))
    last = same[np.searchsorted(same, np.arange(way.told_s.size))]
    behind = np.where(way.again, 0.0, total[last] - total)
    return np.asarray(behind, dtype=np.float64)
