"""Quantities with their units: "20 Mbps", "40 ms", "80 packets", "1 MB", "1 %".

Text is read and written exactly. A quantity is a whole number of its base unit (bit/s, ns, bytes, packets). A share is
the nearest double to the decimal fraction. Written text reads back to the same value. Prefixes are those of the SI;
KiB, MiB and GiB are powers of 1024 (IEC 80000-13).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from typing import Final

from polypath.errors import PolypathError

#: In nanoseconds.
SECOND: Final = 1_000_000_000

_TEXT = re.compile(r"(?P<number>-?[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>%|[^\W\d_]+(?:/[^\W\d_]+)?)?")
_OF_BYTES = re.compile(r"(?:[kKMGT]i?)?B(?:ps|/s)")
_LONGEST = 48
_READABLE = 1000

SHARE_LIMIT = Decimal(100)


class UnitError(PolypathError, ValueError):
    """A text that is no such quantity; `hint` is what was probably meant, or None."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The one of `words` that is most like `word`, case aside; None if none is near."""
    folded: dict[str, str] = {}
    for known in words:
        folded.setdefault(known.lower(), known)
    found = get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


@dataclass(frozen=True)
class Quantity:
    """A kind of quantity: its units, each with its size in base units, and what an example looks like."""

    name: str
    article: str
    units: dict[str, int]
    """Every unit that is read, with its size in base units."""
    written: tuple[str, ...]
    """The units that `format` chooses from."""
    example: str
    limit: int
    """The largest value, in base units."""
    zero: str
    """The unit in which nothing is written."""
    confusing: dict[str, str] = field(default_factory=dict)
    """Units that are refused, with what to write instead."""

    def pattern(self) -> str:
        """A regular expression (ECMA 262) that each text in this quantity matches, for JSON Schema."""
        return r"^[0-9]+(\.[0-9]+)? ?(" + "|".join(re.escape(unit) for unit in self.units) + ")$"

    def _split(self, text: object) -> tuple[Decimal, str]:
        if isinstance(text, (int, float)) and not isinstance(text, bool):
            raise UnitError(f'{text} has no unit; write for example "{self.example}"')
        if not isinstance(text, str):
            raise UnitError(f'expected {self.article} {self.name} such as "{self.example}"')
        match = _TEXT.fullmatch(text.strip()) if len(text) <= _LONGEST else None
        if match is None:
            shown = text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
            raise UnitError(f'{shown!r} is not {self.article} {self.name}; write for example "{self.example}"')
        unit = match["unit"]
        if unit is None:
            raise UnitError(f'{text!r} has no unit; write for example "{self.example}"')
        return Decimal(match["number"]), unit

    def _scale(self, text: str, unit: str) -> int:
        if unit in self.units:
            return self.units[unit]
        if unit in self.confusing:
            raise UnitError(f"unit {unit!r} in {text!r} is ambiguous", self.confusing[unit])
        for other in QUANTITIES:
            if unit in other.units:
                raise UnitError(f"{text!r} is {other.article} {other.name}, not {self.article} {self.name}")
        if self is RATE and _OF_BYTES.fullmatch(unit):
            raise UnitError(f"{text!r} counts bytes; a rate counts bits, 8 to a byte")
        raise _unknown(unit, text, self.units)

    def parse(self, text: object, *, positive: bool = False) -> int:
        """The value in base units.

        Raises UnitError when the text is no such quantity, negative, zero (if `positive`), too large, or not a whole
        number of base units.
        """
        number, unit = self._split(text)
        assert isinstance(text, str)
        value = number * self._scale(text, unit)
        if value < 0:
            raise UnitError(f"{self.article} {self.name} cannot be negative: {text!r}")
        if positive and value == 0:
            raise UnitError(f"{self.article} {self.name} must be greater than zero: {text!r}")
        if value > self.limit:
            raise UnitError(f"{text!r} is too large: at most {self.format(self.limit)}")
        if value != value.to_integral_value():
            raise UnitError(f"{text!r} is finer than 1 {self.written[0]}")
        return int(value)

    def format(self, value: int) -> str:
        """The shortest exact text of a value in base units, in the largest unit that needs no leading zero."""
        if value == 0:
            return f"0 {self.zero}"
        fitting = [unit for unit in self.written if value >= self.units[unit]] or [self.written[0]]
        texts = [f"{_plain(Decimal(value) / self.units[unit])} {unit}" for unit in reversed(fitting)]
        exact = [text for text in texts if self._reads_back(text, value)]
        return min(exact, key=lambda text: len(text.replace(" ", "")))

    def shown(self, value: int) -> str:
        """The shortest exact text with less than 1000 before the point, for one who reads: 20.002 ms, not 20002 us."""
        if value == 0:
            return self.format(value)
        fitting = [unit for unit in self.written if 1 <= Decimal(value) / self.units[unit] < _READABLE]
        texts = [f"{_plain(Decimal(value) / self.units[unit])} {unit}" for unit in fitting or self.written[-1:]]
        return min(reversed(texts), key=len)

    def _reads_back(self, text: str, value: int) -> bool:
        number, unit = text.split(" ", 1)
        return Decimal(number) * self.units[unit] == value and len(text) <= _LONGEST


