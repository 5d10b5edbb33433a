"""The properties of a path, from a capture: rate, delay, queue, loss, each with an interval.

- Rate: trains of packets leave a queue at the link's rate (Dovrolis, Ramanathan and Moore, INFOCOM 2001). Without
  queueing, it is the dispersion of the closest packets (Keshav, SIGCOMM 1991).
- Delay: the least round trip.
- Queue: the time in it when it overflowed.
- Random loss: packets lost while it was not full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from polypath.twin import backlog
from polypath.twin.moving import Move, moves
from polypath.twin.observed import ETHERNET, IPV4, SYN, TCP, TIMESTAMPS, Floats, Place, Way

#: Arrivals of a train.
_TRAINS: Final = (16, 8, 4, 2)
#: A train queued if each of its packets found at least so many others.
_WAITING: Final = 2.5
#: Pairs: at most so many packets arrive at once, so many pairs have one rate, within this ratio.
_FEW, _MANY, _BESIDE = 3, 6, 1.03
#: Packets that were sent within this part of the time between their arrivals waited for one another.
_CLOSER: Final = 0.7
#: A queue that holds a packet for less than this may be the clock's grain.
_GRAIN_S: Final = 0.002
_ACK: Final = ETHERNET + IPV4 + TCP + TIMESTAMPS
#: What link layers add to a packet and no capture shows, as a part of a full one.
_FRAMING: Final = 0.01
#: What the least round trip may be off by: hosts' own time, and a part of it.
_LEAST_DELAY_S, _DELAY = 0.0003, 0.02
#: Packets that find the queue this full may be dropped because it is. Of these many more are lost than of others.
_NEARLY_FULL, _MORE = 0.85, 4
#: A full queue's time is at least this part of nearly the longest; of losses at a moving rate these are most.
_LONGEST, _MOST = 0.6, 0.7
#: With fewer losses nothing tells a full queue from chance.
_FEW_LOSSES: Final = 3


@dataclass(frozen=True)
class Value:
    """An estimate and the interval that should hold the truth."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """A path in the direction in which most data goes; None where the capture does not tell."""

    rate_bps: Value | None
    #: The rates one after the other, if it moves; the one above is then the highest.
    moves: tuple[Move, ...]
    #: One way: half of the round trip, which is all that one clock tells.
    delay_s: Value | None
    #: If it overflowed; what it held at most is known if not.
    queue_bytes: Value | None
    queued_bytes: float
    loss: Value | None
    #: Losses in a full queue, and others.
    overflows: int
    random: int


def estimate(ways: Sequence[Way]) -> Estimate:
    """The estimate of one direction of a path, from each of its subflows."""
    rate = _rate(ways)
    met = None if rate is None else [backlog.at_losses(way, rate.value) for way in ways]
    moving = _moves(ways, rate)
    queue, overflows = (None, 0) if met is None else _overflow(ways, met, moves=bool(moving))
    lost = sum(int(way.lost.sum()) for way in ways)
    loss = _loss(ways, lost - overflows)
    return Estimate(
        rate, moving, _delay(ways, rate), queue, _most_queued(ways, rate), loss, overflows, lost - overflows
    )


def _with_margin(value: Value, margin: float) -> Value:
    return Value(value.value, max(0.0, value.low - margin), value.high + margin)


def _most_queued(ways: Sequence[Way], rate: Value | None) -> float:
    queued = [float(np.nanmax(way.queued_s)) for way in ways if np.isfinite(way.queued_s).any()]
    return 0.0 if rate is None or not queued else max(queued) * rate.value / 8


def _trains(way: Way, count: int, least_s: float) -> tuple[Floats, Floats]:
    """When trains without a loss arrived, each of whose segments queued for `least_s`, and how many bits a second."""
    times, wire, queued, broken = way.arrivals
    if times.size <= count:
        return np.zeros(0), np.zeros(0)
    total = np.concatenate(([0.0], np.cumsum(wire)))
    span = times[count:] - times[:-count]
    sent = total[count + 1 :] - total[1:-count]
    busy = np.nan_to_num(queued, nan=0.0) >= least_s
    breaks = np.concatenate(([0], np.cumsum(broken | ~busy)))
    whole = breaks[count + 1 :] == breaks[1:-count]
    return times[count:][whole], np.asarray(sent[whole] * 8 / span[whole], dtype=np.float64)


def _waits_s(ways: Sequence[Way], closest: Value | None) -> float | None:
    """How long packets of trains are in the queue at least; None if nothing tells their time there."""
    queued = np.concatenate([way.queued_s for way in ways])
    queued = queued[np.isfinite(queued)]
    if not queued.size:
        return None
    least = max(_GRAIN_S, 0.25 * float(np.quantile(queued, 0.9)))
    if closest is None:
        return least
    return max(least, _WAITING * max(float(way.wire.max()) for way in ways) * 8 / closest.value)


def _moves(ways: Sequence[Way], rate: Value | None) -> tuple[Move, ...]:
    least = _waits_s(ways, rate)
    if least is None:
        return ()
    found = [_trains(way, _TRAINS[1], least) for way in ways]
    times, rates = (np.concatenate([each[part] for each in found]) for part in (0, 1))
    return moves(times, rates)


def _rate(ways: Sequence[Way]) -> Value | None:
    closest = _highest(np.concatenate([_pairs(way) for way in ways]))
    least = _waits_s(ways, closest)
    if least is not None:
        for count in _TRAINS:
            trains = _highest(np.concatenate([_trains(way, count, least)[1] for way in ways]))
            if trains is not None:
                return trains
    return closest


def _pairs(way: Way) -> Floats:
    """Bits a second between each two arrivals of at most a few packets, if these were sent closer than they came."""
    times, wire, _, broken = way.arrivals
    gaps = np.diff(times)
    close = np.diff(way.departures) < _CLOSER * gaps
    few = (wire[1:] <= _FEW * way.wire.max()) & ~broken[1:] & close
    return np.asarray((wire[1:] * 8 / gaps)[few], dtype=np.float64)


def _highest(rates: Floats) -> Value | None:
    """The highest rate near which there are many."""
    rates = np.sort(rates)
    if rates.size < _MANY:
        return None
    beside = np.searchsorted(rates, rates * _BESIDE, side="right") - np.arange(rates.size)
    many = np.flatnonzero(beside >= max(_MANY, 0.03 * rates.size))
    if not many.size:
        return None
    first = many[-1]
    last = first
    while first and beside[first - 1] >= beside[first]:
        first -= 1
    return _spread(rates[first : last + beside[last]])


def _spread(slopes: Floats) -> Value:
    low, middle, high = np.quantile(slopes, (0.1, 0.5, 0.9))
    return Value(float(middle), float(low) * (1 - _FRAMING), float(high) * (1 + _FRAMING))


def _delay(ways: Sequence[Way], rate: Value | None) -> Value | None:
    per_byte = 0.0 if rate is None else 8 / rate.value
    found = [way.handshake_s - 2 * SYN * per_byte for way in ways if way.handshake_s is not None]
    for way in ways:
        if way.place is Place.SENDER:
            trips = (way.told_s - way.sent_s) - (way.wire + _ACK) * per_byte
            exact = trips[np.isfinite(way.queued_s)]
            found += [float(exact.min())] if exact.size else []
    if not found:
        return None
    least = max(0.0, min(found)) / 2
    margin = max(_LEAST_DELAY_S, _DELAY * least)
    return Value(least, max(0.0, least - margin), least + margin)


def _overflow(ways: Sequence[Way], met: Sequence[backlog.Found], *, moves: bool) -> tuple[Value | None, int]:
    """The queue's size in bytes if losses show that it was full, and how many of them were for that.

    It is counted in packets or in bytes, whichever were more alike at the losses.
    """
    seconds = np.concatenate([each.seconds for each in met])
    queued = np.concatenate([way.queued_s[np.isfinite(way.queued_s)] for way in ways])
    if seconds.size < _FEW_LOSSES or queued.size < _MANY:
        return None, 0
    packet = max(float(way.wire.max()) for way in ways)
    in_packets = np.concatenate([each.packets for each in met]) * packet
    in_bytes = np.concatenate([each.bytes for each in met])
    measure = max((in_packets, in_bytes), key=_alike)
    top = float(np.quantile(measure, 0.9))
    near = measure >= _NEARLY_FULL * top
    least_s = float(np.quantile(seconds[near], 0.1))
    crowded = int((queued >= least_s).sum())
    share = near.sum() / max(1, crowded + near.sum())
    other = (~near).sum() / max(1, queued.size - crowded + (~near).sum())
    if near.sum() < _FEW_LOSSES or least_s < _GRAIN_S:
        return None, 0
    # A full queue drops many of those that find it so, and nothing ever waited much longer. At a rate that moves the
    # time in it changes, and what most losses agree in has to do.
    is_full = share >= _MORE * other and least_s >= _LONGEST * float(np.quantile(queued, 0.995))
    if not (_alike(measure) >= _MOST if moves else is_full):
        return None, 0
    low, middle, high = np.quantile(measure[near], (0.1, 0.5, 0.9))
    return _with_margin(Value(float(middle), float(low), float(high)), 2 * packet), int(near.sum())


def _alike(measure: Floats) -> float:
    """The part of losses that met nearly as much as most did."""
    return float((measure >= _NEARLY_FULL * np.quantile(measure, 0.9)).mean())


def _loss(ways: Sequence[Way], random: int) -> Value | None:
    """Random loss: what was lost while the queue was not full."""
    sent = sum(way.sent_s.size for way in ways)
    if not sent:
        return None
    margin = 2 * np.sqrt(random + 1)
    return Value(random / sent, max(0.0, random - margin) / sent, (random + margin) / sent)
