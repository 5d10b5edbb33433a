"""Switches as Ethernet bridges: learning, the tree, failures, captures, and what is refused."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from polypath import Recording, Scenario, ScenarioError
from polypath.engines import EngineError, Options, get
from polypath.measures.summary import summary
from polypath.results import bridges, metrics, notes

from ..tshark import fields

EXAMPLE = Path(__file__).parents[2] / "examples" / "bridges.toml"
SECOND = 1_000_000_000
FAILURE_S = 5.0


def run(*settings: str, captures: Path | None = None) -> Recording:
    scenario = Scenario.load(EXAMPLE).with_settings(list(settings))
    options = Options() if captures is None else Options("links", captures)
    return get("sim").run(scenario.plan(), options)


def probes(recording: Recording) -> list[float]:
    """When the probe's datagrams arrived, to the sampling interval."""
    samples = recording.table("datagram_samples").sort("time_ns")
    grown = samples.filter(samples["received_packets"] > samples["received_packets"].shift(1, fill_value=0))
    return [time / SECOND for time in grown["time_ns"].to_list()]


def lost(recording: Recording) -> int:
    row = recording.table("datagrams").row(0, named=True)
    return int(row["sent_packets"] - row["received_packets"])


def test_a_ring_has_a_tree_and_the_other_link_takes_over_within_a_millisecond() -> None:
    quiet = ("application.upload.start=11 s", "application.upload.duration=100 ms")
    recording = run(*quiet)
    found = bridges.of(recording)
    assert found is not None
    assert (found.roots, found.bridges, found.blocked) == (["s2"], 3, [])
    assert FAILURE_S < found.changed_ns / SECOND < FAILURE_S + 0.001
    # Datagrams come each millisecond; what was on its way is lost.
    assert lost(recording) <= 1
    assert summary(recording)["bridging"]["roots"] == ["s2"]
    assert run(*quiet).metadata.recording_sha256 == recording.metadata.recording_sha256


def test_before_the_failure_one_port_of_the_ring_is_blocked() -> None:
    ports = run().table("bridge_ports")
    last = ports.filter(ports["time_ns"] < FAILURE_S * SECOND).group_by("switch", "interface").last()
    blocked = last.filter(last["state"].cast(str) != "forwarding")
    # s1 and s3 are as near to the root; s1 is the lower bridge, so that s3 blocks link three.
    assert blocked.select("switch", "interface", pl.col("role").cast(str)).rows() == [(4, "eth2", "alternate")]


def test_the_classic_protocol_takes_its_timers() -> None:
    moves = ("event.1.at=60 s", "duration=100 s", "application.probe.duration=98 s", "application.upload.start=99 s")
    recording = run("bridging.protocol=stp", *moves, "record.interval=100 ms")
    arrived = probes(recording)
    # Max age and forward delay at first, twice the forward delay at the port that was blocked.
    assert arrived[0] == pytest.approx(35, abs=0.5)
    gaps = [(here, there) for here, there in pairwise(arrived) if there - here > 1]
    assert len(gaps) == 1
    assert list(gaps[0]) == pytest.approx([60, 90], abs=0.5)


def test_without_a_protocol_a_loop_multiplies_what_is_flooded() -> None:
    short = ("duration=5200 ms", "application.probe.duration=100 ms", "application.upload.start=5 s")
    recording = run("bridging.protocol=none", *short, "application.upload.duration=10 ms")
    row = recording.table("datagrams").row(0, named=True)
    assert row["received_packets"] > row["sent_packets"] == 100
    assert recording.table("bridge_ends")["ttl_exceeded_packets"].sum() > 0
    connection = metrics.connection(recording, "probe")
    assert any("some more than once" in note for note in notes.of(recording, connection, ()))


def test_silence_is_noticed_after_three_hello_times() -> None:
    """The link stays up at both ends and loses all."""
    settings = ("duration=20 s", "application.probe.duration=18 s", "application.upload.start=19 s")
    scenario = EXAMPLE.read_text().replace("up = false", 'loss = "100 %"')
    made = Scenario.parse(scenario, str(EXAMPLE)).with_settings([*settings, "record.interval=100 ms"])
    arrived = probes(get("sim").run(made.plan(), Options()))
    gaps = [there - here for here, there in pairwise(arrived) if there - here > 1]
    assert len(gaps) == 1
    assert 4 < gaps[0] <= 6.3