def _unknown(unit: str, text: str, units: Iterable[str]) -> UnitError:
    hint = nearest(unit, units)
    message = f"unknown unit {unit!r} in {text!r}"
    return UnitError(message if hint else f"{message}; there is {', '.join(units)}", hint)


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


RATE = Quantity(
    "rate",
    "a",
    {
        "bps": 1, "kbps": 10**3, "Mbps": 10**6, "Gbps": 10**9, "Tbps": 10**12,
        "bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9, "Tbit/s": 10**12,
    },
    ("bps", "kbps", "Mbps", "Gbps"),
    "20 Mbps",
    10**15,
    "bps",
)  # fmt: skip

TIME = Quantity(
    "time",
    "a",
    {
        "ns": 1, "us": 10**3, "\N{MICRO SIGN}s": 10**3, "\N{GREEK SMALL LETTER MU}s": 10**3,
        "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9,
    },
    ("ns", "us", "ms", "s"),
    "40 ms",
    10**6 * 10**9,
    "s",
)  # fmt: skip

SIZE = Quantity(
    "size",
    "a",
    {
        "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
        "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
    },
    ("B", "kB", "KiB", "MB", "MiB", "GB", "GiB"),
    "1 MB",
    10**15,
    "B",
    {"KB": "kB' or 'KiB", "K": "kB", "M": "MB", "G": "GB", "kb": "kB", "Mb": "MB", "Gb": "GB"},
)  # fmt: skip

PACKETS = Quantity("number of packets", "a", {"packets": 1, "packet": 1}, ("packets",), "80 packets", 10**9, "packets")

SHARE_UNIT = "%"
SHARE_PATTERN = r"^[0-9]+(\.[0-9]+)? ?%$"
_SHARE = Quantity("share", "a", {SHARE_UNIT: 1}, (SHARE_UNIT,), "1 %", 100, SHARE_UNIT)

QUANTITIES = (RATE, TIME, SIZE, PACKETS, _SHARE)

BY_SUFFIX = {"ns": TIME, "bps": RATE, "bytes": SIZE}
"""What the numbers of a plan are, by the last part of their names: `delay_ns`."""


def parse_share(text: object) -> float:
    """A share in percent as a fraction between 0 and 1; raises UnitError."""
    number, unit = _SHARE._split(text)
    assert isinstance(text, str)
    number *= _SHARE._scale(text, unit)
    if number < 0:
        raise UnitError(f"a share cannot be negative: {text!r}")
    if number > SHARE_LIMIT:
        raise UnitError(f"a share cannot be more than 100 %: {text!r}")
    return float(number / 100)


def format_share(value: float) -> str:
    """A fraction as percent, so that `parse_share` gives the same double."""
    return f"{_plain(Decimal(repr(value)) * 100)} %"


QUEUE_PATTERN = "|".join(quantity.pattern() for quantity in (PACKETS, SIZE))


def parse_queue_limit(text: object) -> tuple[str, int]:
    """A queue's length, ("packets", n) or ("bytes", n), from "80 packets" or "213 kB"; raises UnitError."""
    if isinstance(text, str):
        match = _TEXT.fullmatch(text.strip())
        unit = match["unit"] if match else None
        if unit is not None and unit not in PACKETS.units and (unit in SIZE.units or unit in SIZE.confusing):
            return "bytes", SIZE.parse(text, positive=True)
        if unit is not None and unit not in PACKETS.units and not any(unit in other.units for other in QUANTITIES):
            raise _unknown(unit, text, [*PACKETS.units, *SIZE.units])
    return "packets", PACKETS.parse(text, positive=True)
