"""How far the delay of a path varies where no queue explains it.

The time that a packet waits behind others follows from their arrivals and the link's rate (Lindley, Proc. Cambridge
Phil. Soc. 48, 1952). The rest of its time on the way is the path's delay.

The jitter follows from differences of this delay between packets far enough apart to have independent delays. (RFC 3550
section 6.4.1 uses neighbours.) A path keeps the order of its packets. Neighbours' delays are therefore alike if the
delay varies by more than the time between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from polypath.twin.observed import Floats, Place, Way
from polypath.twin.value import Value

#: Pairs of packets lie so far apart, and not further than so many times that.
_APART_S, _REACH = 0.02, 4
#: Fewer pairs tell nothing; so many packets without a queue tell by themselves.
_PAIRS, _ENOUGH = 20, 30
#: Of a first rate, at which another one is looked for.
_FACTORS: Final = (1.0, *(2 ** (step / 4) for step in range(-4, 21) if step), 0.92, 1.08)
#: Less is the hosts' own time.
_LEAST_S: Final = 0.00008
#: Between the quartiles of a normal distribution, in standard deviations.
_QUARTILES: Final = 1.349
#: Packets that found no queue, whose median is the delay; and where there are fewer, how far the least lies below.
_IDLE, _BELOW = 10, 2.5
#: Packets behind one that found no queue whose wait is known well.
_FIRST: Final = 8
#: So far apart are the least and the most, of both ways together.
_WIDEST: Final = 10
#: The interval: two standard errors, and what the model leaves out.
_MARGIN: Final = 0.2
#: A packet waited if it did so for longer than this.
_WAITED_S: Final = 1e-6


def jitter(ways: Sequence[Way], rate_bps: float) -> Value | None:
    """The standard deviation of the delay, one way; None where it does not vary, or too little tells.

    A link's own variation shows in every packet. What varies before the queue, as in netem, shows only in those that
    found it empty.
    """
    ways = [way for way in ways if way.stamped]
    found = _alone(ways, rate_bps) or _spread(ways, rate_bps)
    if any(way.place is Place.RECEIVER for way in ways):
        found = next((each for each in (_spread(ways, rate_bps), found) if each and each[0] >= _LEAST_S), None)
    if found is None:
        return None
    there_and_back = any(way.place is Place.SENDER for way in ways)
    spread = found[0] / np.sqrt(1 + there_and_back)
    if spread < _LEAST_S:
        return None
    margin = spread * (_MARGIN + 2 / np.sqrt(2 * found[1]))
    return Value(float(spread), float(max(0.0, spread - margin)), float(spread + margin))


def _alone(ways: Sequence[Way], rate_bps: float) -> tuple[float, int] | None:
    """The deviation of the delays of packets that found no queue, and their number.

    Each delay is compared with the one before: a wait that is wrong for a while then counts little.
    """
    both = [_left(way, rate_bps) for way in ways]
    found = np.concatenate([np.zeros(0), *(np.diff(left[waited <= _WAITED_S]) for left, waited in both)])
    if found.size < _ENOUGH:
        return None
    # An even error of a tick has a twelfth of its square as variance; what is less than that may be the tick, too.
    grain = max(way.grain_s for way in ways) ** 2 / 12
    rest = _deviation(found) ** 2 / 2 - grain
    return (float(np.sqrt(rest)), found.size) if rest > grain else None


def _spread(ways: Sequence[Way], rate_bps: float) -> tuple[float, int] | None:
    """The same of all packets: of pairs, so that what changes slowly does not count, or of what there is."""
    found = np.concatenate([np.zeros(0), *(_differences(way, rate_bps) for way in ways)])
    if found.size >= _PAIRS:
        return _deviation(found) / float(np.sqrt(2)), found.size
    found = np.concatenate([np.zeros(0), *(_left(way, rate_bps)[0] for way in ways if not way.grain_s)])
    return (_deviation(found), found.size) if found.size >= _PAIRS else None


def _deviation(of: Floats) -> float:
    low, high = np.quantile(of, (0.25, 0.75))
    return float(high - low) / _QUARTILES


def tightest(ways: Sequence[Way], rate: Value) -> Value:
    """The rate at which the delay varies least: another one makes waits of what is none, or the other way round."""
    best, least, most = rate, np.inf, 0
    for factor in _FACTORS:
        found = _spread(ways, factor * rate.value)
        if found is None or found[1] < most / 2:
            continue
        most = max(most, found[1])
        if found[0] < least:
            best, least = rate.times(factor), found[0]
    return best


def settled(way: Way, rate_bps: float, spread: Value) -> Way:
    """With times in queues above the usual time on the way: the least is a rare one."""
    idle = _idle(way, rate_bps, spread)
    known = np.isfinite(way.queued_s)
    if way.place is Place.RECEIVER or idle.size < _IDLE:
        back = np.sqrt(1 + (way.place is Place.SENDER))
        shift = min(_BELOW * back * spread.value, float(np.median(way.queued_s[known]))) if known.any() else 0.0
    else:
        tx_s = float(np.median(way.wire)) * 8 / rate_bps
        shift = float(np.median(idle)) + tx_s - way.least_s
    if way.place is Place.RECEIVER:
        return replace(way, queued_s=way.queued_s - shift, enters_s=way.enters_s + shift)
    return replace(way, queued_s=way.queued_s - shift, least_s=way.least_s + shift)


def round_trip(way: Way, rate_bps: float, spread: Value) -> float | None:
    """The usual round trip without queues; None where too few packets tell."""
    idle = _idle(way, rate_bps, spread)
    return float(np.median(idle)) if way.place is Place.SENDER and idle.size >= _IDLE else None


def _idle(way: Way, rate_bps: float, spread: Value) -> Floats:
    """The time on the way of packets that found no queue.

    The first few behind such a packet count too. Times far above the least are left out.
    """
    waited = _waits(way, rate_bps)
    order = np.arange(waited.size)
    since = order - np.maximum.accumulate(np.where(waited <= _WAITED_S, order, -_FIRST))
    left = _left(way, rate_bps)[0]
    idle = left[since[np.isfinite(way.queued_s)] < _FIRST]
    return idle[idle <= left.min() + _WIDEST * spread.value] if idle.size else idle


def _waits(way: Way, rate_bps: float) -> Floats:
    """The time that each packet waits behind those before it."""
    takes = np.where(way.lost & ~way.holes, 0.0, way.wire * 8 / rate_bps)
    total = np.cumsum(takes)
    # The link is free when everything is sent since it last began from nothing.
    free = total + np.maximum.accumulate(way.enters_s - (total - takes))
    return np.asarray(np.maximum(0.0, np.concatenate(([-np.inf], free[:-1])) - way.enters_s), dtype=np.float64)


def _left(way: Way, rate_bps: float) -> tuple[Floats, Floats]:
    """The time on the way without queue and transmission, and the wait, of the packets for which it is known."""
    waited = _waits(way, rate_bps)
    known = np.isfinite(way.queued_s)
    left = way.told_s - way.enters_s - waited - way.wire * 8 / rate_bps
    return left[known], waited[known]


def _differences(way: Way, rate_bps: float) -> Floats:
    left, waited = _left(way, rate_bps)
    known = np.isfinite(way.queued_s)
    times = way.enters_s[known]
    losses = np.cumsum(way.lost)[known]
    # A clock of timestamps is coarse: only packets of one busy time share its error.
    busy = np.cumsum(waited <= _WAITED_S) if way.place is Place.RECEIVER else np.zeros(times.size)
    later = np.searchsorted(times, times + _APART_S)
    first = np.flatnonzero(later < times.size)
    second = later[first]
    near = times[second] - times[first] <= _REACH * _APART_S
    same = (losses[first] == losses[second]) & (busy[first] == busy[second])
    pairs = near & same
    return np.asarray(left[second[pairs]] - left[first[pairs]], dtype=np.float64)
