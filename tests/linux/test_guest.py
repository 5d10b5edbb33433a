"""Runs in the guest: the real kernel, in virtual time."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from polypath import fidelity, labs
from polypath.capture import trace
from polypath.engines import EngineError, Options, get
from polypath.engines.linux import guest
from polypath.engines.linux.kernel import find
from polypath.results import Recording, schema
from polypath.scenario import Plan, Scenario

from ..processes import inside, wait
from ..slow import others_slow
from . import soak

Run = Callable[..., Recording]

#: Subflow 0 is on the path of 40 ms.
FAST = 0


def _share(recording: Recording, subflow: int = FAST) -> float:
    sent = recording.table("subflow_ends").sort("subflow")["client_sent_bytes"]
    return float(sent[subflow] / sent.sum())


def test_every_table_has_its_columns_and_bytes_add_up(linux: Run) -> None:
    recording = linux("everything")
    for name, columns in schema.TABLES.items():
        assert dict(recording.table(name).schema) == dict(columns), name
    ends = recording.table("connection_ends")
    assert ends["state"].unique().to_list() == ["finished"]
    assert ends.filter(pl.col("name") == "reverse")["client_received_bytes"].to_list() == [500_000]
    received = recording.table("subflow_ends").group_by("connection").agg(pl.col("server_received_bytes").sum())
    bulk = ends.filter(pl.col("name") == "bulk")["server_received_bytes"].item()
    # subflows carry a little more than the connection: what was sent twice
    carried = received.filter(pl.col("connection") == 0)["server_received_bytes"].item()
    assert bulk <= carried <= 1.1 * bulk
    kinds = set(recording.table("events")["kind"])
    assert {"link-changed", "interface-changed", "priority-changed", "subflow-established", "subflow-closed"} <= kinds
    datagrams = recording.table("datagrams")
    lost = int((datagrams["sent_packets"] - datagrams["received_packets"]).sum())
    assert 0 <= lost <= int(recording.table("link_ends")["dropped_packets"].sum()) < 200
    # ping waits for two propagation delays of 10 ms at least, and behind a full queue of 60 packets at most
    delays = recording.table("requests").filter(pl.col("application") == 6)["delay_ns"]
    assert len(delays) == 8
    assert 20_000_000 <= delays.min() <= delays.max() <= 65_000_000  # type: ignore[operator]


def test_what_has_no_route_yet_waits_for_one_or_is_unreachable(linux: Run) -> None:
    recording = linux("late_route")
    datagrams = recording.table("datagrams").group_by("application").agg(pl.col("received_packets").max())
    # 125 kB/s in packets of 1200 bytes, in the second of two that has the route
    assert all(95 <= count <= 105 for count in datagrams.filter(pl.col("application") < 2)["received_packets"])
    delays = recording.table("requests")["delay_ns"]
    assert (len(delays), delays.null_count()) == (20, 10)
    assert recording.table("connection_ends")["state"].to_list() == ["unreachable"]


def test_an_interface_that_is_down_loses_what_is_sent_by_its_addresses(linux: Run) -> None:
    recording = linux("interface_down")
    # 125 packets a second, of which those of the first second arrive
    counted = recording.table("datagrams").select("sent_packets", "received_packets")
    assert counted.rows() == [(250, 125), (250, 125)]
    links = recording.table("link_ends").filter(direction="forward")
    # IPv6 itself says which groups it listens to
    assert dict(links.select("name", "sent_packets").rows())["fast"] < 10


def test_the_last_datagrams_are_waited_for(linux: Run, scenario: Callable[..., Scenario]) -> None:
    """For a second, as in the simulator; nothing is sent after the run's end."""
    for duration, own, last in (("4 s", "1 s", 2_000_000_000), ("1500 ms", "2 s", 1_500_000_000)):
        each = (f"application.{name}.duration={own}" for name in ("four", "six"))
        mine = (f"duration={duration}", "link.slow.delay=400 ms", *each)
        both = [linux("interface_down", *mine), get("sim").run(scenario("interface_down", *mine).plan(), Options())]
        ours, theirs = (each.table("datagrams").select("sent_packets", "received_packets").rows() for each in both)
        assert ours == theirs
        assert both[0].metadata.end_ns == pytest.approx(last, abs=1_000_000)