@pytest.mark.parametrize(
    ("failing", "protocol", "least", "most"),
    [
        ("pod0-aggregation0", "rstp", 0, 0.001),
        ("core1", "rstp", 0, 0.001),
        # The root: what was heard of it goes around until it is too old.
        ("core0", "rstp", 15, 30),
        ("core0", '{ kind = "rstp", max_age_s = 6, forward_delay_s = 4 }', 1, 6),
    ],
)
def test_a_fat_tree_finds_another_tree(failing: str, protocol: str, least: float, most: float) -> None:
    text = f"""
duration = "60 s"
bridging.protocol = {protocol if "{" in protocol else f'"{protocol}"'}
[topology]
kind = "fat-tree"
k = 4
rate = "10 Mbps"
delay = "10 us"
[[application]]
kind = "ping"
matrix = "all-to-all"
count = 2
interval = "100 ms"
start = "50 s"
[[event]]
at = "10 s"
switch = "{failing}"
up = false
"""
    recording = get("sim").run(Scenario.parse(text, "x").plan(), Options())
    found = bridges.of(recording)
    assert found is not None
    assert least <= found.changed_ns / SECOND - 10 < most
    # Core switches have no hosts: whichever fails, all hosts reach all.
    assert recording.table("requests").height == 16 * 15 * 2
    assert recording.table("requests")["delay_ns"].null_count() == 0


def test_the_first_frame_is_flooded_and_what_was_heard_is_not(tmp_path: Path) -> None:
    text = """
duration = "700 s"
[bridging]
[switch.s]
[host.a]
[host.b]
[host.c]
[link.a]
ends = ["a", "s"]
[link.b]
ends = ["b", "s"]
[link.c]
ends = ["c", "s"]
[[application]]
name = "one"
kind = "ping"
client = "a"
server = "b"
count = 3
interval = "1 s"
start = "1 s"
[[application]]
name = "other"
kind = "ping"
client = "a"
server = "b"
count = 1
start = "600 s"
"""
    recording = get("sim").run(Scenario.parse(text, "x").plan(), Options("links", tmp_path))
    # c sees the first request. The answer goes to a alone, for a was heard, and so do the others. 300 s later all is
    # forgotten.
    seen = fields(tmp_path / "c.pcapng", "icmp", "icmp.type", "icmp.seq", "frame.interface_description")
    assert [row[0] for row in seen] == ["8", "8"] * 2, seen
    assert len(fields(tmp_path / "b.pcapng", "icmp", "icmp.type")) == 2 * 2 * 4
    ends = recording.table("bridge_ends").row(0, named=True)
    assert (ends["learned"], ends["max_addresses"], ends["flooded_packets"]) == (4, 2, 2)
    # Frames keep the hosts' addresses from end to end.
    assert {row[0] for row in fields(tmp_path / "b.pcapng", "icmp.type == 8", "eth.src")} == {"02:00:00:00:00:01"}


@pytest.mark.parametrize(("protocol", "kind"), [("rstp", "0x02"), ("stp", "0x00")])
def test_wireshark_reads_bpdus_and_finds_no_fault(tmp_path: Path, protocol: str, kind: str) -> None:
    own = ("application.upload.start=11 s", "application.upload.duration=50 ms")
    run(f"bridging.protocol={protocol}", *own, captures=tmp_path)
    found = fields(tmp_path / "two.pcapng", "stp", "stp.type", "stp.root.hw", "stp.hello", "frame.len", "stp.port")
    assert len(found) > 8
    assert {row[0] for row in found} <= {kind, "0x80"}
    assert {row[1] for row in found[-4:]} == {"02:00:80:00:00:03"}, "all know the root"
    assert {row[2] for row in found if row[0] == kind} == {"2"}
    assert {row[3] for row in found} == {"60"}
    for capture in tmp_path.glob("*.pcapng"):
        assert not fields(capture, "_ws.malformed || _ws.expert.severity == error", "frame.number"), capture


