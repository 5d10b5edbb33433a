"""The retransmission timeout of the profile rfc where round trips are steady: a fast retransmission repairs losses."""

import polars as pl
import pytest

import polypath
from polypath import Scenario
from polypath.results import Recording

ONE_PATH = """
duration = "120 s"
[defaults]
profile = "rfc"
congestion = "reno"
receive_buffer = "64 MB"
send_buffer = "64 MB"
delayed_ack = "1 ms"
[host.client]
[host.server]
[link.l]
ends = ["client", "server"]
rate = "10 Mbps"
delay = "150 ms"
queue = "100 packets"
forward = { loss = "0.1 %" }
[[application]]
kind = "bulk"
transport = "tcp"
"""

TWO_PATHS = """
duration = "400 s"
[defaults]
profile = "rfc"
receive_buffer = "64 MB"
send_buffer = "64 MB"
congestion = "reno"
delayed_ack = "1 ms"
[host.client]
congestion = "lia"
[host.c1]
[host.c2]
[host.server]
[host.s1]
[host.s2]
[router.a]
[router.b]
[router.r]
[link.m1]
ends = ["client:eth0", "a"]
[link.m2]
ends = ["client:eth1", "b"]
[link.s1a]
ends = ["c1", "a"]
[link.s2b]
ends = ["c2", "b"]
[link.slow]
ends = ["a", "r"]
delay = "250 ms"
forward = { rate = "3 Mbps", queue = "125 packets", overhead = 0 }
[link.fast]
ends = ["b", "r"]
delay = "25 ms"
forward = { rate = "6 Mbps", queue = "25 packets", overhead = 0 }
[link.sv]
ends = ["r", "server"]
[link.sv1]
ends = ["r", "s1"]
[link.sv2]
ends = ["r", "s2"]
[[application]]
name = "multipath"
kind = "bulk"
[[application]]
name = "single1"
kind = "bulk"
client = "c1"
server = "s1"
transport = "tcp"
start = "1.3 s"
[[application]]
name = "single2"
kind = "bulk"
client = "c2"
server = "s2"
transport = "tcp"
start = "2.1 s"
"""


def count(recording: Recording, counter: str) -> int:
    return int(recording.table("counters").filter(pl.col("name") == counter)["value"].sum())


@pytest.mark.parametrize("text", [ONE_PATH, TWO_PATHS], ids=["one path", "two paths"])
def test_no_timeout_is_needless_on_a_steady_round_trip(text: str) -> None:
    recording = polypath.run(Scenario.parse(text, "steady"), segments=True)
    assert count(recording, "TcpExtTCPSackRecovery") >= 10
    # A repetition of what had arrived is answered by a DSACK.
    assert count(recording, "TcpExtTCPDSACKRecv") == 0
    sent = recording.table("segments").select("connection", "subflow", "time_ns", "seq", "kind")
    timeouts = recording.table("events").filter(kind="timeout").join(sent, on=["connection", "subflow", "time_ns"])
    assert timeouts.height == count(recording, "TcpExtTCPTimeouts")
    for connection, subflow, seq in timeouts.select("connection", "subflow", "seq").rows():
        # Only where a retransmission was lost itself.
        again = sent.filter(connection=connection, subflow=subflow, seq=seq).filter(pl.col("kind") != "data")
        assert again.height >= 2