def test_the_same_run_twice_is_the_same(linux: Run, tmp_path: Path) -> None:
    found = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        recording = linux("pair", "duration=2 s", options=Options("hosts", tmp_path / name))
        files = sorted((tmp_path / name).iterdir())
        assert [file.name for file in files] == ["client.pcapng", "server.pcapng"]
        found.append((recording.metadata.recording_sha256, [file.read_bytes() for file in files]))
    assert found[0] == found[1]


def test_a_transfer_of_nothing_opens_and_closes_on_both_engines(linux: Run, scenario: Callable[..., Scenario]) -> None:
    def nothing(data: dict[str, Any]) -> None:
        data["applications"][0]["work"] = {"kind": "bulk", "size_bytes": 0, "duration_ns": None, "reverse": False}

    data = scenario("pair", "duration=2 s").plan(None).data
    nothing(data)
    for recording in (linux("pair", "duration=2 s", change=nothing), get("sim").run(Plan(data))):
        ends = recording.table("connection_ends")
        assert ends["server_received_bytes"].to_list() == [0]
        assert ends["state"].to_list() == ["finished"]


def test_segments_are_those_of_the_hosts_captures(linux: Run, tmp_path: Path) -> None:
    settings = ("duration=2 s", "application.blocks.duration=1 s")
    for name in ("bare", "segments"):
        (tmp_path / name).mkdir()
    bare = linux("pair", *settings, options=Options("hosts", tmp_path / "bare"))
    assert bare.table("segments").is_empty()
    recording = linux("pair", *settings, options=Options("hosts", tmp_path / "segments", segments=True))
    assert recording.metadata.recording_sha256 == bare.metadata.recording_sha256
    alone = linux("pair", *settings, options=Options(segments=True))
    told = trace(sorted((tmp_path / "segments").iterdir()), segments=True).recording
    segments, headers = recording.table("segments"), recording.table("headers")
    for name in ("segments", "sack_blocks", "headers"):
        assert alone.table(name).equals(recording.table(name))
    # captures go on to the last acknowledgements
    begin, length = told.plan["capture"]["start_unix_ns"], len(segments)
    assert length == (told.table("segments")["time_ns"] + begin <= recording.metadata.end_ns).sum()
    assert headers.equals(told.table("headers")[:length])
    assert segments.drop("time_ns", "subflow").equals(told.table("segments")[:length].drop("time_ns", "subflow"))
    ends = {row["subflow"]: row for row in recording.table("subflow_ends").to_dicts()}
    data = segments.filter((pl.col("side") == "client") & (pl.col("payload_bytes") > 0))
    for subflow, own in data.filter(kind="data").group_by("subflow"):
        assert own["payload_bytes"].sum() == ends[subflow[0]]["client_sent_bytes"]
    joined = segments.with_row_index("segment").join(headers, on="segment")
    (syn,) = joined.filter(flags="SYN").filter(pl.col("options").str.contains("MP_JOIN")).to_dicts()
    assert syn["subflow"] == 1
    established = recording.table("connection_ends")["established_ns"].item()
    assert 0 < established - segments["time_ns"][0] < 100_000_000
    assert set(data["subflow"]) == {0, 1}


def test_nothing_is_recorded_after_the_end_of_the_run(linux: Run) -> None:
    recording = linux("pair", "duration=1 s", options=Options(segments=True))
    for name in ("segments", "events"):
        assert 0 < recording.table(name)["time_ns"].max() <= recording.metadata.end_ns  # type: ignore[operator]
    assert recording.table("headers").height == recording.table("segments").height
    assert set(recording.table("subflow_ends")["closed_ns"]) == {None}


