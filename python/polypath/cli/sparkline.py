"""A series as one line of block characters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

_BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], top: float, width: int = 24) -> str:
    """At most `width` characters, each the mean of its part of the values, as a fraction of `top`."""
    if not values or top <= 0:
        return ""
    count = min(width, len(values))
    edges = [index * len(values) // count for index in range(count + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]
    return "".join(_BLOCKS[min(len(_BLOCKS) - 1, max(0, int(mean / top * len(_BLOCKS))))] for mean in means)
