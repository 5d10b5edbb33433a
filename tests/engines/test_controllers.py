"""Switches under a controller: modes, their cost, failures, and what is refused."""

from pathlib import Path

import polars as pl
import pytest

import polypath
from polypath import Recording, Scenario, ScenarioError
from polypath.measures import REGISTRY
from polypath.measures.summary import summary
from polypath.plan import routes
from polypath.results import control, metrics

MS = 1_000_000

HEAD = """
duration = "20 s"
[controller]
routing = "ROUTING"
mode = "MODE"
delay = "5 ms"
"""
FAT_TREE = """
[topology]
kind = "fat-tree"
k = 4
rate = "10 Mbps"
queue = "100 packets"
"""
PERMUTATION = """
[[application]]
kind = "bulk"
matrix = "permutation"
size = "500 kB"
"""
RULES = [
    (routing, mode)
    for routing in ("hashed", "random", "shortest-path", "spanning-tree")
    for mode in ("proactive", "reactive", "hybrid")
] + [("spread", "reactive")]


def run(rest: str, routing: str = "hashed", mode: str = "reactive") -> Recording:
    return polypath.run(Scenario.parse(HEAD.replace("ROUTING", routing).replace("MODE", mode) + rest, "x"))


def _control(recording: Recording) -> control.Control:
    found = control.of(recording)
    assert found is not None
    return found


@pytest.mark.parametrize(("routing", "mode"), RULES)
def test_every_transfer_ends_though_a_switch_fails(routing: str, mode: str) -> None:
    failure = "".join(
        f'[[event]]\nat = "{at} ms"\nswitch = "core0"\nup = {up}\n' for at, up in ((200, "false"), (400, "true"))
    )
    recording = run(FAT_TREE + PERMUTATION + failure, routing, mode)
    assert recording.table("connection_ends")["state"].unique().to_list() == ["finished"]
    assert recording.table("connection_ends")["server_received_bytes"].unique().to_list() == [500_000]
    found = _control(recording)
    if mode == "reactive":
        # Elsewhere a packet may come to a switch that is told meanwhile that its ways are gone.
        assert found.dropped_packets == 0
    assert int(recording.table("switch_ends")["errors"].sum()) == 0
    # Each link has a switch at either end, and both tell of it, down and up.
    assert found.port_statuses == 2 * 2 * 4
    assert (found.packet_ins > 0) == (mode != "proactive")


@pytest.mark.parametrize(("routing", "mode"), RULES)
def test_switches_that_stay_away_are_gone_round(routing: str, mode: str) -> None:
    """The core switch that is the tree's root, and one of two ways up from a pod."""
    gone = "".join(
        f'[[event]]\nat = "200 ms"\nswitch = "{name}"\nup = false\n' for name in ("core0", "pod0-aggregation1")
    )
    recording = run(FAT_TREE + PERMUTATION + gone, routing, mode)
    ends = recording.table("connection_ends")
    assert ends["state"].unique().to_list() == ["finished"]
    # Whoever was on a broken way waits for one retransmission timeout or two, and not for the switch.
    assert ends["last_byte_ns"].max() < 8_000 * MS  # type: ignore[operator]


def test_a_handshake_waits_for_the_controller_twice() -> None:
    established = {}
    for mode in ("proactive", "reactive", "hybrid"):
        recording = run(
            FAT_TREE + '[[application]]\nkind = "bulk"\nclient = "h0"\nserver = "h15"\nsize = "10 kB"\n', mode=mode
        )
        established[mode] = recording.table("connection_ends")["established_ns"].item()
    # The packets take their time on the links as well, but for those between the first and the last switch.
    assert established["proactive"] < 2 * MS
    for mode in ("reactive", "hybrid"):
        assert 20 * MS < established[mode] < 20 * MS + established["proactive"]


def test_what_is_counted_of_a_flow() -> None:
    bulk = '[[application]]\nkind = "bulk"\ntransport = "tcp"\nclient = "h0"\nserver = "h15"\nsize = "10 kB"\n'
    reactive, hybrid = run(FAT_TREE + bulk), run(FAT_TREE + bulk, mode="hybrid")
    # Two directions over five switches each; and 20 switches that are told what to do with a miss.
    assert summary(reactive)["controller"] == {
        "packet_ins": 2,
        "packet_outs": 2,
        "flow_mods": 20 + 2 * 5,
        "group_mods": 0,
        "flows_removed": 0,
        "port_statuses": 0,
        "dropped_packets": 0,
        "max_entries": 3,
        "flow_setups": 2,
        "unanswered": 0,
        "setup_s": dict.fromkeys(("mean", "p50", "p95", "p99", "max"), 0.01),
    }
    # Of 12 core and aggregation switches each knows 16 addresses; 8 edge switches know their 2 and the miss.
    assert _control(hybrid).flow_mods == 12 * 16 + 8 * 3 + 2
    first = reactive.table("flow_setups").row(0, named=True)
    assert (first["source"], first["destination_port"], first["protocol"]) == ("10.0.8.1", 5001, 6)
    samples = reactive.table("switches").group_by("time_ns").agg(pl.col("entries").sum()).sort("time_ns")
    assert samples["entries"].to_list()[-1] == 20 + 2 * 5


