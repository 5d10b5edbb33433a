"""Links whose queue is in the sending host: its stack hears what the queue refuses, and loses nothing."""

from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from polypath.engines import EngineError, Options, get
from polypath.engines.linux.engine import translate
from polypath.engines.linux.kernel import KernelError, find
from polypath.engines.linux.kernel.make import supported
from polypath.results import Recording
from polypath.scenario import Plan, Scenario

SCENARIO = Path(__file__).with_name("host_queue.toml")

TCP = ("application.bulk.transport=tcp", "link.b.up=false")
AT_LINK = ("link.a.queue_at=link", "link.b.queue_at=link")
IN_TBF = ("link.a.queue_at=host-tbf", "link.b.queue_at=host-tbf")


def plan(*settings: str) -> Plan:
    return Scenario.load(SCENARIO).with_settings(list(settings)).plan()


@cache
def run(engine: str, *settings: str) -> Recording:
    return get(engine).run(plan(*settings), Options())


def dropped(recording: Recording) -> list[int]:
    """Packets that the queues of both paths dropped."""
    ends = recording.table("link_ends").filter(pl.col("direction") == "forward")
    return [ends.filter(pl.col("name") == name)["dropped_packets"].item() for name in "ab"]


def count(recording: Recording, kind: str) -> int:
    return recording.table("events").filter(pl.col("kind") == kind).height


def resent(recording: Recording) -> int:
    return int(recording.table("subflow_ends")["client_retransmitted_bytes"].sum())


def deepest(recording: Recording, link: str) -> int:
    """Packets that waited at the same time."""
    ends = recording.table("link_ends").filter((pl.col("name") == link) & (pl.col("direction") == "forward"))
    return int(ends["max_queue_packets"].item())


def round_trips(recording: Recording) -> list[float]:
    """Mean smoothed round trip of each subflow from 2 s on, in ms."""
    samples = recording.table("subflows").filter((pl.col("side") == "client") & (pl.col("time_ns") > 2 * 10**9))
    means = samples.filter(pl.col("state") == "established").group_by("subflow").agg(pl.col("srtt_us").mean())
    return [float(mean) / 1e3 for mean in means.sort("subflow")["srtt_us"]]


def goodput(recording: Recording) -> float:
    """Mbps."""
    return float(recording.table("connection_ends")["server_received_bytes"].item()) * 8 / 15e6


def steady_rate(recording: Recording) -> float:
    """
    Mbps from 5 s to 15 s. What the send buffer holds then is half a megabyte more or less, with the window that slow
    start happened to end with.
    """
    samples = recording.table("subflows").filter((pl.col("side") == "server") & pl.col("time_ns").is_between(5e9, 15e9))
    grown = pl.col("time_ns", "received_bytes").sort_by("time_ns")
    rates = samples.group_by("subflow").agg((grown.last() - grown.first()).cast(pl.Float64))
    return float((rates["received_bytes"] * 8e3 / rates["time_ns"]).sum())


@pytest.mark.parametrize("profile", ["linux", "mptcp.org"])
@pytest.mark.parametrize("settings", [TCP, ()], ids=["tcp", "mptcp"])
def test_what_the_queue_refuses_is_congestion_and_no_loss(profile: str, settings: tuple[str, ...]) -> None:
    ours = (*settings, f"defaults.profile={profile}")
    recording = run("sim", *ours)
    assert sum(dropped(recording)) >= 2
    assert count(recording, "local-congestion") >= 2
    assert count(recording, "loss") == count(recording, "timeout") == count(recording, "reinjection") == 0
    assert resent(recording) == 0
    lossy = run("sim", *ours, *AT_LINK)
    assert count(lossy, "local-congestion") == 0
    assert count(lossy, "loss") >= 1
    assert resent(lossy) > 0


def test_the_profile_of_the_rfcs_takes_it_for_a_loss() -> None:
    recording = run("sim", *TCP, "defaults.profile=rfc", "defaults.congestion=reno")
    behind = run("sim", *TCP, "defaults.profile=rfc", "defaults.congestion=reno", *AT_LINK)
    assert count(recording, "local-congestion") == 0
    assert resent(recording) == resent(behind) > 0


