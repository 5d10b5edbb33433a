"""Loss models at work in a run."""

import pytest

import polypath
from polypath import Scenario

CHANNEL = """
duration = "500 s"
[host.client]
[host.server]
[link.l]
ends = ["client", "server"]
delay = "1 ms"
forward = { loss = { kind = "timed-gilbert-elliott", good_time = "900 ms", bad_time = "100 ms" } }
[[application]]
kind = "cbr"
rate = "RATE"
packet = "125 B"
"""


@pytest.mark.parametrize("rate", ["10 kbps", "100 kbps"])
def test_a_channel_that_fades_loses_the_same_share_at_any_rate(rate: str) -> None:
    recording = polypath.run(Scenario.parse(CHANNEL.replace("RATE", rate), "fading"))
    forward = recording.table("link_ends").filter(direction="forward")
    sent, lost = forward.select("sent_packets", "lost_packets").row(0)
    assert lost / (sent + lost) == pytest.approx(0.1, rel=0.2)
