"""What is left of Multipath TCP behind a middlebox, as Wireshark reads the captures of both ends."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from .conftest import Polypath
from .wireshark import Frame, frames, matching, tshark

SHORT = ("--set", "application.transfer.size=300 kB")
ENDS = ("client", "server")


def captured(polypath: Polypath, folder: Path, run: str, *settings: str) -> dict[str, Path]:
    ran = polypath("run", "middleboxes", "--run", run, *SHORT, *settings, "--pcap", "hosts", "--out", folder)
    assert ran.returncode == 0, ran.stderr
    return {end: folder / run / "capture" / f"{end}.pcapng" for end in ENDS}


def syns(capture: Path) -> dict[str, tuple[str, str, str]]:
    """By the sender's random number or key: address, port and token of every SYN without ACK."""
    fields = ("ip.src", "tcp.srcport", "tcp.options.mptcp.recvtok", "tcp.options.mptcp.sendrand", "tcp.seq_raw")
    columns = [argument for field in fields for argument in ("-e", field)]
    read = tshark(
        capture, "-Y", "tcp.flags.syn == 1 && tcp.flags.ack == 0", "-T", "fields", "-E", "separator=|", *columns
    )
    found = {}
    for line in read.splitlines():
        address, port, token, random, seq = line.split("|")
        found[random or seq] = (address, port, token)
    return found


def keys(segments: list[Frame]) -> set[str]:
    return {key for frame in segments for key in frame.mptcp("sendkey")}


def mappings(segments: list[Frame], ports: set[int]) -> set[tuple[str, ...]]:
    """Data sequence number, subflow sequence number and length of what is sent from these ports."""
    names = ("rawdataseqno", "subflowseqno", "datalvllen")
    return {
        tuple(frame.mptcp(name)[0] for name in names)
        for frame in segments
        if frame.source_port in ports and frame.payload and all(frame.mptcp(name) for name in names)
    }


def test_a_nat_changes_addresses_and_ports_and_nothing_of_multipath_tcp(polypath: Polypath, tmp_path: Path) -> None:
    nat = '{ kind = "nat", keep_ports = false }'
    captures = captured(
        polypath, tmp_path, "nat", *(x for i in (0, 1) for x in ("--set", f"link.path{i}.middlebox={nat}"))
    )
    inside, outside = (syns(captures[end]) for end in ENDS)
    assert len(inside) == 2
    assert inside.keys() == outside.keys()
    for own, translated in ((inside[one], outside[one]) for one in inside):
        assert own[0].startswith("10.")
        assert translated[0].startswith("203.0.113.")
        assert own[1] != translated[1]
        assert own[2] == translated[2]
    segments = {end: frames(captures[end]) for end in ENDS}
    assert keys(segments["client"]) == keys(segments["server"])
    (token,) = {int(token, 0) for _, _, token in inside.values() if token}
    tokens = {int.from_bytes(hashlib.sha256(int(key, 0).to_bytes(8)).digest()[:4]) for key in keys(segments["client"])}
    assert token in tokens
    sent_from = {int(port) for _, port, _ in inside.values()}
    seen_from = {int(port) for _, port, _ in outside.values()}
    sent, seen = mappings(segments["client"], sent_from), mappings(segments["server"], seen_from)
    assert len(seen) > 200
    # What a queue dropped is missing at the server, and was sent again.
    assert seen <= sent


@pytest.mark.parametrize("on", ["syn", "all"])
def test_behind_a_box_that_strips_options_there_is_no_multipath_tcp(
    polypath: Polypath, tmp_path: Path, on: str
) -> None:
    box = f'link.path0.middlebox={{ kind = "strip-options", on = "{on}" }}'
    captures = captured(polypath, tmp_path, "none", "--set", box)
    assert matching(captures["server"], "tcp.options.mptcp.subtype") == []
    assert len(matching(captures["server"], "tcp.len > 0")) > 200
    asked = matching(captures["client"], "tcp.flags.syn == 1 && tcp.options.mptcp.subtype == 0")
    assert asked == matching(captures["client"], "tcp.options.mptcp.subtype")
    assert asked


PRIVATE = """
duration = "30 s"

[defaults]
profile = "rfc"

[host.client]
[host.server]
[router.r]

[link.access]
ends = ["client", "r"]
rate = "10 Mbps"
delay = "10 ms"

[link.public]
ends = ["server:eth0", "r"]
rate = "100 Mbps"

[link.private]
ends = ["server:eth1", "r"]
rate = "100 Mbps"
{nat}

[[application]]
kind = "bulk"
size = "5 MB"
"""


@pytest.mark.parametrize("nat", ["", 'middlebox = "nat"'])
def test_an_address_behind_a_nat_is_announced_in_vain(polypath: Polypath, tmp_path: Path, nat: str) -> None:
    """RFC 8684 section 3.4.1: hosts may announce addresses that their peer cannot reach."""
    scenario = tmp_path / "private.toml"
    scenario.write_text(PRIVATE.replace("{nat}", nat))
    ran = polypath("run", scenario, "--pcap", "hosts", "--out", tmp_path / "out")
    assert ran.returncode == 0, ran.stderr
    capture = {end: tmp_path / "out" / "capture" / f"{end}.pcapng" for end in ENDS}
    private = "10.0.2.1"
    announced = f"tcp.options.mptcp.subtype == 3 && tcp.options.mptcp.ipv4 == {private}"
    assert matching(capture["client"], announced)
    joins = f"tcp.flags.syn == 1 && tcp.flags.ack == 0 && ip.dst == {private} && tcp.options.mptcp.subtype == 1"
    tried, arrived = (matching(capture[end], joins) for end in ENDS)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    (connection,) = summary["connections"]
    assert connection["transport"] == "mptcp"
    assert connection["bytes"] == 5_000_000
    used = [subflow for subflow in connection["subflows"] if subflow["established_s"] is not None]
    if nat:
        # Repeated by the timeout of the handshake, for nobody answers.
        assert len(tried) > 1
        assert arrived == []
        assert [subflow["share"] for subflow in used] == [1]
    else:
        assert len(tried) == len(arrived) == 1
        assert len(used) == 2
