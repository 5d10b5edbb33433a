"""Counts and times in the wording of results."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

#: From here on one decimal of a millisecond says enough.
_ONE_DECIMAL_MS: Final = 0.1


def counted(number: int, what: str, several: str | None = None) -> str:
    """A number with its noun, `several` where more than one is not `what` with an s."""
    return f"{number:,} {what if number == 1 else several or what + 's'}"


def significant(value: float, digits: int) -> str:
    """That many digits, without zeros at the end and never with an exponent: 0.000021, 0.25, 120."""
    text = f"{Decimal(f'{value:.{digits - 1}e}'):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def milliseconds(time_ns: float) -> str:
    """One decimal, three digits of what is below 0.1 ms."""
    value = round(time_ns) / 1e6
    return f"{value:.1f}" if value >= _ONE_DECIMAL_MS else significant(value, 3)


def seconds(time_ns: int) -> str:
    """A moment of a run, four digits."""
    return f"{time_ns / 1e9:.4g} s"


def capitalised(text: str) -> str:
    """As one begins."""
    return text[:1].upper() + text[1:]