def test_another_seed_is_another_run(linux: Run) -> None:
    first, second = (linux("pair", "duration=1 s", f"seed={seed}") for seed in (1, 2))
    assert first.metadata.recording_sha256 != second.metadata.recording_sha256


def test_the_default_scheduler_prefers_the_fast_path(linux: Run) -> None:
    assert _share(linux("pair")) > 0.85


def test_round_robin_alternates(linux: Run) -> None:
    assert 0.48 < _share(linux("pair", "host.client.scheduler=roundrobin")) < 0.52


def _schedule(name: str, **parameters: Any) -> Callable[[dict[str, Any]], None]:
    """The client's scheduler, whether or not the simulator has one of that name."""

    def change(data: dict[str, Any]) -> None:
        data["nodes"][0]["stack"]["scheduler"] = {"name": name, "parameters": parameters}

    return change


def test_kbest_alternates_between_two(linux: Run) -> None:
    assert 0.48 < _share(linux("pair", change=_schedule("kbest", k=2))) < 0.52


def test_kbest_leaves_the_slow_paths_alone(linux: Run) -> None:
    shares = linux("four", change=_schedule("kbest", k=2)).table("subflow_ends").sort("subflow")
    sent = dict(zip(shares["interface"], shares["client_sent_bytes"], strict=True))
    total = sum(sent.values())
    assert sorted(sent) == ["eth0", "eth1", "eth2", "eth3"]
    assert sent["eth2"] + sent["eth3"] < 0.02 * total
    assert 0.48 < sent["eth0"] / total < 0.52


@pytest.mark.parametrize("percent", [0, 5, 20])
def test_balanced_keeps_its_cap(linux: Run, percent: int) -> None:
    share = _share(linux("pair", change=_schedule("balanced", cap="half", epsilon=percent / 100)))
    # a few segments of head start, and the writes' own grain
    assert (50 + percent - 3) / 100 < share < (50 + percent + 0.5) / 100


@pytest.mark.parametrize("scheduler", ["blest", "ecf"])
def test_slow_path_is_left_idle_where_the_fast_one_does(linux: Run, scheduler: str) -> None:
    assert _share(linux("pair", change=_schedule(scheduler))) > 0.85


@pytest.mark.parametrize("control", others_slow(("lia", "olia", "balia"), "lia"))
def test_coupled_subflows_take_one_share_of_a_bottleneck(linux: Run, control: str) -> None:
    """Four subflows and a TCP connection on one bottleneck: TCP gets half if they are coupled, a fifth or so if not.

    Round robin, because the default scheduler hands bursts of 64 kB to subflows of a packet or two.
    """

    def tcp_share(name: str) -> float:
        def change(data: dict[str, Any]) -> None:
            data["nodes"][0]["stack"] |= {
                "congestion": {"name": name, "parameters": {}},
                "scheduler": {"name": "roundrobin", "parameters": {}},
            }

        return _tcp_share(linux("shared", change=change))

    uncoupled = tcp_share("reno")
    assert uncoupled < 0.36
    share = tcp_share(control)
    assert 0.45 < share < 0.7
    assert share > uncoupled + 0.1


@pytest.mark.parametrize("control", ["bbr", "vegas", "westwood", "htcp", "illinois", "cdg", "dctcp"])
def test_a_host_may_choose_any_control_that_the_kernel_has(linux: Run, control: str) -> None:
    """By itself the kernel grants a network namespace only some of them."""

    def change(data: dict[str, Any]) -> None:
        data["nodes"][0]["stack"]["congestion"] = {"name": control, "parameters": {}}

    ends = linux("pair", change=change).table("connection_ends")
    assert ends["server_received_bytes"].sum() > 0


def _tcp_share(recording: Recording) -> float:
    ends = recording.table("connection_ends")
    received = dict(zip(ends["name"], ends["server_received_bytes"], strict=True))
    return float(received["tcp"] / sum(received.values()))


