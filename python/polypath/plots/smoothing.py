"""Rates over intervals that suit the round-trip time, and axes that a burst does not squash.

Data that waits for the repair of a loss is delivered at once. A fast retransmission takes a round-trip time after the
loss is detected, and detection takes another. Over intervals of some round-trip times, such a burst compensates the
pause, and is no rate that exceeds the links.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from polypath.plots.base import Canvas
from polypath.plots.style import rounded
from polypath.results import Recording, metrics

#: Round-trip times that an interval spans at least, and intervals that a connection has at least, and about at most.
ROUND_TRIPS: Final = 4
_LEAST_INTERVALS: Final = 20
_MOST_INTERVALS: Final = 500
#: A last interval that is shorter than the rest by more than this part belongs to the one before.
_LAST: Final = 0.25
_STEPS: Final = (1, 2, 5)
#: A rate of arrival counts as a burst beyond this multiple of the rate that 99 % of the intervals keep below.
_BURST: Final = 2.0
#: What is only so much above the end of the axis stretches it instead of being cut off.
_NEAR: Final = 1.3
_CUT: Final = "▲ cut off:"

Floats = NDArray[np.float64]


def interval_s(recording: Recording, of: metrics.Connection) -> float:
    """The averaging time of this connection's rates in seconds, a round number.

    It is at least the sampling interval, four times the median smoothed RTT of the slowest subflow, and a 500th of the
    connection's time. It is at most a twentieth of that time, unless samples are further apart.
    """
    times, _ = metrics.delivered(recording, of)
    if len(times) < 2:
        return 0.0
    sampled = median(later - earlier for earlier, later in pairwise(times)) / metrics.SECOND
    whole = (times[-1] - times[0]) / metrics.SECOND
    width = _round(max(ROUND_TRIPS * slowest_rtt_s(recording, of), whole / _MOST_INTERVALS))
    while width > whole / _LEAST_INTERVALS and width > sampled:
        width = _smaller(width)
    return width if width > sampled * 1.01 else sampled


def slowest_rtt_s(recording: Recording, of: metrics.Connection) -> float:
    """The median smoothed RTT of the slowest of its subflows, in seconds; 0 where none was measured."""
    found = [metrics.srtt_us(recording, of, subflow) for subflow in metrics.subflows(recording, of)]
    return max((median(samples) for samples in found if samples), default=0.0) / 1e6


def _round(value: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    if value <= 0:
        return 0.0
    power = 10.0 ** int(np.floor(np.log10(value)))
    return next((step * power for step in (*_STEPS, 10) if step * power >= value * 0.999), 10 * power)


def _smaller(value: float) -> float:
    power = 10.0 ** int(np.floor(np.log10(value * 1.001)))
    lower = [step * power for step in _STEPS if step * power < value * 0.999]
    return lower[-1] if lower else 0.5 * power


@dataclass(frozen=True)
class Rates:
    """Mbps in each interval, between `edges` in seconds (one more than there are rates)."""

    edges: Floats
    mbps: Floats


def rates(ends: Sequence[float], values: Sequence[float], start_s: float, width_s: float) -> Rates:
    """Rates of sampling intervals, given by their ends, taken over intervals of `width_s`."""
    fine = np.array([start_s, *ends])
    amounts = np.concatenate([[0.0], np.cumsum(np.diff(fine) * np.array(values, dtype=float))])
    if len(fine) < 2:
        return Rates(fine[:0], fine[:0])
    count = max(1, int((fine[-1] - fine[0]) / width_s + _LAST)) if width_s > 0 else len(fine) - 1
    if count >= len(fine) - 1:
        return Rates(fine, np.diff(amounts) / np.diff(fine))
    edges = fine[0] + width_s * np.arange(count + 1)
    edges[-1] = fine[-1]
    return Rates(edges, np.diff(np.interp(edges, fine, amounts)) / np.diff(edges))


@dataclass(frozen=True)
class _Curve:
    rates: Rates
    #: What arrived, but for bursts.
    usual: float
    tint: str
    #: Whether what arrived is drawn, too.
    stacked: bool


def limit(ax: Axes, curve: Rates, arrived: Floats, tint: str, *, stacked: bool) -> None:
    """Ends the axis above what arrived; what is delivered in bursts beyond that is cut off, and the figure says so."""
    canvas = Canvas.of(ax)
    canvas.rates.append(_Curve(curve, _usual(arrived), tint, stacked))
    curves = [each for each in canvas.rates if isinstance(each, _Curve)]
    usual = max(each.usual for each in curves)
    peak = max((float(each.rates.mbps.max()) for each in curves if each.rates.mbps.size), default=0.0)
    # copies arrive, too, and are not delivered
    drawn = max(peak, *(each.usual for each in curves if each.stacked), 0.0)
    # of QUIC's datagrams no subflow's share is known
    top = 1.05 * (drawn if usual == 0 or peak <= _NEAR * usual else usual)
    if top > 0:
        ax.set_ylim(0, top)
    for line in [line for line in ax.lines if line.get_gid() == "cut"]:
        line.remove()
    canvas.note(f"{_CUT} up to {rounded(peak)} Mbps" if peak > top else "", instead=_CUT)
    for each in curves:
        over = each.rates.mbps > top
        middles = (each.rates.edges[1:] + each.rates.edges[:-1]) / 2
        if over.any():
            (marks,) = ax.plot(
                middles[over], np.full(int(over.sum()), top), "^", color=each.tint, markersize=4, clip_on=False
            )
            marks.set_gid("cut")
            marks.set_in_layout(False)


def _usual(arrived: Floats) -> float:
    if not arrived.size:
        return 0.0
    most, usual = float(arrived.max()), float(np.quantile(arrived, 0.99))
    return most if most <= _BURST * usual or usual == 0 else usual


def told(drawn: Rates) -> str:
    """The interval in words: as it is, of which samples are the least and the connection's time the most."""
    width_s = float(np.median(np.diff(drawn.edges)))
    return f"mean over {width_s:.4g} s" if width_s >= 1 else f"mean over {width_s * 1e3:.4g} ms"
