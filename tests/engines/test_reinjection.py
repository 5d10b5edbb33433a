"""What is sent a second time, on another path."""

import polypath
from polypath import Scenario

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