def test_schedulers_differ_between_the_ends(linux: Run) -> None:
    reverse = ("application.blocks.reverse=true", "host.client.scheduler=roundrobin")
    recording = linux("pair", *reverse)
    sent = recording.table("subflow_ends").sort("subflow")["server_sent_bytes"]
    assert sent[FAST] / sent.sum() > 0.85


def test_jumbo_frames_pass_a_queue_in_bytes(linux: Run) -> None:
    recording = linux("pair", "defaults.mtu=9000", "link.path0.queue=100 kB", "application.blocks.block=20 kB")
    ends = recording.table("subflow_ends").sort("subflow")
    assert ends["server_received_bytes"][FAST] > 0


@pytest.mark.parametrize("line", ["WARNING: CPU: 0 PID: 1 at net/mptcp/lab.c:1", "INFO: task guest:1 blocked"])
def test_a_complaint_in_the_kernel_s_log_ends_the_run(linux: Run, line: str) -> None:
    files = {"setup.sh": f"echo '<4>{line}' > /dev/kmsg\nexit 0\n", "job": "end 1 0\n", "collect.sh": ""}
    with guest.folder(find(), files, {}) as folder, pytest.raises(EngineError, match=f"complained: .*{line}"):
        guest.boot(folder, 1, 256, lambda now: None)


@pytest.mark.slow
def test_schedulers_and_coupled_controls_stand_links_that_come_and_go(linux: Run) -> None:
    """One period of the soak; `make soak` has fifteen of them, on a kernel with KASAN and lockdep."""
    recording = soak.soak(40)
    ends = recording.table("connection_ends")
    assert ends.height == 24
    # one or two begin on an interface that is down just then
    assert 20 <= ends["established_ns"].count() <= 24
    assert recording.table("subflow_ends").height > 2 * 24


def test_a_guest_that_hangs_is_ended(linux: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(guest.LIMIT.variable, "0.05")
    files = {"setup.sh": "while :; do :; done\n", "job": "end 1 0\n", "collect.sh": ""}
    with guest.folder(find(), files, {}) as folder, pytest.raises(EngineError, match=r"ended after 0\.05 s"):
        guest.boot(folder, 1, 256, lambda now: None)
    assert not _leftovers(os.getpid())


def test_nothing_is_left_of_a_run_that_was_killed(
    linux: Run, scenario: Callable[..., Scenario], tmp_path: Path
) -> None:
    code = (
        "import sys; from polypath.engines.linux import LinuxEngine; from polypath.scenario import Plan;"
        "from pathlib import Path; LinuxEngine().run(Plan.load(Path(sys.argv[1])))"
    )
    path = tmp_path / "plan.json"
    scenario("pair", "duration=1000 s", "application.blocks.duration=900 s").plan(None).save(path)
    with subprocess.Popen([sys.executable, "-c", code, str(path)]) as runner:
        folder = wait(lambda: _leftovers(runner.pid))[0]
        wait(lambda: inside(folder))
        runner.send_signal(signal.SIGKILL)
    wait(lambda: not inside(folder))
    assert not folder.exists()


def test_an_interrupted_run_has_what_came_until_then(
    linux: Run, scenario: Callable[..., Scenario], tmp_path: Path
) -> None:
    code = (
        "import sys; from polypath.engines.linux import LinuxEngine; from polypath.scenario import Plan;"
        "from pathlib import Path; LinuxEngine().run(Plan.load(Path(sys.argv[1]))).save(Path(sys.argv[2]))"
    )
    path = tmp_path / "plan.json"
    long = ("duration=1000 s", "application.cbr.duration=900 s", "application.ping.count=9000")
    scenario("late_route", *long).plan(None).save(path)
    with subprocess.Popen([sys.executable, "-c", code, str(path), str(tmp_path / "out")]) as runner:
        folder = wait(lambda: _leftovers(runner.pid))[0]
        log = folder / "out" / "app-2-client"
        wait(lambda: log.exists() and log.stat().st_size > 1000)
        runner.send_signal(signal.SIGINT)
    recording = Recording.load(tmp_path / "out")
    assert recording.metadata.interrupted
    # answers come from 2 s on
    end_ns, requests = recording.metadata.end_ns, recording.table("requests")
    assert end_ns > 2_000_000_000
    assert requests["delay_ns"].null_count() >= 10
    assert abs(end_ns - requests["sent_ns"][-1]) < 200_000_000
    sent, received, delay = recording.table("datagrams").select("^sent.*|received_p.*|delay.*$").row(0)
    assert sent > received > 0
    assert 10_000_000 < delay < 12_000_000


@pytest.mark.parametrize("setting", ["application.ping.count=6", "application.ping.duration=1 s"])
def test_echo_requests_are_datagrams_and_their_answers_awaited(
    linux: Run, scenario: Callable[..., Scenario], setting: str
) -> None:
    ours, theirs = linux("ping", setting), get("sim").run(scenario("ping", setting).plan(None), Options())
    rows = [each.table("datagrams").row(0, named=True) for each in (ours, theirs)]
    delays = [row.pop("delay_mean_ns") for row in rows]
    assert rows[0] == rows[1]
    assert rows[0]["received_bytes"] == 400
    assert delays[0] == pytest.approx(delays[1], abs=1e6)
    assert ours.metadata.end_ns == pytest.approx(theirs.metadata.end_ns, abs=1e6)


def _leftovers(process: int) -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob(f"polypath-linux-{process}-*"))