@pytest.mark.parametrize("settings", [TCP, ()], ids=["tcp", "mptcp"])
def test_a_host_that_keeps_packets_on_their_account_has_few_of_a_socket(settings: tuple[str, ...]) -> None:
    """TCP small queues: two buffers of two packets, and a packet more than the limit; in netem the queue fills."""
    held = run("sim", *settings, *IN_TBF)
    assert dropped(held) == [0, 0]
    assert deepest(held, "a") <= 6
    assert max(round_trips(held)[:1]) < 48
    free = run("sim", *settings)
    assert deepest(free, "a") >= 50
    assert round_trips(free)[0] > 70


def test_sockets_share_a_queue_that_each_has_few_packets_in() -> None:
    data = plan(*TCP, *IN_TBF).data
    first = data["applications"][0]
    data["applications"] = [first, {**first, "name": "second"}]
    recording = get("sim").run(Plan(data), Options())
    assert sum(dropped(recording)) == 0
    assert 6 < deepest(recording, "a") <= 12


def test_what_a_short_tbf_refuses_is_on_no_account_recorded_or_not() -> None:
    """A socket that was still charged for it would stop."""
    short = (*TCP, *IN_TBF, "link.a.queue=3 packets")
    recording = run("sim", *short)
    assert sum(dropped(recording)) > 2
    assert goodput(recording) > 7
    assert goodput(run("sim", *short, "record.segments=true")) == goodput(recording)


def test_only_the_direction_that_begins_at_a_host_has_it_there() -> None:
    sides: dict[str, Any] = plan().data["links"][0]
    assert sides["forward"]["queue_at"] == "host-netem"
    assert "queue_at" not in sides["backward"]
    assert "queue_at" not in plan(*AT_LINK).data["links"][0]["forward"]


@pytest.mark.parametrize("settings", [TCP, ()], ids=["tcp", "mptcp"])
def test_the_kernel_does_the_same(settings: tuple[str, ...]) -> None:
    """netem on the client's own interface, the rest of the link behind it."""
    try:
        supported()
        find()
    except KernelError as error:
        pytest.skip(str(error))
    kernel, simulator = run("linux", *settings), run("sim", *settings)
    assert resent(kernel) == resent(simulator) == 0
    for theirs, ours in zip(dropped(kernel), dropped(simulator), strict=True):
        assert abs(theirs - ours) <= 1
    assert sum(dropped(kernel)) >= 2
    assert goodput(simulator) == pytest.approx(goodput(kernel), rel=0.01)
    for recording in (kernel, simulator):
        assert deepest(recording, "a") in (50, 51)


@pytest.mark.parametrize("settings", [TCP, ()], ids=["tcp", "mptcp"])
def test_the_kernel_s_sockets_have_as_few_packets_in_tbf(settings: tuple[str, ...]) -> None:
    """A packet's time apart: tbf passes one on before it has earned it."""
    try:
        supported()
        find()
    except KernelError as error:
        pytest.skip(str(error))
    kernel, simulator = run("linux", *settings, *IN_TBF), run("sim", *settings, *IN_TBF)
    assert dropped(kernel) == dropped(simulator) == [0, 0]
    assert steady_rate(simulator) == pytest.approx(steady_rate(kernel), rel=0.01)
    for theirs, ours in zip(round_trips(kernel), round_trips(simulator), strict=True):
        assert 0.5 < ours - theirs < 2
    assert abs(deepest(kernel, "a") - deepest(simulator, "a")) <= 1


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("link.a.queue=30 kB", "a queue in the host's netem is drop-tail, in packets"),
        ("link.a.burst=15 kB", "a queue in the host's netem is drop-tail, in packets"),
    ],
)
def test_what_netem_cannot_be_is_refused(setting: str, words: str) -> None:
    with pytest.raises(EngineError, match=words):
        translate(plan(setting).data)


def test_the_kernel_s_queue_in_the_host_does_not_change_by_an_event() -> None:
    data = plan().data
    change = {"kind": "link", "link": 0, "direction": "both", "delay_ns": None, "loss": None, "queue": None, "up": None}
    data["events"] = [{"at_ns": 10**9, "action": {**change, "rate_bps": 10**6}}]
    with pytest.raises(EngineError, match="an event cannot change the rate or the queue on a host's own interface"):
        translate(data)


def test_what_mptcp_org_s_scheduler_makes_of_tbf_is_not_followed() -> None:
    with pytest.raises(EngineError, match="followed in the profiles 'linux' and 'rfc' only"):
        run("sim", *IN_TBF, "defaults.profile=mptcp.org")
