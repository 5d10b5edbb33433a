"""What a link's trace of delivery opportunities offers over time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate, chain, repeat
from typing import Any, Final

OPPORTUNITY_BYTES: Final = 1500
_MS: Final = 1_000_000
_SECOND: Final = 1_000_000_000


def rates(channel: Mapping[str, Any], interval_ns: int, end_ns: int) -> Iterator[tuple[int, int | None]]:
    """The mean rate of a direction of a link with a trace, headers and overhead included: each interval's begin in ns
    and its rate in bit/s, None where it has no opportunity. One at an interval's end belongs to it."""
    gaps = chain.from_iterable(repeat(gap, count) for gap, count in channel["trace"]["gaps_ms"])
    times: list[int] = [time * _MS for time in accumulate(gaps)]
    bits = 8 * (OPPORTUNITY_BYTES + int(channel.get("overhead_bytes", 0)))
    period = times[-1]

    def until(now: int) -> int:
        return now // period * len(times) + bisect_right(times, now % period)

    before = until(0)
    for begin in range(0, end_ns, interval_ns):
        count = until(begin + interval_ns)
        yield begin, (count - before) * bits * _SECOND // interval_ns or None
        before = count