def test_iperf3_plays_an_application(linux: Run) -> None:
    """Over TCP and Multipath TCP, with a flag of its own for the latter or without."""
    tcp = linux("iperf3", "application.bulk.transport=tcp", "application.bulk.duration=2 s")
    mptcp = linux("iperf3", "application.bulk.duration=2 s", "application.bulk.reverse=true")
    for recording, side, subflows in ((tcp, "server", 1), (mptcp, "client", 2)):
        ends = recording.table("connection_ends").row(0, named=True)
        assert (ends["state"], ends["transport"]) == ("finished", recording.plan["applications"][0]["transport"])
        assert recording.table("subflow_ends").height == subflows
        received = ends[f"{side}_received_bytes"]
        other = ends[f"{'client' if side == 'server' else 'server'}_received_bytes"]
        assert other == 0
        assert ends["last_byte_ns"] <= ends["end_ns"]  # the FIN is no byte
        # 2 s at 20 Mbps a path, without headers and slow start
        assert 0.7 < received * 8 / 40e6 / subflows < 1.1


@pytest.mark.parametrize("transport", ["tcp", "mptcp"])
def test_corked_requests_take_as_long_as_in_the_simulator(linux: Run, transport: str) -> None:
    """The last part of each request and answer waits for the timer of window probes."""
    scenario = next(entry for entry in fidelity.catalogue() if entry.name == "mptcp-requests").scenario()
    own = (f"application.requests.transport={transport}", "duration=20 s")
    medians: list[Any] = []
    for cork in ("false", "true"):
        plan = scenario.with_settings([*own, f"application.requests.stack.cork={cork}"]).plan()
        for engine in ("sim", "linux"):
            delays = get(engine).run(plan, Options()).table("requests")["delay_ns"].drop_nulls()
            medians.append(delays.median())
    free_sim, free_linux, sim, kernel = medians
    assert free_sim == pytest.approx(free_linux, rel=0.05)
    assert sim == pytest.approx(kernel, rel=0.05)
    # two round trips of 40 ms, and twice a timeout that is longer than 200 ms
    assert sim > free_sim + 400_000_000


