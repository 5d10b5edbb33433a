"""The deviation of a curve from a shape: one function and one registry entry each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """What a curve may be, and a figure that is 0 where it is."""

    name: str
    description: str
    departure: Callable[[Sequence[float]], float]


def _fall(curve: Sequence[float]) -> float:
    """The greatest fall below the highest value so far, as part of it."""
    best, worst = curve[0], 0.0
    for value in curve:
        best = max(best, value)
        worst = max(worst, 1 - value / best if best > 0 else 0.0)
    return worst


def _rise(curve: Sequence[float]) -> float:
    """The greatest rise above the lowest value so far, as part of it."""
    least, worst = curve[0], 0.0
    for value in curve:
        least = min(least, value)
        worst = max(worst, value / least - 1 if least > 0 else 0.0)
    return worst


REGISTRY: Mapping[str, Shape] = {
    shape.name: shape
    for shape in (
        Shape("rising", "never below the highest value so far; the greatest fall as a part of that", _fall),
        Shape("falling", "never above the lowest value so far; the greatest rise as a part of that", _rise),
    )
}