def test_packets_that_come_meanwhile_go_to_the_controller_too() -> None:
    cbr = '[[application]]\nkind = "cbr"\nrate = "4 Mbps"\npacket = "500 B"\nduration = "50 ms"\n'
    recording = run(FAT_TREE + cbr + 'client = "h0"\nserver = "h15"\n')
    setup = recording.table("flow_setups").row(0, named=True)
    # One a millisecond for the 10 ms that the answer takes, but for what the links add.
    assert setup["packet_ins"] in (10, 11)
    datagrams = recording.table("datagrams").row(0, named=True)
    assert datagrams["received_packets"] == datagrams["sent_packets"] == 50


def test_what_the_run_cuts_short_is_unfinished() -> None:
    recording = polypath.run(Scenario.parse('duration = "100 ms"\n' + FAT_TREE + PERMUTATION, "x"))
    assert REGISTRY["unfinished"](recording, {}) == 16.0


def test_the_same_run_twice_is_the_same() -> None:
    hashes = {run(FAT_TREE + PERMUTATION, "random").metadata.recording_sha256 for _ in range(2)}
    assert len(hashes) == 1


EVERYTHING = """
[topology]
kind = "fat-tree"
k = 4
rate = "10 Mbps"
interfaces = 2
queue = "50 packets"
access = { queue_at = "host-netem" }
[host.h0.interface.eth0]
address = ["10.200.0.1", "fd00::1"]
[host.h15.interface.eth0]
address = ["10.200.0.2", "fd00::2"]
[[application]]
name = "quic"
kind = "fetch"
transport = "mpquic"
client = "h1"
server = "h14"
size = "100 kB"
[[application]]
name = "ping"
kind = "ping"
client = "h0"
server = "h15"
count = 3
interval = "100 ms"
[[application]]
name = "six"
kind = "bulk"
client = "h0"
server = "h15"
source = "fd00::1"
destination = "fd00::2"
size = "100 kB"
"""


@pytest.mark.parametrize("mode", ["proactive", "reactive", "hybrid"])
def test_every_transport_goes_through_tables_and_captures_change_nothing(mode: str, tmp_path: Path) -> None:
    scenario = Scenario.parse(HEAD.replace("ROUTING", "hashed").replace("MODE", mode) + EVERYTHING, "x")
    recording = polypath.run(scenario)
    assert recording.table("connection_ends")["state"].unique().to_list() == ["finished"]
    assert len(recording.table("requests")["delay_ns"].drop_nulls()) == 4
    captured = polypath.run(scenario, captures="hosts", directory=tmp_path)
    assert captured.metadata.recording_sha256 == recording.metadata.recording_sha256


def test_runs_without_a_controller_have_no_table_of_it() -> None:
    recording = polypath.run(Scenario.parse('duration = "1 s"\n' + FAT_TREE + PERMUTATION, "x"))
    assert not {"switches", "switch_ends", "flow_setups"} & recording.tables.keys()
    assert control.of(recording) is None
    assert "controller" not in summary(recording)


def test_fast_failover_loses_no_more_than_what_was_on_the_link() -> None:
    """Two ways between two switches; the first breaks. A group turns at once, a reactive network when it is told."""
    two = """
[host.client]
[host.server]
[switch.left]
[switch.a]
[switch.b]
[switch.right]
[link.in]
ends = ["client", "left"]
[link.left-a]
ends = ["left", "a"]
delay = "1 ms"
[link.left-b]
ends = ["left", "b"]
delay = "2 ms"
[link.a-right]
ends = ["a", "right"]
[link.b-right]
ends = ["b", "right"]
[link.out]
ends = ["right", "server"]
[[application]]
kind = "cbr"
rate = "4 Mbps"
packet = "500 B"
duration = "1 s"
[[event]]
at = "500.5 ms"
link = "left-a"
up = false
"""
    lost = {}
    for mode in ("proactive", "reactive"):
        (datagrams,) = run(two, "shortest-path", mode).table("datagrams").to_dicts()
        lost[mode] = datagrams["sent_packets"] - datagrams["received_packets"]
    # A packet a millisecond: one was on the link; and then those of the 10 ms until the flow-mod came.
    assert lost == {"proactive": 1, "reactive": 11}


