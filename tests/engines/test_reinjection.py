"""What is sent a second time, on another path."""

import polypath
from polypath import Scenario, labs
from polypath.cli.fidelity_labs import in_the_kernels_profile

#: A lossy path and one whose queue takes seconds, both with other traffic.
BESIDE_OTHERS = """
duration = "600 s"
seed = 1
[defaults]
profile = "mptcp.org"
receive_buffer = "16 MiB"
send_buffer = "16 MiB"
[host.client]
[host.server]
[router.a]
[router.b]
[router.r]
[link.ca]
ends = ["client:eth0", "a"]
[link.cb]
ends = ["client:eth1", "b"]
[link.wlan]
ends = ["a", "r"]
rate = "25 Mbps"
delay = "12.5 ms"
queue = "100 packets"
loss = "1 %"
[link.3g]
ends = ["b", "r"]
rate = "5 Mbps"
delay = "32.5 ms"
queue = "3750 packets"
[link.server]
ends = ["r", "server"]
[[application]]
name = "bulk"
kind = "bulk"
size = "64 MiB"
"""

OTHERS = """
[host.{path}-{kind}]
[host.{path}-{kind}-sink]
[link.{path}-{kind}-near]
ends = ["{path}-{kind}", "{router}"]
[link.{path}-{kind}-far]
ends = ["r", "{path}-{kind}-sink"]
[[application]]
name = "{path}-{kind}"
client = "{path}-{kind}"
server = "{path}-{kind}-sink"
"""
TRAFFIC = {
    "tcp": 'kind = "bulk"\ntransport = "tcp"\nstack = { congestion = "cubic" }\n',
    "udp": 'kind = "on-off"\nrate = "1.6 Mbps"\npacket = "1000 B"\non = "1 s"\noff = "1 s"\n',
}


def test_a_reinjection_that_waits_for_a_full_path_holds_nothing_else_up() -> None:
    text = BESIDE_OTHERS
    for path, router in (("wlan", "a"), ("3g", "b")):
        for kind, lines in TRAFFIC.items():
            text += OTHERS.format(path=path, kind=kind, router=router) + lines
    ends = polypath.run(Scenario.parse(text, "beside")).table("connection_ends")
    assert ends["state"][0] == "finished"


def test_a_silent_subflow_counts_as_stale_about_as_often_as_in_the_kernel() -> None:
    """Lab blest's run one-way in the profile `linux`, seeds 1 to 3.

    The kernel marks subflows stale 10 times, and its transfers take 172 to 241 s. Before the connection's timer took a
    new length each time that it fired, the simulator marked 27, and one transfer did not end in 400 s.
    """
    lab = labs.catalogue()["blest"]
    (one_way,) = (one for one in lab.runs if one.name == "one-way")
    scenario = in_the_kernels_profile(one_way.of(lab.scenario()))
    stale = 0
    for seed in (1, 2, 3):
        recording = polypath.run(scenario.with_settings([f"seed={seed}"]))
        counters = recording.table("counters").filter(host="client", name="MPTcpExtSubflowStale")
        stale += int(counters["value"].item())
        (bulk,) = (each for each in polypath.summary(recording)["connections"] if each["name"] == "bulk")
        assert bulk["completion_s"] < 300
    assert stale <= 12
