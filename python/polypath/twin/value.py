"""A value that is known within an interval."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Value:
    """An estimate and the interval that should hold the truth."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> Value:
        """All of it so many times as large."""
        return Value(self.value * factor, self.low * factor, self.high * factor)

    def moved(self, by: float) -> Value:
        """All of it larger by so much, and not below 0."""
        return Value(*(max(0.0, each + by) for each in (self.value, self.low, self.high)))