def test_spread_fills_all_paths() -> None:
    stack = '[defaults]\nprofile = "linux"\nreceive_buffer = "4 MiB"\n'
    subflows = stack + 'path_manager = { kind = "ndiffports", num_subflows = 4 }\n'
    four = '[topology]\nkind = "parallel"\npaths = 4\nrate = "10 Mbps"\ndelay = "1 ms"\naccess = { rate = "1 Gbps" }\n'
    bulk = '[[application]]\nkind = "bulk"\nduration = "5 s"\n'
    recording = run(subflows + four + bulk, "spread")
    (connection,) = metrics.connections(recording)
    goodput = metrics.goodput(recording, connection)
    assert goodput is not None
    # As much as the routing of the same name that costs nothing carries.
    assert goodput > 0.95 * 40e6 * 1400 / 1514


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[controller]\nrouting = "hased"\n' + FAT_TREE, r"unknown controller's routing 'hased'.*hashed"),
        ('[controller]\nmode = "reactiv"\n' + FAT_TREE, "reactive"),
        ('routing = "ecmp"\n[controller]\n' + FAT_TREE, r"with a controller there is no 'routing = \"ecmp\"'"),
        (
            '[controller]\nrouting = "spread"\nmode = "hybrid"\n' + FAT_TREE,
            "'spread' has to see each flow begin: there is no mode 'hybrid', take 'reactive'",
        ),
        (
            '[controller]\nmode = "proactive"\nidle_timeout = "1 s"\n' + FAT_TREE,
            "in mode 'proactive' no entry times out",
        ),
        (
            '[controller]\n[host.h0]\n[host.h1]\n[link.l]\nends = ["h0", "h1"]\n',
            "there is no router or switch that it could rule",
        ),
        ('[controller]\n[topology]\nkind = "bcube"\nn = 2\nrate = "1 Mbps"\n', "forwards for others"),
        (
            '[controller]\n[defaults]\npath_manager = "binder"\n' + FAT_TREE,
            "path manager 'binder' steers packets through routers",
        ),
        (
            '[controller]\n[[event]]\nat = "1 ms"\nswitch = "core9"\nup = false\n' + FAT_TREE,
            "unknown router or switch 'core9'",
        ),
        (
            FAT_TREE + '[[event]]\nat = "1 ms"\nswitch = "core0"\nrate = "1 Mbps"\n',
            "'rate' is nothing that changes of a switch",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(text: str, said: str) -> None:
    bulk = '[[application]]\nkind = "bulk"\nclient = "h0"\nserver = "h1"\n'
    with pytest.raises(ScenarioError, match=said):
        Scenario.parse(text + bulk, "x.toml").plan()


BRANCHES = """
[host.a]
[host.b]
[switch.s1]
[switch.s2]
[switch.s3]
[link.a]
ends = ["a", "s1"]
rate = "10 Mbps"
[link.x]
ends = ["s1", "s2"]
rate = "10 Mbps"
up = false
[link.u]
ends = ["s1", "s3"]
rate = "10 Mbps"
[link.v]
ends = ["s3", "s2"]
rate = "10 Mbps"
[link.b]
ends = ["s2", "b"]
rate = "10 Mbps"
[[application]]
name = "get"
kind = "fetch"
transport = "tcp"
client = "a"
server = "b"
size = "100 kB"
"""


@pytest.mark.parametrize("mode", ["proactive", "reactive", "hybrid"])
def test_links_that_are_down_from_the_start_are_gone_round(mode: str) -> None:
    recording = run(BRANCHES, mode=mode)
    (connection,) = metrics.connections(recording)
    assert connection.finished
    (route,) = routes.routes(recording.plan)
    assert route.there is None  # the controller chooses


PARALLEL = """
[host.a]
[host.b]
[switch.s1]
[switch.s2]
[link.a]
ends = ["a", "s1"]
rate = "10 Mbps"
[link.x]
ends = ["s1", "s2"]
rate = "10 Mbps"
delay = "1 ms"
[link.y]
ends = ["s1", "s2"]
rate = "10 Mbps"
delay = "5 ms"
[link.b]
ends = ["s2", "b"]
rate = "10 Mbps"
[[application]]
name = "tone"
kind = "cbr"
rate = "1 Mbps"
client = "a"
server = "b"
duration = "5 s"
"""
#: It loses everything from 1 to 1.4 s and from 1.8 to 2.2 s, and goes down for good at 3 s.
LOSING = "".join(
    f'[[event]]\nat = "{at} ms"\nlink = "x"\n{change}\n'
    for at, change in (
        (1000, 'loss = "100%"'),
        (1400, 'loss = "0%"'),
        (1800, 'loss = "100%"'),
        (2200, 'loss = "0%"'),
        (3000, "up = false"),
    )
)


def test_a_switch_on_the_way_that_forgot_does_not_turn_a_flow_over() -> None:
    head = HEAD.replace("ROUTING", "shortest-path").replace("MODE", "reactive") + 'idle_timeout = "200 ms"\n'
    recording = polypath.run(Scenario.parse(head + PARALLEL + LOSING, "x"))
    (tone,) = metrics.connections(recording)
    found = metrics.datagrams(recording, tone)
    assert found is not None
    # 0.8 s of five are lost.
    assert 0.82 < found.received / found.sent < 0.85


def test_a_flow_without_a_way_is_one_flow() -> None:
    events = "".join(f'[[event]]\nat = "{at} s"\nlink = "b"\nup = {up}\n' for at, up in ((1, "false"), (2, "true")))
    tone = '[[application]]\nkind = "cbr"\nrate = "1 Mbps"\nclient = "a"\nserver = "b"\nduration = "3 s"\n'
    recording = run(BRANCHES[: BRANCHES.index("[[application]]")] + tone + events)
    assert _control(recording).delays.sent < 5