def test_segments_are_acknowledged_as_often_as_in_the_simulator(linux: Run) -> None:
    """Nearly every second one, or each where ACKs are not delayed: in the kernel a route's quickack."""

    def segments_per_ack(engine: str, delay: str) -> float:
        settings = ["defaults.profile=linux", "application.iperf.transport=tcp", f"defaults.delayed_ack={delay}"]
        plan = labs.get("aggregation").scenario().with_settings(settings).plan()
        links = get(engine).run(plan, Options()).table("link_ends").filter(pl.col("link") == 0)
        sent = dict(links.select("direction", "sent_packets").rows())
        return float(sent["forward"] / sent["backward"])

    for engine in ("sim", "linux"):
        assert segments_per_ack(engine, "0 s") == pytest.approx(1, rel=0.05)
    assert 1.7 < segments_per_ack("sim", "40 ms") == pytest.approx(segments_per_ack("linux", "40 ms"), rel=0.05)


@pytest.mark.parametrize("transport", ["tcp", "mptcp"])
def test_what_is_lost_or_selectively_acknowledged_is_not_in_flight(linux: Run, transport: str) -> None:
    """So that as many packets as the window has are, in recovery, too."""
    settings = ("defaults.profile=linux", f"application.iperf.transport={transport}", "duration=5 s")
    lossy = ("link.path0.queue=30 packets", "link.path0.loss=1 %")
    plan = labs.get("aggregation").scenario().with_settings([*settings, *lossy]).plan()
    samples = get("linux").run(plan, Options()).table("subflows").filter(side="client")
    assert samples["retransmitted_bytes"].max() > 0  # type: ignore[operator]
    assert samples.filter(pl.col("in_flight_packets") > pl.col("cwnd_packets")).is_empty()


DARK_FOR_A_SECOND = """
[[event]]
at = "3 s"
link = "path0"
up = false

[[event]]
at = "4 s"
link = "path0"
up = true
"""


def test_an_interface_of_a_host_that_opens_nothing_changes(linux: Run) -> None:
    """Both ends are told of a priority, and nobody that the interface is down: the subflow goes on trying."""

    def events(data: dict[str, Any]) -> None:
        nodes = {node["name"]: index for index, node in enumerate(data["nodes"])}
        data["events"] = [
            {"at_ns": at * 10**9, "action": {"node": nodes[host], "interface": 0, **action}}
            for at, host, action in (
                (1, "client", {"kind": "priority", "backup": True}),
                (2, "server", {"kind": "priority", "backup": True}),
                (3, "client", {"kind": "interface", "up": False}),
            )
        ]

    recording = linux("pair", "duration=4 s", "defaults.path_manager=default", change=events)
    told = recording.table("events").filter(pl.col("connection") == 0, pl.col("time_ns") > 10**9)
    assert told.select("kind", "host").rows() == [
        ("priority-changed", "server"),
        ("priority-changed", "client"),
    ]
    assert recording.table("subflow_ends")["backup"].to_list() == [True]
    assert recording.table("connection_ends")["last_byte_ns"].item() < 3.1e9


def test_a_mesh_of_several_subflows_has_the_pairs_of_one(linux: Run) -> None:
    """Pairs of addresses whose interfaces lead apart carry none, and one without a way to the server opens none."""
    pairs = []
    for subflows in (1, 2):
        manager = f"defaults.path_manager={{kind='fullmesh', num_subflows={subflows}}}"
        opened = linux("apart", manager).table("subflow_ends").filter(pl.col("established_ns").is_not_null())
        pairs.append(sorted(opened.select("source", "destination").rows()))
    assert pairs[1] == sorted(2 * pairs[0])


