"""A router's report that a packet was too long, on its way through a middlebox (RFC 5508 section 4)."""

from pathlib import Path

import polars as pl
import pytest

from polypath.engines import Options, get
from polypath.results import Recording
from polypath.scenario import Scenario

from ..tshark import fields
from .test_path_mtu import IPV6, MPTCP, SCENARIO, completion

NAT = "link.{}.middlebox=nat"
NAT6 = 'link.{}.middlebox={{ kind = "nat", address = "2001:db8:ff::1", keep_ports = false }}'
PORTS = 'link.{}.middlebox={{ kind = "nat", keep_ports = false }}'

#: The router before the tunnel is the NAT itself; a NAT of its own stands before it.
NEAR, FAR = "access", "home"

#: Another router between the client and the one before the tunnel.
HOME = """
[router.home]

[link.home]
ends = ["client:eth0", "home"]
rate = "20 Mbps"
delay = "1 ms"
"""


def run(*settings: str, captures: Path | None = None) -> Recording:
    text = SCENARIO.read_text()
    if any(each.startswith("link.home.") for each in settings):
        text = text.replace('"client:eth0", "a:inner"', '"home", "a:inner"').replace("\n[[app", f"{HOME}\n[[app")
    plan = Scenario.parse(text, "path-mtu").with_settings(list(settings)).plan()
    return get("sim").run(plan, Options("hosts", captures) if captures else Options())


def told(recording: Recording) -> list[int]:
    return recording.table("events").filter(pl.col("kind") == "path-mtu")["value"].to_list()


def refusals(recording: Recording) -> list[str]:
    events = recording.table("events").filter(pl.col("kind") == "packet-too-big")
    return events["detail"].unique().sort().to_list()


@pytest.mark.parametrize("nat", [NAT, PORTS], ids=["ports-kept", "ports-changed"])
@pytest.mark.parametrize("place", [NEAR, FAR])
@pytest.mark.parametrize("transport", [(), MPTCP], ids=["tcp", "mptcp"])
def test_a_host_behind_a_nat_is_told(nat: str, place: str, transport: tuple[str, ...]) -> None:
    recording = run(nat.format(place), *transport)
    # over IPv6, for which the box is none, too
    assert set(told(recording)) == {1400}
    without = run(*(["link.home.delay=1 ms"] if place == FAR else []), *transport)
    assert "1500 bytes before 1400, sender told" in refusals(recording)
    assert refusals(recording) == refusals(without)
    assert completion(recording) == pytest.approx(completion(without), rel=0.01)
    (box,) = recording.table("middleboxes").to_dicts()
    assert box["dropped_packets"] == 0


@pytest.mark.parametrize("family", ["ip", "ipv6"])
@pytest.mark.parametrize("place", [NEAR, FAR])
def test_the_quoted_packet_is_the_one_that_was_sent(tmp_path: Path, family: str, place: str) -> None:
    settings = IPV6 if family == "ipv6" else ()
    nat = NAT6 if family == "ipv6" else PORTS
    recording = run(*settings, nat.format(place), captures=tmp_path)
    assert told(recording) == [1400]
    version = "icmpv6" if family == "ipv6" else "icmp"
    which = "tcp.seq_raw" if family == "ipv6" else "ip.id"
    names = (f"{family}.src", f"{family}.dst", "tcp.srcport", which)
    capture = tmp_path / "client.pcapng"
    reports = fields(capture, f"{version}.mtu == 1400", *names, f"{version}.checksum.status")
    sent = fields(capture, f"tcp.len > 1388 && !{version}", *names)
    client, server = ("2001:db8::1", "2001:db8:2::2") if family == "ipv6" else ("10.0.0.1", "10.0.2.2")
    assert len(reports) == 10
    for source, destination, port, identity, good in reports:
        assert source.split(",")[1] == destination.split(",")[0] == client
        assert destination.split(",")[1] == server
        assert [client, server, port, identity.split(",")[-1]] in sent
        assert good == "1"
    seen = fields(tmp_path / "server.pcapng", "tcp.len > 0", f"{family}.src", "tcp.srcport")
    assert {address for address, _ in seen}.isdisjoint({client})


def test_a_report_from_inside_bears_the_address_of_the_nat(tmp_path: Path) -> None:
    """Downwards the short link lies behind the NAT of the server's link, whose other side the server cannot name."""
    recording = run("application.bulk.reverse=true", NAT.format("server"), captures=tmp_path)
    assert told(recording) == [1400]
    rows = fields(tmp_path / "server.pcapng", "icmp.mtu == 1400", "ip.src", "ip.dst", "tcp.srcport")
    assert {(source, destination) for source, destination, _ in rows} == {
        ("203.0.113.1,10.0.2.2", "10.0.2.2,203.0.113.1")
    }
    assert {port for _, _, port in rows} == {"5001"}


def test_a_report_of_what_the_nat_let_in() -> None:
    """The packet that comes out of the NAT does not fit the link that the NAT stands on."""
    settings = ("link.access.backward.mtu=1400", "link.tunnel.icmp=false", "link.tunnel.mtu=1500")
    recording = run("application.bulk.reverse=true", NAT.format("access"), *settings)
    assert refusals(recording) == ["1500 bytes before 1400, sender told"]
    assert told(recording) == [1400]


@pytest.mark.parametrize("box", ["split", "strip-options"])
def test_boxes_without_state_let_reports_by(box: str) -> None:
    wide = {"split": '{ kind = "split", bytes = 1440 }'}.get(box, box)
    recording = run(f"link.access.middlebox={wide}")
    assert told(recording) == [1400]
    assert completion(recording) < 4


def test_a_proxy_is_told_of_its_own_packets() -> None:
    """Its second connection is not recorded, the transfer that needs it is."""
    recording = run("link.access.middlebox=proxy")
    assert refusals(recording) == ["1500 bytes before 1400, sender told"]
    assert told(recording) == []
    assert completion(recording) < 2.5


def test_moved_sequence_numbers_make_a_report_one_about_nothing() -> None:
    recording = run("link.access.middlebox=rewrite-sequence")
    assert told(recording) == []
    counters = recording.table("counters").filter(pl.col("name") == "TcpExtOutOfWindowIcmps")
    assert counters["value"].sum() > 0
    assert completion(recording) == float("inf")
