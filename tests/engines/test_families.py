"""IPv4 and IPv6 subflows in one connection, and segments as long as each family's packets allow."""

from itertools import product
from pathlib import Path
from statistics import fmean

import pytest

from polypath import labs
from polypath.engines import EngineError, Options, get
from polypath.engines.linux.kernel import KernelError, find
from polypath.results import Recording, metrics
from polypath.scenario import Scenario

from ..slow import others_slow
from ..tshark import fields

SCENARIO = Path(__file__).with_name("families.toml")
DELAYS = ("19.5 ms", "20 ms", "21 ms")


def run(captures: Path, *settings: str) -> Recording:
    scenario = Scenario.load(SCENARIO).with_settings(list(settings))
    return get("sim").run(scenario.plan(), Options("hosts", captures))


@pytest.mark.parametrize("first", ["10.0.2.2", "2001:db8:2::2"])
@pytest.mark.parametrize("mtu", [1280, 1500, 9000])
def test_each_family_has_its_subflow_and_its_mss(tmp_path: Path, first: str, mtu: int) -> None:
    recording = run(tmp_path, f"application.iperf.destination={first}", f"defaults.mtu={mtu}")
    found = metrics.subflows(recording, metrics.connection(recording, "iperf"))
    assert sorted(subflow.destination.rsplit(":", 1)[0] for subflow in found) == ["10.0.2.2", "[2001:db8:2::2]"]
    assert all((subflow.share or 0) > 0.3 for subflow in found)
    frames = fields(tmp_path / "client.pcapng", "tcp", "ip.src", "tcp.options.mss_val", "frame.len")
    for family, header in (("ip", 40), ("ipv6", 60)):
        own = [(announced, int(length)) for source, announced, length in frames if bool(source) == (family == "ip")]
        assert [announced for announced, _ in own if announced] == [str(mtu - header)] * 2
        assert max(length for _, length in own) == mtu + 14


MTUS = (576, 9000)


@pytest.mark.parametrize(
    ("client", "server", "transport"),
    others_slow(
        product(MTUS, MTUS, ("tcp", "mptcp")),
        (576, 9000, "tcp"),
        (9000, 576, "mptcp"),
        (9000, 9000, "tcp"),
        (576, 576, "mptcp"),
    ),
)
def test_each_end_announces_the_mss_of_its_mtu(tmp_path: Path, transport: str, client: int, server: int) -> None:
    """RFC 9293 section 3.7.1: the MTU without 40 bytes of headers, and the smaller of both for data."""
    hosts = [f"host.client.mtu={client}", f"host.server.mtu={server}"]
    scenario = labs.get("aggregation").scenario()
    for reverse in ("false", "true"):
        own = [f"application.iperf.transport={transport}", f"application.iperf.reverse={reverse}", "duration=500 ms"]
        captures = tmp_path / reverse
        get("sim").run(scenario.with_settings([*hosts, *own]).plan(), Options("hosts", captures))
        capture = captures / "client.pcapng"
        frames = fields(capture, "tcp", "tcp.dstport", "tcp.options.mss_val", "tcp.len", "ip.len")
        announced = {
            side: [mss for port, mss, _, _ in frames if mss and (port == "5001") == (side == "client")]
            for side in ("client", "server")
        }
        subflows = 1 if transport == "tcp" else 2
        assert announced == {"client": [str(client - 40)] * subflows, "server": [str(server - 40)] * subflows}
        assert {client - 40, server - 40} <= {536, 8960}
        assert max(int(whole) for _, _, payload, whole in frames if payload != "0") == min(client, server)


@pytest.mark.parametrize("subflows", [1, 2])
@pytest.mark.parametrize("first", ["10.0.2.2", "2001:db8:2::2"])
def test_the_kernel_has_both_families_as_the_simulator_has(first: str, subflows: int) -> None:
    """The shares are means over three delays: chance decides how two subflows of one path share it."""
    try:
        find()
    except KernelError as error:
        pytest.skip(str(error))
    settings = [
        "defaults.profile=linux",
        f"defaults.path_manager={{kind='fullmesh', num_subflows={subflows}}}",
        f"application.iperf.destination={first}",
    ]
    ends = {}
    for engine in ("sim", "linux"):
        shares = []
        for delay in DELAYS:
            plan = Scenario.load(SCENARIO).with_settings([*settings, f"link.path1.delay={delay}"]).plan()
            recording = get(engine).run(plan)
            found = metrics.subflows(recording, metrics.connection(recording, "iperf"))
            pairs = [tuple(end.rsplit(":", 1)[0] for end in (one.source, one.destination)) for one in found]
            ends[engine, delay] = sorted(pairs)
            shares.append([one.share for one in found])
        assert all(fmean(each) > 0.3 / subflows for each in zip(*shares, strict=True))
    assert all(ends["linux", delay] == ends["sim", delay] for delay in DELAYS)
    assert set(ends["linux", DELAYS[0]]) == {("10.0.0.1", "10.0.2.2"), ("[2001:db8::1]", "[2001:db8:2::2]")}


def test_iperf3_s_socket_of_one_family_is_told_before_the_run() -> None:
    settings = ["application.iperf.program=iperf3", "application.iperf.duration=1 s", "defaults.profile=linux"]
    with pytest.raises(EngineError, match=r"iperf3's socket to 10\.0\.2\.2 would have no subflows of IPv6"):
        get("linux").run(Scenario.load(SCENARIO).with_settings(settings).plan())


def test_joins_go_out_behind_the_data_of_their_instant(tmp_path: Path) -> None:
    """Linux's worker opens subflows, when what arrived has been answered (net/mptcp/pm.c, mptcp_pm_schedule_work)."""
    get("sim").run(
        labs.get("aggregation").scenario().with_settings(["duration=1 s"]).plan(), Options("hosts", tmp_path)
    )
    frames = fields(
        tmp_path / "client.pcapng", "tcp.dstport == 5001", "frame.time_relative", "tcp.flags.syn", "tcp.len"
    )
    joins = [index for index, (_, syn, _) in enumerate(frames) if syn in ("1", "True") and index]
    at = frames[joins[0]][0]
    data = [index for index, (time, _, length) in enumerate(frames) if time == at and int(length)]
    assert data
    assert max(data) < min(joins)
