"""The options of Mininet's links, and their conversion to a scenario's link (mininet/link.py `TCIntf`, man tc-netem).

netem counts packets in propagation towards its limit; a scenario's queue does not. Its jitter is uniform between plus
and minus the value, and packets may overtake. The standard deviation is the value over the root of 3.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from polypath.scenario.errors import ScenarioError
from polypath.units import nearest

#: tbf's bucket, and how many times its sending time a packet waits at most unless latency_ms is given.
TBF_BURST_BYTES: Final = 15_000
#: Rates above this Mininet itself ignores.
MOST_MBPS: Final = 1000
#: The rate of a link without one: what veth reports (Linux drivers/net/veth.c). It is as fast as the processor there.
VETH: Final = "10 Gbps"
#: RED as TCIntf configures it: 30,000, 35,000 and 1,000,000 bytes in packets of 1500, and the weight that tc computes
#: of burst 20 (iproute2 tc/tc_red.c).
RED: Final = {
    "kind": "red",
    "min": "20 packets",
    "max": "23 packets",
    "probability": "100 %",
    "weight": 0.5,
    "gentle": False,
    "limit": "666 packets",
}
SHAPING: Final = ("bw", "delay", "jitter", "loss", "max_queue_size", "latency_ms")
SWITCHES: Final = ("use_hfsc", "use_tbf", "enable_ecn", "enable_red")
#: Options without effect here, and those that name things.
IGNORED: Final = ("speedup", "gro", "tso", "disable_gro", "txo", "rxo", "fast", "up", "mac", "addr1", "addr2")
NAMING: Final = (
    *("node1", "node2", "port1", "port2", "intfName1", "intfName2", "cls", "cls1", "cls2", "intf"),
    *("params1", "params2", "ip", "ifconfig", "moveIntfFn", "use_htb"),
)

_TIME = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-z]*)\s*")
_UNITS: Final = {
    **dict.fromkeys(("s", "sec", "secs"), Decimal(10) ** 9),
    **dict.fromkeys(("ms", "msec", "msecs"), Decimal(10) ** 6),
    **dict.fromkeys(("us", "usec", "usecs"), Decimal(10) ** 3),
    **dict.fromkeys(("ns", "nsec", "nsecs"), Decimal(1)),
}

Fault = Callable[[str, str | None], ScenarioError]


@dataclass
class Shape:
    """One direction of a link, as a scenario writes it, and what differs from Mininet."""

    keys: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    #: Where the queue is if the sender is a host.
    at_host: str | None = None


def shape(options: Mapping[str, Any], fault: Fault) -> Shape:
    """What an interface with these options does to packets that leave. Raises what `fault` makes of a message."""
    reader = _Reader(options, fault)
    made = Shape()
    rate, delay, jitter = reader.number("bw", above=0), reader.time("delay"), reader.time("jitter")
    loss, limit = reader.number("loss", most=100), reader.count("max_queue_size")
    latency_ms = reader.number("latency_ms", above=0)
    on = {name: reader.switch(name) for name in SWITCHES}
    for name in options:
        if name not in (*SHAPING, *SWITCHES, *IGNORED, *NAMING):
            hint = nearest(name, (*SHAPING, *SWITCHES, *NAMING))
            there = "" if hint else f"; there is {', '.join((*SHAPING, *SWITCHES))}"
            raise fault(f"a link has no option '{name}'{there}", hint)
    made.notes += reader.notes
    if rate is not None:
        made.keys["rate"] = f"{rate:f} Mbps"
        if rate > MOST_MBPS:
            made.notes.append(f"Mininet itself ignores rates above {MOST_MBPS} Mbit/s; here they count")
    elif any(on.values()) or latency_ms is not None:
        name = next((name for name in SWITCHES if on[name]), "latency_ms")
        raise fault(f"'{name}' is about a rate, and there is no 'bw'", None)
    else:
        made.keys["rate"] = VETH
        made.notes.append(f"no 'bw': as fast as the processor in Mininet, {VETH} here; --link tc,bw=.. says otherwise")
    if delay:
        made.keys["delay"] = f"{delay.normalize():f} ns"
    if jitter:
        made.keys["jitter"] = f"{round(float(jitter) / math.sqrt(3))} ns"
        made.notes.append(
            "netem draws 'jitter' evenly and lets packets overtake; here it is normal, and they keep order"
        )
    if loss:
        made.keys["loss"] = f"{loss:f} %"
    _queue(made, rate, delay, limit, latency_ms, on, netem=any((delay, jitter, loss, limit)))
    return made


def _queue(
    made: Shape,
    rate: Decimal | None,
    delay: Decimal | None,
    limit: int | None,
    latency_ms: Decimal | None,
    on: Mapping[str, bool],
    *,
    netem: bool,
) -> None:
    if limit is not None:
        made.keys["queue"] = f"{limit} packets"
    if rate is None:
        return
    if limit is not None and delay and limit * 12_000 < rate * delay / 1000:  # 1500 bytes each, rate in bit/us
        made.notes.append(f"netem's limit of {limit} packets counts those on their way, too; here it is the queue's")
    if on["enable_ecn"] or on["enable_red"]:
        made.keys["queue"] = {**RED, "ecn": on["enable_ecn"]}
        if limit is not None:
            made.notes.append("'max_queue_size' has no effect: the queue is RED's")
    elif on["use_tbf"] and not netem:
        wait_ms = Decimal(8 * TBF_BURST_BYTES) / 1000 / rate if latency_ms is None else latency_ms
        made.keys["queue"] = f"{max(int(rate * wait_ms * 125), 0) + TBF_BURST_BYTES} B"
    if on["use_tbf"]:
        made.keys["burst"] = f"{TBF_BURST_BYTES} B"
    plain = "burst" not in made.keys and not isinstance(made.keys.get("queue"), dict)
    made.at_host = "host-netem" if netem or not plain else "host-tbf"


class _Reader:
    def __init__(self, options: Mapping[str, Any], fault: Fault) -> None:
        self._options, self._fault = options, fault
        self.notes: list[str] = []

    def number(self, name: str, *, above: int | None = None, most: int | None = None) -> Decimal | None:
        value = self._options.get(name)
        if value is None:
            return None
        fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value < 1e9
        if not fits or value < 0 or (above is not None and value < 1e-6) or (most is not None and value > most):
            least = "more than 0" if above is not None else f"from 0 to {most}"
            raise self._fault(f"{name}={_shown(value)}: expected a number {least}", None)
        return Decimal(str(value))

    def count(self, name: str) -> int | None:
        value = self._options.get(name)
        if value is None:
            return None
        fits = isinstance(value, int | float) and not isinstance(value, bool) and value == value and value < 1e9
        if not fits or value < 1:
            raise self._fault(f"{name}={_shown(value)}: expected a number of packets, at least 1", None)
        if int(value) != value:  # TCIntf.delayCmds formats it with %d
            self.notes.append(f"{name}={_shown(value)}: Mininet drops the fraction, and so does the import")
        return int(value)

    def time(self, name: str) -> Decimal | None:
        """In ns. tc takes a number without a unit for microseconds."""
        value = self._options.get(name)
        if value is None:
            return None
        text = str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
        match = _TIME.fullmatch(text)
        if match is None or (match[2] and match[2] not in _UNITS):
            raise self._fault(f"{name}={_shown(value)}: expected a time such as '5ms'", None)
        if not match[2]:
            self.notes.append(f"{name}={_shown(value)} has no unit: tc takes it for microseconds")
        found = Decimal(match[1]) * _UNITS[match[2] or "us"]
        if found > 10**13:
            raise self._fault(f"{name}={_shown(value)}: expected a time of at most 10000 s", None)
        return found.quantize(Decimal(1))

    def switch(self, name: str) -> bool:
        value = self._options.get(name, False)
        if value is not None and not isinstance(value, bool | int):
            raise self._fault(f"{name}={_shown(value)}: expected True or False", None)
        return bool(value)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"({next(iter(value))})"
    return repr(value)
