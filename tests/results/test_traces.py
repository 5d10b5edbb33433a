"""What a link's trace offers, against opportunities counted by hand."""

from __future__ import annotations

import pytest

from polypath.results.traces import rates

MS = 1_000_000
#: Opportunities after 2, 5 and 8 ms, and so on from there.
TRACE = {"trace": {"gaps_ms": [[2, 1], [3, 2]]}}


def test_each_interval_has_the_opportunities_up_to_its_end() -> None:
    mbps = [(begin // MS, rate and rate / 1e6) for begin, rate in rates(TRACE, 4 * MS, 32 * MS)]
    assert mbps == [(0, 3), (4, 6), (8, 3), (12, 6), (16, 3), (20, 6), (24, 3), (28, 6)]


def test_an_interval_without_one_has_no_rate() -> None:
    there = [begin // MS for begin, rate in rates(TRACE, MS, 20 * MS) if rate is not None]
    assert there == [1, 4, 7, 9, 12, 15, 17]


def test_the_last_interval_may_end_later() -> None:
    assert [begin for begin, _ in rates(TRACE, 4 * MS, 9 * MS)] == [0, 4 * MS, 8 * MS]


@pytest.mark.parametrize(("overhead", "rate"), [(0, 12_000_000), (100, 12_800_000), (1500, 24_000_000)])
def test_what_layers_below_add_counts(overhead: int, rate: int) -> None:
    assert list(rates({**TRACE, "overhead_bytes": overhead}, 2 * MS, 2 * MS)) == [(0, rate // 2)]