def test_bridges_know_each_host_by_one_of_its_interfaces(tmp_path: Path) -> None:
    """A host with two links to one network is flooded by both, and takes a packet once."""
    text = """
duration = "5 s"
[bridging]
[switch.s1]
[switch.s2]
[host.a]
[host.b]
[link.a]
ends = ["a", "s1"]
[link.between]
ends = ["s1", "s2"]
[link.b1]
ends = ["b", "s1"]
[link.b2]
ends = ["b", "s2"]
[[application]]
kind = "cbr"
client = "a"
server = "b"
rate = "80 kbps"
packet = "100 B"
start = "1 s"
duration = "2 s"
"""
    row = get("sim").run(Scenario.parse(text, "x").plan(), Options()).table("datagrams").row(0, named=True)
    assert row["sent_packets"] == row["received_packets"] == 200


def test_multipath_tcp_has_a_tree_for_each_interface() -> None:
    """Two networks apart from each other: the subflows between them are not established, the others are."""
    text = """
duration = "20 s"
[bridging]
[defaults]
path_manager = "fullmesh"
[switch.s1]
[switch.s2]
[host.a]
[host.b]
"""
    for net in (1, 2):
        for host in "ab":
            text += f'[link.{host}{net}]\nends = ["{host}", "s{net}"]\nrate = "10 Mbps"\ndelay = "5 ms"\n'
    text += '[[application]]\nkind = "bulk"\nclient = "a"\nserver = "b"\nsize = "5 MB"\n'
    recording = get("sim").run(Scenario.parse(text, "x").plan(), Options())
    assert recording.table("connection_ends")["state"].to_list() == ["finished"]
    ends = recording.table("subflow_ends")
    shares = ends.filter(ends["client_sent_bytes"] > 1_000_000)
    assert len(shares) == 2
    assert len(bridges.of(recording).roots) == 2  # type: ignore[union-attr]


BASE = """
[bridging]
{bridging}
[host.a]
[host.b]
[switch.s1]
[switch.s2]
[link.a]
ends = ["a", "s1"]
[link.s]
ends = ["s1", "s2"]
[link.b]
ends = ["s2", "b"]
{rest}
[[application]]
kind = "bulk"
client = "a"
server = "b"
size = "1 kB"
"""


@pytest.mark.parametrize(
    ("bridging", "rest", "said"),
    [
        ('protocol = "rtsp"', "", r"x:3: .*unknown spanning tree protocol 'rtsp'.*rstp"),
        ('protocol = { kind = "rstp", hello_time = 1 }', "", r"x:3: .*no parameter 'hello_time'.*hello_time_s"),
        ('protocol = { kind = "stp", forward_delay_s = 4 }', "", r"forward_delay_s = 4 is too short .* at least 11"),
        ('protocol = { kind = "stp", hello_time_s = 10 }', "", r"max_age_s = 20 is too short .* at least 22"),
        ("priority = { s1 = 5000 }", "", r"x:3: .*steps of 4096, not 5000.*4096"),
        ("priority = { s3 = 4096 }", "", r"x:3: .*unknown router or switch 's3'.*s1"),
        ("priority = { a = 4096 }", "", r"unknown router or switch 'a'"),
        ("", '[controller]\nrouting = "hashed"', r"bridges or have a controller"),
        (
            "",
            '[host.c]\nforwards = true\n[link.c]\nends = ["c", "s1"]',
            r"'c' forwards for others, and no bridge knows",
        ),
        (
            "",
            '[[route]]\nnode = "s1"\ndestination = "10.0.0.0/8"\ninterface = "eth0"',
            r"x:14: 's1' is a bridge, which knows no addresses of IP",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(bridging: str, rest: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        Scenario.parse(BASE.format(bridging=bridging, rest=rest), "x")


def test_other_engines_say_that_they_have_no_bridges() -> None:
    plan = Scenario.parse(BASE.format(bridging="", rest=""), "x").plan()
    with pytest.raises(EngineError, match="no bridges"):
        get("linux").run(plan, Options())
