"""Counters that were sampled, as running totals of time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable


class Total:
    """A running total by time, between its samples on a straight line."""

    def __init__(self, points: Iterable[tuple[int, float]]) -> None:
        self._times: list[int] = []
        self._values: list[float] = []
        for time, value in points:
            if self._times and time <= self._times[-1]:
                self._values[-1] = max(value, self._values[-1])
                continue
            self._times.append(time)
            self._values.append(value)

    def at(self, time: int) -> float:
        after = bisect_left(self._times, time)
        if after == len(self._times):
            return self._values[-1] if self._values else 0.0
        if self._times[after] == time or after == 0:
            return self._values[after] if self._times[after] == time else 0.0
        since, until = self._times[after - 1 : after + 1]
        low, high = self._values[after - 1 : after + 1]
        return low + (high - low) * (time - since) / (until - since)

    @property
    def last(self) -> float:
        return self._values[-1] if self._values else 0.0

    def grown(self, since: int, until: int) -> float:
        return self.at(until) - self.at(since)
