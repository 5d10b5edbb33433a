"""Intervals that comments of a scenario tell."""

import pytest

from polypath.what_if.intervals import Interval, intervals

TEXT = """
seed = 3  # of 24 the one whose losses come closest
[link.wifi]
rate = "12.8 Mbps"  # 12.7 to 12.9 Mbps
delay = "9 ms"  # one way, half of the least round trip; 8.8 to 9.2 ms
queue = "38 packets"  # 11 losses while it was full; 36 to 41 packets
ends = ["client:wifi", "r"]  # from 1 to 2 ends
[link.wifi.backward]
loss = "0.1 %"  # 3.1e-02 to 0.17 %
"""


def test_a_comment_that_is_an_interval_is_one() -> None:
    assert intervals(TEXT) == [
        Interval("link.wifi.rate", 12.7, 12.9, "Mbps"),
        Interval("link.wifi.delay", 8.8, 9.2, "ms"),
        Interval("link.wifi.queue", 36, 41, "packets"),
        Interval("link.wifi.backward.loss", 0.031, 0.17, "%"),
    ]
    assert intervals("no TOML") == []


def test_values_are_drawn_within_it_and_again_the_same() -> None:
    rate, _, queue, _ = intervals(TEXT)
    drawn = [rate.setting(seed) for seed in range(50)]
    values = [float(each.removeprefix("link.wifi.rate=").removesuffix(" Mbps")) for each in drawn]
    assert min(values) >= 12.7
    assert max(values) <= 12.9
    assert max(values) - min(values) > 0.1
    assert drawn == [rate.setting(seed) for seed in range(50)]
    whole = {queue.setting(seed) for seed in range(50)}
    assert whole == {f"link.wifi.queue={count} packets" for count in range(36, 42)}


@pytest.mark.parametrize("text", ["", "[link.x]\ndelay = '1 ms'", "a = 1 # 2 to 3"])
def test_what_is_none_is_left(text: str) -> None:
    assert intervals(text) == []
