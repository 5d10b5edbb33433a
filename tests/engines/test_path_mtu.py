"""A link on the way that takes shorter packets than the hosts: who is told, what they make of it."""

from pathlib import Path

import polars as pl
import pytest

from polypath.engines import EngineError, Options, get
from polypath.engines.linux.engine import translate
from polypath.engines.linux.kernel import KernelError, find
from polypath.engines.linux.kernel.make import supported
from polypath.results import Recording
from polypath.scenario import Scenario

from ..slow import slow
from ..tshark import fields

SCENARIO = Path(__file__).with_name("path_mtu.toml")

IPV6 = ("application.bulk.source=2001:db8::1", "application.bulk.destination=2001:db8:2::2")
IPV4 = (
    "host.client.interface.eth0.address=10.0.0.1",
    "host.client.interface.eth1.address=10.0.1.1",
    "host.server.interface.eth0.address=10.0.2.2",
)
MPTCP = ("application.bulk.transport=mptcp",)
BLACK_HOLE = ("link.tunnel.icmp=false",)


def run(engine: str, *settings: str, captures: Path | None = None) -> Recording:
    plan = Scenario.load(SCENARIO).with_settings(list(settings)).plan()
    return get(engine).run(plan, Options("hosts", captures) if captures else Options())


def completion(recording: Recording, size: int = 4_000_000) -> float:
    """Seconds, infinite where the server did not get everything."""
    row = recording.table("connection_ends").row(0, named=True)
    whole = row["server_received_bytes"] == size
    return row["last_byte_ns"] / 1e9 if whole else float("inf")


@pytest.fixture
def kernel() -> None:
    """Skips where engine linux has none."""
    try:
        supported()
        find()
    except KernelError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("family", [(), IPV6], ids=["ipv4", "ipv6"])
def test_quic_takes_the_length_that_a_router_names(family: tuple[str, ...]) -> None:
    quic = ("application.bulk.transport=quic", "defaults.profile=rfc", *family)

    def search(*settings: str) -> tuple[list[str], dict[str, list[float]]]:
        """What became of packets that were too long, and what each host found."""
        recording = run("sim", *quic, *settings)
        assert completion(recording) < 2
        events = recording.table("events")
        found = events.filter(pl.col("kind") == "path-mtu")
        own = {host: found.filter(pl.col("host") == host)["value"].to_list() for host in ("client", "server")}
        return events.filter(pl.col("kind") == "packet-too-big")["detail"].to_list(), own

    told, found = search()
    assert [each.endswith("sender told") for each in told] == [True, True], "one probe of each side"
    assert all(len(values) == 2 and values[1] == 1400 for values in found.values())
    unheard, found = search(*BLACK_HOLE)
    assert len(unheard) > len(told)
    assert all(each.endswith("not told") for each in unheard)
    assert all(1392 < values[-1] <= 1400 for values in found.values())


# `kernel`: seconds that Linux takes
@pytest.mark.parametrize(("family", "header", "kernel"), [("ip", 20, 2.989), ("ipv6", 40, 3.022)])
def test_the_sender_is_told_and_sends_again_at_once(tmp_path: Path, family: str, header: int, kernel: float) -> None:
    recording = run("sim", *(IPV6 if family == "ipv6" else ()), captures=tmp_path)
    events = recording.table("events")
    told = events.filter(pl.col("kind") == "path-mtu")
    assert told["value"].to_list() == [1400]
    assert events.filter(pl.col("kind") == "timeout").height == 0
    # the ten segments of the initial window
    assert events.filter(pl.col("kind") == "packet-too-big").height == 10
    assert recording.table("link_ends").filter(pl.col("name") == "tunnel")["dropped_packets"].sum() >= 10
    capture = tmp_path / "client.pcapng"
    version = "icmpv6" if family == "ipv6" else "icmp"
    reports = fields(
        capture, f"{version} && !_ws.malformed", f"{version}.mtu", f"{family}.src", f"{version}.checksum.status"
    )
    router = "2001:db8::fe" if family == "ipv6" else "10.0.0.254"
    assert [(mtu, source.split(",")[0], good) for mtu, source, good in reports] == [("1400", router, "1")] * 10
    sent = fields(tmp_path / "server.pcapng", "tcp.len > 0 && tcp.dstport == 5001", "tcp.len")
    assert max(int(each[0]) for each in sent) == 1400 - header - 20 - 12
    assert completion(recording) == pytest.approx(kernel, rel=0.01)


@pytest.mark.parametrize(
    ("family", "settings", "source"),
    [
        ("icmp", ("router.a.interface.inner.address=2001:db8::fe",), "192.0.0.8"),
        ("icmpv6", ("router.a.interface.inner.address=10.0.0.254", *IPV6), "100::3"),
    ],
)
def test_a_router_without_an_address_answers_from_one_that_is_forwarded(
    family: str, settings: tuple[str, ...], source: str, tmp_path: Path
) -> None:
    """RFC 7600 section 4.8, RFC 6666: not from a link-local address (RFC 4291 section 2.5.6)."""
    run("sim", *settings, captures=tmp_path)
    version = "ipv6" if family == "icmpv6" else "ip"
    reports = fields(tmp_path / "client.pcapng", f"{family}.mtu == 1400", f"{version}.src")
    assert {each[0].split(",")[0] for each in reports} == {source}


def test_multipath_tcp_learns_for_the_subflow(tmp_path: Path) -> None:
    recording = run("sim", *MPTCP, captures=tmp_path)
    came = fields(tmp_path / "server.pcapng", "ip", "ip.src", "ip.len")
    lengths = {of: max(int(length) for source, length in came if source == of) for of in ("10.0.0.1", "10.0.1.1")}
    assert lengths == {"10.0.0.1": 1400, "10.0.1.1": 1500}
    assert completion(recording) < 1.5


