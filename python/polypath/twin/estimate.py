"""The properties of a path, from a capture: rate, delay, jitter, queue, loss, each with an interval.

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
from polypath.twin.jitter import jitter, round_trip, settled, tightest
from polypath.twin.moving import Move, moves
from polypath.twin.observed import ETHERNET, IPV4, TCP, TIMESTAMPS, Floats, Place, Way
from polypath.twin.value import Value

#: Arrivals of a train.
_TRAINS: Final = (16, 8, 4, 2)
#: A train queued if each of its packets found at least so many others.
_WAITING: Final = 2.5
#: Pairs: at most so many packets arrive at once, so many pairs have one rate, within this ratio.
_FEW, _MANY, _BESIDE = 3, 6, 1.03
#: Trains where the delay varies, the first that takes so many times as long as it varies by; its part in an interval.
_LONG: Final = (16, 32, 64, 128, 256)
_STEADY, _SHARE = 50, 0.5
#: Where there are none the rate may be another one by so much.
_OPEN: Final = 1.2
#: A queue shows if it is so many times as long as what the delay varies by; delays vary alike within this ratio.
_SURELY, _ALIKE = 4, 1.1
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
class Estimate:
    """A path in the direction in which most data goes; None where the capture does not tell."""

    rate_bps: Value | None
    #: The rates one after the other, if it moves; the one above is then the highest.
    moves: tuple[Move, ...]
    #: One way: half of the round trip, which is all that one clock tells.
    delay_s: Value | None
    #: The usual round trip without queues and the least one, without transmission.
    trips_s: tuple[float | None, float | None]
    #: The standard deviation of the delay, one way; None where it does not vary.
    jitter_s: Value | None
    #: If it overflowed; what it held at most is known if not.
    queue_bytes: Value | None
    queued_bytes: float
    loss: Value | None
    #: Losses in a full queue, and others.
    overflows: int
    random: int


def estimate(ways: Sequence[Way]) -> tuple[Sequence[Way], Estimate]:
    """The estimate of one direction of a path, from each of its subflows.

    The subflows are returned with their queueing times, which follow from the estimate.
    """
    rate = _rate(ways)
    spread = None if rate is None else jitter(ways, rate.value)
    if rate is not None and spread is not None:
        rate, spread, ways = _with_jitter(ways, tightest(ways, rate), spread)
    met = None if rate is None else [backlog.at_losses(way, rate.value) for way in ways]
    moving = _moves(ways, rate, spread)
    queue, overflows = (None, 0) if met is None else _overflow(ways, met, moves=bool(moving))
    lost = sum(int(way.lost.sum()) for way in ways)
    trips = _trips(ways, rate, spread)
    return ways, Estimate(
        rate_bps=rate,
        moves=moving,
        delay_s=_delay(trips, spread),
        trips_s=trips,
        jitter_s=spread,
        queue_bytes=queue,
        queued_bytes=_most_queued(ways, rate),
        loss=_loss(ways, lost - overflows),
        overflows=overflows,
        random=lost - overflows,
    )


def _with_jitter(ways: Sequence[Way], rate: Value, spread: Value) -> tuple[Value, Value, Sequence[Way]]:
    """The rate by longer trains, if the delay does not vary more by it; and what follows from it."""
    spread = jitter(ways, rate.value) or spread
    steady = [settled(way, rate.value, spread) for way in ways]
    longer = _among_jitter(steady, rate, spread)
    varies = jitter(ways, longer.value)
    if varies is None or varies.value > _ALIKE * spread.value:
        return Value(rate.value, rate.value / _OPEN, rate.value * _OPEN), spread, steady
    return longer, varies, [settled(way, longer.value, varies) for way in ways]


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


def _moves(ways: Sequence[Way], rate: Value | None, spread: Value | None) -> tuple[Move, ...]:
    least = _waits_s(ways, rate)
    if least is None:
        return ()
    count = _TRAINS[1] if rate is None or spread is None else _steady(ways, rate, spread)
    found = [_trains(way, count, least) for way in ways]
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


def _among_jitter(ways: Sequence[Way], rate: Value, spread: Value) -> Value:
    """The rate of trains that are long compared with the jitter.

    If no packets queued, it is that of packets that arrived faster than they were sent.
    """
    packet_s = max(float(way.wire.max()) for way in ways) * 8 / rate.value
    enough = _steady(ways, rate, spread)
    least = _waits_s(ways, rate)
    least = None if least is None else least + _SURELY * spread.value
    for count in (enough, *(each for each in reversed(_LONG) if each < enough)):
        for rates in (
            np.concatenate([np.zeros(0), *(_trains(way, count, least)[1] for way in ways if least is not None)]),
            np.concatenate([_bursts(way, count) for way in ways]),
        ):
            if rates.size >= _MANY:
                low, middle, high = np.quantile(rates, (0.1, 0.5, 0.9))
                margin = _FRAMING + _SHARE * spread.value / (count * packet_s)
                return Value(float(middle), float(low) * (1 - margin), float(high) * (1 + margin))
    return Value(rate.value, rate.value / _OPEN, rate.value * _OPEN)


def _steady(ways: Sequence[Way], rate: Value, spread: Value) -> int:
    """Arrivals of a train of which what the delay varies by is little."""
    packet_s = max(float(way.wire.max()) for way in ways) * 8 / rate.value
    return next((count for count in _LONG if count * packet_s >= _STEADY * spread.value), _LONG[-1])


def _bursts(way: Way, count: int) -> Floats:
    """Bits a second of trains that were sent in less time than they came in."""
    times, wire, _, broken = way.arrivals
    if times.size <= count:
        return np.zeros(0)
    total = np.concatenate(([0.0], np.cumsum(wire)))
    span = times[count:] - times[:-count]
    left = way.departures
    breaks = np.concatenate(([0], np.cumsum(broken)))
    whole = (breaks[count + 1 :] == breaks[1:-count]) & (left[count:] - left[:-count] < _CLOSER * span)
    return np.asarray(((total[count + 1 :] - total[1:-count]) * 8 / span)[whole], dtype=np.float64)


def _pairs(way: Way) -> Floats:
    """Bits a second between each two arrivals of at most a few packets, if these were sent closer than they came."""
    times, wire, _, broken = way.arrivals
    gaps = np.diff(times)
    close = (np.diff(way.departures) < _CLOSER * gaps) | (not way.stamped)
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


def _trips(ways: Sequence[Way], rate: Value | None, spread: Value | None) -> tuple[float | None, float | None]:
    per_byte = 0.0 if rate is None else 8 / rate.value
    found = [way.handshake_s - way.handshake_bytes * per_byte for way in ways if way.handshake_s is not None]
    for way in ways:
        if way.place is Place.SENDER:
            trips = (way.told_s - way.sent_s) - (way.wire + _ACK) * per_byte
            exact = trips[np.isfinite(way.queued_s)]
            found += [float(exact.min())] if exact.size else []
    usual = [] if spread is None or rate is None else [round_trip(way, rate.value, spread) for way in ways]
    known = [trip - _ACK * per_byte for trip in usual if trip is not None]
    return (known[0] if known else None), min(found, default=None)


def _delay(trips_s: tuple[float | None, float | None], spread: Value | None) -> Value | None:
    usual, least = trips_s
    trip = least if usual is None else usual
    if trip is None:
        return None
    one_way = max(0.0, trip) / 2
    margin = max(_LEAST_DELAY_S, _DELAY * one_way) + (0.0 if spread is None else spread.value)
    return Value(one_way, max(0.0, one_way - margin), one_way + margin)


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