@pytest.mark.parametrize("queue", ["213 kB", "150 packets"])
def test_what_a_link_holds_is_lost_when_it_goes_down(linux: Run, queue: str) -> None:
    """As in the simulator. Its counters go on, and it carries packets again once it is up."""
    settings = ["defaults.profile=linux", "application.iperf.transport=tcp", f"link.path0.queue={queue}"]
    if "packets" in queue:
        settings.append("link.path0.burst=0 B")
    scenario = labs.get("aggregation").scenario().with_settings(settings)
    recording = get("linux").run(Scenario.parse(scenario.to_toml() + DARK_FOR_A_SECOND, "dark").plan(), Options())
    server = recording.table("connections").filter(pl.col("side") == "server")
    delivered = {
        at: max(server.filter(pl.col("time_ns") <= at * 10**6)["delivered_bytes"].to_list())
        for at in (3_001, 3_990, 10_000)
    }
    assert delivered[3_001] == delivered[3_990] < delivered[10_000]
    link = recording.table("links").filter((pl.col("link") == 0) & (pl.col("direction") == "forward"))
    waiting = link.filter(pl.col("time_ns") < 3 * 10**9)["queue_packets"][-1]
    totals = link.select("sent_packets", "dropped_packets", "lost_packets")
    assert totals.equals(totals.select(pl.all().cum_max()))
    assert totals["lost_packets"][-1] >= waiting > 50
    before, *_, after = link["dropped_packets"].filter(link["time_ns"] > 2.9e9)
    assert before > 0
    assert after < before + 300


@pytest.mark.parametrize(
    ("transport", "settings"),
    [
        ("tcp", ("keepalive=true", "keepalive_time=3 s", "keepalive_interval=1 s", "keepalive_probes=4")),
        ("mptcp", ("keepalive=true", "keepalive_time=3 s", "keepalive_interval=1 s", "keepalive_probes=4")),
        ("tcp", ("user_timeout=5 s",)),
    ],
)
def test_a_dead_peer_is_given_up_when_it_is_in_the_simulator(
    linux: Run, transport: str, settings: tuple[str, ...]
) -> None:
    """All paths go dark; a receiver has keep-alive alone, a sender the user timeout."""
    reverse = str("keepalive=true" in settings).lower()
    own = [f"host.client.{setting}" for setting in settings]
    own += [f"application.iperf.transport={transport}", f"application.iperf.reverse={reverse}"]
    scenario = labs.get("aggregation").scenario().with_settings(["defaults.profile=linux", "duration=30 s", *own])
    dark = "".join(f'\n[[event]]\nat = "1500 ms"\nlink = "path{path}"\nup = false\n' for path in (0, 1))
    plan = Scenario.parse(scenario.to_toml() + dark, "dark").plan()
    ends = {}
    for engine in ("sim", "linux"):
        recording = get(engine).run(plan, Options())
        if transport == "tcp":
            row = recording.table("connection_ends").row(0, named=True)
            assert row["state"] == "timed-out"
            ended = row["end_ns"]
        else:
            # the kernel's connection outlives its last subflow by a minute (net.mptcp.close_timeout)
            closed = (pl.col("kind") == "subflow-closed") & (pl.col("host") == "client")
            ended = recording.table("events").filter(closed)["time_ns"].min()
        ends[engine] = ended / 1e9 - 1.5
    assert ends["sim"] == pytest.approx(ends["linux"], rel=0.05)


HALF_CLOSED = """
duration = "8 s"
[defaults]
profile = "linux"
user_timeout = "2 s"
[host.client]
[host.server]
[link.one]
ends = ["client", "server"]
rate = "10 Mbps"
delay = "5 ms"
[[application]]
kind = "bulk"
transport = "tcp"
size = "10 MB"
reverse_size = "1 kB"
[[event]]
at = "1 s"
link = "one"
up = false
"""


def test_a_connection_that_fails_after_the_peer_has_closed_is_not_finished(linux: Run) -> None:
    plan = Scenario.parse(HALF_CLOSED, "half_closed").plan()
    ours, theirs = (get(engine).run(plan, Options()).table("connection_ends") for engine in ("linux", "sim"))
    assert ours["state"].to_list() == theirs["state"].to_list() == ["timed-out"]


def test_segments_of_a_run_without_any_are_none(linux: Run) -> None:
    def late(data: dict[str, Any]) -> None:
        data["applications"][0]["start_ns"] = data["duration_ns"]

    recording = linux("pair", options=Options(segments=True), change=late)
    assert recording.table("connection_ends")["established_ns"].to_list() == [None]
    assert recording.table("segments").is_empty()