def test_without_icmp_long_packets_vanish() -> None:
    recording = run("sim", *BLACK_HOLE)
    assert completion(recording) == float("inf")
    events = recording.table("events")
    assert events.filter(pl.col("kind") == "path-mtu").height == 0
    assert events.filter(pl.col("kind") == "timeout").height >= 4
    # the handshake passed, no full segment does
    assert recording.table("connection_ends").row(0, named=True)["server_received_bytes"] == 0


@pytest.mark.parametrize(("mode", "timeouts"), [("black-hole", 4), ("on", 0)])
def test_a_sender_that_searches_gets_through(mode: str, timeouts: int) -> None:
    recording = run("sim", *BLACK_HOLE, f"defaults.mtu_probing={mode}")
    events = recording.table("events")
    found = events.filter(pl.col("kind") == "path-mtu")["value"].to_list()
    # up to less than eight bytes below 1400 from the base, 1024 bytes of payload
    assert found == sorted(found)
    assert 1400 - 8 < found[-1] <= 1400
    assert events.filter(pl.col("kind") == "timeout").height == timeouts
    rest = 4_000_000 * 8 / 20e6 * (1024 + 66) / 1024
    waited = completion(recording) - rest
    assert (3 < waited < 6.7) if timeouts else (waited < 0.5)


def test_a_host_announces_what_the_link_of_its_interface_takes() -> None:
    recording = run("sim", "link.access.mtu=1300")
    assert recording.table("events").filter(pl.col("kind") == "packet-too-big").height == 0
    assert completion(recording) < 2.5


def test_a_host_remembers_what_it_was_told() -> None:
    text = SCENARIO.read_text()
    later = text[text.index("[[application]]") :].replace('"bulk"', '"again"', 1)
    recording = get("sim").run(
        Scenario.parse(f'{text}\n{later}start = "5 s"\nport = 5002\n', "again").plan(), Options()
    )
    refused = recording.table("events").filter(pl.col("kind") == "packet-too-big")["time_ns"]
    assert refused.max() < 5_000_000_000  # type: ignore[operator]
    assert recording.table("connection_ends")["server_received_bytes"].to_list() == [4_000_000] * 2


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        slow("ip", ()),
        ("ipv6", IPV6),
        ("ip", MPTCP + IPV4),
        slow("ip", BLACK_HOLE),
        ("ip", (*BLACK_HOLE, "defaults.mtu_probing=black-hole")),
        slow("ip", (*BLACK_HOLE, "defaults.mtu_probing=on")),
    ],
    ids=["ipv4", "ipv6", "mptcp", "black-hole", "suspected", "probed"],
)
@pytest.mark.usefixtures("kernel")
def test_the_kernel_does_the_same(family: str, settings: tuple[str, ...], tmp_path: Path) -> None:
    """At 2 Mbps, where the initial window fills the path: how the kernel cuts its buffers costs it in slow start."""
    slow = [f"link.{name}.rate=2 Mbps" for name in ("access", "tunnel", "other")]
    found = {}
    for engine in ("sim", "linux"):
        captures = tmp_path / engine
        captures.mkdir()
        recording = run(engine, *slow, "application.bulk.size=1 MB", *settings, captures=captures)
        sources = ("2001:db8::1",) if family == "ipv6" else ("10.0.0.1", "10.0.1.1")
        came = fields(captures / "server.pcapng", "tcp", f"{family}.src", "tcp.len")
        longest = [max((int(length) for source, length in came if source == of), default=0) for of in sources]
        version = "icmpv6" if family == "ipv6" else "icmp"
        reports = len(fields(captures / "client.pcapng", f"{version}.mtu == 1400", "frame.number"))
        found[engine] = (longest, reports, completion(recording, 1_000_000))
    assert found["sim"][:2] == found["linux"][:2]
    assert found["sim"][2] == pytest.approx(found["linux"][2], rel=0.05)


@pytest.mark.parametrize(
    "settings",
    [
        slow(("application.bulk.reverse=true",)),
        slow(("host.server.timestamps=false",)),
        (*MPTCP, *IPV4, "application.bulk.reverse=true"),
    ],
    ids=["accepted", "opened", "subflow"],
)
@pytest.mark.usefixtures("kernel")
def test_a_search_begins_as_the_kernels(settings: tuple[str, ...], tmp_path: Path) -> None:
    """Linux holds the bounds against what it sends only from the next tcp_sync_mss on."""
    slow = [f"link.{name}.rate=2 Mbps" for name in ("access", "tunnel", "other")]
    found = {}
    for engine in ("sim", "linux"):
        captures = tmp_path / engine
        captures.mkdir()
        search = ("defaults.mtu_probing=on", "link.tunnel.mtu=1500", "application.bulk.size=100 kB")
        run(engine, *slow, *search, *settings, captures=captures)
        first = "tcp.len > 0 && (ip.addr == 10.0.0.1)"
        found[engine] = fields(captures / "server.pcapng", first, "tcp.seq", "tcp.len")[:14]
    assert found["sim"] == found["linux"]


def test_two_mtus_of_an_interface_are_refused_by_linux() -> None:
    plan = Scenario.load(SCENARIO).with_settings(["link.tunnel.forward.mtu=1300"]).plan()
    with pytest.raises(EngineError, match="one MTU for both directions, and link tunnel has two"):
        translate(plan.data)
