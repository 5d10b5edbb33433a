"""Random draws for a scenario's plan: the same on every machine and in every version of Python."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def fraction(stream: str) -> float:
    """Evenly distributed from 0 to below 1."""
    return (_bits(stream) >> 11) / 2**53


def below(count: int, stream: str) -> int:
    """One of 0 to count - 1, evenly but for at most count / 2**64."""
    return _bits(stream) % count


def permutation(count: int, stream: str) -> list[int]:
    """A random permutation of which no element stays in place, a single cycle (Sattolo 1986)."""
    order = list(range(count))
    for last in range(count - 1, 0, -1):
        other = below(last, f"{stream} {last}")
        order[last], order[other] = order[other], order[last]
    return order


def some(of: Sequence[T], count: int, stream: str) -> list[T]:
    """So many of them in random order, none twice (Fisher and Yates); at most all."""
    left = list(of)
    drawn = []
    for number in range(min(count, len(left))):
        drawn.append(left.pop(below(len(left), f"{stream} {number}")))
    return drawn


def _bits(stream: str) -> int:
    return int.from_bytes(hashlib.sha256(stream.encode()).digest()[:8], "big")
