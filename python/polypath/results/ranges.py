"""Sets of byte ranges of a stream, as sorted, disjoint pairs of numpy arrays: begins and ends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Ranges:
    """Runs of bytes, each as long as it can be: no two of them touch."""

    begins: Numbers
    ends: Numbers

    @classmethod
    def union(cls, begins: Numbers, ends: Numbers) -> Self:
        """The bytes of ranges in any order, which may overlap; each byte counts once."""
        order = np.argsort(begins, kind="stable")
        begins, ends = begins[order], ends[order]
        filled = ends > begins
        begins, ends = begins[filled], ends[filled]
        if not len(begins):
            return cls(begins, ends)
        reached = np.maximum.accumulate(ends)
        first = np.concatenate(([True], begins[1:] > reached[:-1]))
        last = np.concatenate((first[1:], [True]))
        return cls(begins[first], reached[last])

    def __len__(self) -> int:
        return len(self.begins)

    @cached_property
    def lengths(self) -> Numbers:
        """Bytes of each run."""
        return self.ends - self.begins

    @property
    def bytes(self) -> int:
        """Bytes of all runs."""
        return int(self.lengths.sum())

    @property
    def longest(self) -> int:
        """Bytes of the longest run; 0 where there is none."""
        return int(self.lengths.max(initial=0))

    def contains(self, begins: Numbers, ends: Numbers) -> NDArray[np.bool_]:
        """Whether all bytes of each given range are in one of the runs."""
        if not len(self):
            return np.zeros(len(begins), dtype=bool)
        place = np.searchsorted(self.begins, begins, side="right") - 1
        inside = place >= 0
        inside[inside] = ends[inside] <= self.ends[place[inside]]
        return inside


def readable_blocks(seen: Ranges, block_bytes: int) -> int:
    """Blocks that can be decrypted with the key where each one is chained to its predecessor's ciphertext (CBC).

    Blocks begin at multiples of `block_bytes`. A block is readable if it was seen whole and the one before it, too. The
    first one needs the initialization vector alone, which counts as known.
    """
    first = -(-seen.begins // block_bytes)
    whole = seen.ends // block_bytes - first
    lost = (first > 0).astype(np.int64)
    return int(np.maximum(whole - lost, 0).sum())


def readable_share_of_runs(run_bytes: int, block_bytes: int) -> float:
    """The share of the bytes in runs of a length that is readable with CBC, if runs begin at multiples of the length.

    With g the greatest common divisor of run and block, starts are spread evenly over the multiples of g within a
    block. A run then holds (run - block + g) / block whole blocks on average, and the first of them lacks its
    predecessor. Valid for runs of two blocks or more.
    """
    divisor = int(np.gcd(run_bytes, block_bytes))
    return (run_bytes - 2 * block_bytes + divisor) / run_bytes
