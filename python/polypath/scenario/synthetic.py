"""Synthetic traces of links, from published models with a seed. The same seed gives the same file on every machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from polypath.scenario import draws


class _Draws:
    """Draws one after the other from a stream of its own."""

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._count = 0

    def fraction(self) -> float:
        """Evenly distributed from 0 to below 1."""
        self._count += 1
        return draws.fraction(f"{self._stream} {self._count}")

    def exponential(self) -> float:
        """Exponentially distributed around 1."""
        return -math.log(1 - self.fraction())

    def normal(self) -> float:
        """Standard normal (Box and Muller 1958)."""
        return math.sqrt(2 * self.exponential()) * math.cos(2 * math.pi * self.fraction())


#: Sprout, section 3: noise of the rate in packets/s per square root of a second, the greatest rate, the mean outage.
_NOISE: Final = 200.0
_MOST: Final = 1000.0
_OUTAGE_S: Final = 1.0
_STEP_S: Final = 0.02


def lte(seed: int, duration_s: int) -> str:
    """Delivery opportunities of a cellular link, in Mahimahi's format.

    They are a Poisson process. Its rate is a Brownian motion of 200 packets/s per square root of a second, between 0
    and 1000 packets/s (12 Mbps). A rate of 0 lasts for an exponentially distributed time of 1 s on average. The rate
    starts evenly distributed from 250 to 750 packets/s and moves each 20 ms.
    """
    own = _Draws(f"{seed} lte")
    rate = 250 + 500 * own.fraction()
    outage_s, left = 0.0, own.exponential()
    times: list[int] = []
    for step in range(round(duration_s / _STEP_S)):
        begin = step * _STEP_S
        if outage_s > 0:
            outage_s -= _STEP_S
            continue
        passed = 0.0
        while rate > 0 and left <= rate * (_STEP_S - passed):
            passed += left / rate
            times.append(math.ceil(1000 * (begin + passed)))
            left = own.exponential()
        left -= rate * (_STEP_S - passed)
        rate += _NOISE * math.sqrt(_STEP_S) * own.normal()
        if rate > _MOST:
            rate = 2 * _MOST - rate
        elif rate <= 0:
            outage_s = _OUTAGE_S * own.exponential()
            rate = max(-rate, 1.0)
    return "".join(f"{time}\n" for time in (*times, 1000 * duration_s))


#: Minimum sensitivity in dBm and rate in Mbps of MCS 0 to 7 in 20 MHz, one stream, guard interval of 800 ns.
_MCS: Final = (
    (-82, 6.5),
    (-79, 13.0),
    (-77, 19.5),
    (-74, 26.0),
    (-70, 39.0),
    (-66, 52.0),
    (-65, 58.5),
    (-64, 65.0),
)
_AT_A_METRE_DBM: Final = -20.0
_EXPONENT: Final = 3.5
_SHADOWING_DB: Final = 3.0
_CORRELATION_M: Final = 5.0
_START_M: Final = 10.0
_SPEED: Final = 1.4
_EFFICIENCY: Final = 0.6
_ROW_S: Final = 0.5


def wifi_walk(seed: int, duration_s: int) -> str:
    """Rate and loss of a Wi-Fi link while somebody walks away from the access point, as CSV.

    The walk has 1.4 m/s and begins 10 m away. The signal is -20 dBm at 1 m and falls by 35 dB for each tenfold
    distance. Log-normal shadowing of 3 dB is correlated over 5 m (Gudmundson 1991).

    The rate is that of the highest MCS of IEEE 802.11n whose minimum sensitivity is met (IEEE 802.11-2016, section
    19.3.19.2). Medium access leaves 0.6 of it. Within 3 dB of the lowest sensitivity, up to 20 % of packets are lost,
    and below it all. There is a row each 0.5 s.
    """
    own = _Draws(f"{seed} wifi-walk")
    kept = math.exp(-_SPEED * _ROW_S / _CORRELATION_M)
    shadow = _SHADOWING_DB * own.normal()
    lines = ["time_s,rate_mbps,loss"]
    for row in range(math.ceil(duration_s / _ROW_S)):
        distance = _START_M + _SPEED * row * _ROW_S
        signal = _AT_A_METRE_DBM - 10 * _EXPONENT * math.log10(distance) + shadow
        mcs = [rate for least, rate in _MCS if signal >= least]
        lowest, rate = _MCS[0]
        loss = 1.0 if not mcs else 0.2 * max(0.0, 1 - (signal - lowest) / 3)
        lines.append(f"{row * _ROW_S:g},{_EFFICIENCY * (mcs[-1] if mcs else rate):.4g},{loss:.2g}")
        shadow = kept * shadow + math.sqrt(1 - kept**2) * _SHADOWING_DB * own.normal()
    return "".join(f"{line}\n" for line in lines)


_SLOT_S: Final = 15
_GAP_S: Final = 0.1


def satellite(seed: int, duration_s: int) -> str:
    """Rate, delay and loss of a link over satellites in low orbit that hands over to another one each 15 s, as CSV.

    Starlink reconfigures each 15 s (Mohan et al. 2024). In each slot the one-way delay is evenly distributed
    from 15 to 30 ms and the rate from 10 to 40 Mbps. Everything is lost in the first 100 ms of a slot but the first.
    These ranges and the gap are ours, a tenth of the measured rates so that runs stay short.
    """
    own = _Draws(f"{seed} satellite")
    lines = ["time_s,rate_mbps,delay_ms,loss"]
    for slot in range(0, duration_s, _SLOT_S):
        delay, rate = 15 + 15 * own.fraction(), 10 + 30 * own.fraction()
        if slot:
            lines.append(f"{slot},{rate:.1f},{delay:.1f},1")
        lines.append(f"{slot + (_GAP_S if slot else 0):g},{rate:.1f},{delay:.1f},0")
    return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True)
class Kind:
    """A kind of trace: what it is, who described the model, and what writes it."""

    summary: str
    source: str
    scenario: str
    """How a link of a scenario uses the file."""
    make: Callable[[int, int], str]


KINDS: Final[Mapping[str, Kind]] = {
    "lte": Kind(
        "a cellular link's opportunities to deliver, in Mahimahi's format",
        "Winstein, Sivaraman and Balakrishnan, Stochastic Forecasts Achieve High Throughput and Low Delay over Cellular"
        " Networks, NSDI 2013, section 3",
        "rate = {{ trace = {file} }}",
        lte,
    ),
    "wifi-walk": Kind(
        "rate and loss of a Wi-Fi link while somebody walks away, as CSV",
        "Gudmundson, Correlation model for shadow fading in mobile radio systems, Electronics Letters 1991;"
        " IEEE 802.11-2016, section 19.3.19.2",
        "conditions = {{ csv = {file} }}",
        wifi_walk,
    ),
    "satellite": Kind(
        "rate, delay and loss of a link over satellites in low orbit with a handover each 15 s, as CSV",
        "Mohan et al., A Multifaceted Look at Starlink Performance, WWW 2024",
        "conditions = {{ csv = {file} }}",
        satellite,
    ),
}
"""The kinds of synthetic traces by name."""


def described() -> Iterator[str]:
    """A line for each kind."""
    return (f"{name}: {kind.summary}" for name, kind in KINDS.items())
