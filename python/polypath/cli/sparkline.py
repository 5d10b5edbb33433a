"""A series as one line of block characters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

_BLOCKS = "▁▂▃▄▅▆▇█"


WIDTH = 24


def means(values: Sequence[float], width: int = WIDTH) -> list[float]:
    """At most `width` means of equal parts of the values."""
    if not values:
        return []
    count = min(width, len(values))
    edges = [index * len(values) // count for index in range(count + 1)]
    return [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]


def sparkline(values: Sequence[float], top: float) -> str:
    """A character for each value, as a fraction of `top`."""
    if top <= 0:
        return ""
    return "".join(_BLOCKS[min(len(_BLOCKS) - 1, max(0, int(value / top * len(_BLOCKS))))] for value in values)
