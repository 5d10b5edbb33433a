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


LINK = '[link.{}]\nends = ["{}", "{}"]\n'
LOSSY = LINK.format("lossy", "c", "s") + 'loss = "10 %"\ndelay = "10 ms"\n'


def lost_by_then(links: str) -> list[int]:
    stream = '[[application]]\nkind = "cbr"\nrate = "1 Mbps"\nclient = "c"\nserver = "s"\n'
    nodes = "".join(f"[host.{name}]\n" for name in "csx" if f'"{name}"' in links)
    recording = polypath.run(Scenario.parse(f'duration = "3 s"\n{nodes}{links}{stream}', "links"))
    names = recording.table("link_ends").select("link", "name").unique()
    losses = recording.table("links").join(names, on="link").filter(name="lossy", direction="forward")
    return losses.sort("time_ns")["lost_packets"].to_list()


def test_a_link_added_behind_the_others_shifts_nobody_s_losses() -> None:
    alone = lost_by_then(LOSSY)
    assert max(alone) > 0
    assert lost_by_then(LOSSY + LINK.format("behind", "s", "x")) == alone
    assert lost_by_then(LINK.format("before", "s", "x") + LOSSY) != alone
