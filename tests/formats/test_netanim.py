"""NetAnim: the nodes, and each packet on each link at its time."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from polypath.cli import app
from polypath.formats.pcapng import CaptureError, frames

SCENARIO = """
duration = "2 s"
[host.client]
[host.server.interface.eth0]
address = ["10.0.1.2", "fd00::2"]
[router.r]
[link.near]
ends = ["client", "r"]
rate = "8 Mbps"
delay = "10 ms"
[link.far]
ends = ["r", "server"]
rate = "80 Mbps"
delay = "1 ms"
[[application]]
name = "get"
kind = "fetch"
size = "20 kB"
[[event]]
at = "1 s"
link = "near"
delay = "30 ms"
[[application]]
name = "later"
kind = "fetch"
size = "20 kB"
start = "1.2 s"
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("netanim")
    (folder / "two.toml").write_text(SCENARIO)
    out = folder / "out"
    done = CliRunner().invoke(app, ["run", str(folder / "two.toml"), "--pcap", "links", "--out", str(out)])
    assert done.exit_code == 0, done.output
    return out


@pytest.fixture(scope="module")
def animation(result: Path) -> ElementTree.Element:
    file = result.parent / "anim.xml"
    done = CliRunner().invoke(app, ["export", "netanim", str(result), "-o", str(file)])
    assert done.exit_code == 0, done.output
    return ElementTree.parse(file).getroot()


def test_the_network_is_there(animation: ElementTree.Element) -> None:
    assert animation.attrib == {"ver": "netanim-3.108", "filetype": "animation"}
    names = {node.get("id"): node.get("descr", "") for node in animation.iter("nu")}
    assert sorted(names.values()) == ["client", "r", "server"]
    assert len(list(animation.iter("node"))) == 3
    listed = [
        (each.tag, each.get("n"), [address.text for address in each]) for each in animation if each.tag[:2] == "ip"
    ]
    (server,) = (number for number, name in names.items() if name == "server")
    assert [each for each in listed if each[1] == server] == [
        ("ip", server, ["10.0.1.2"]),
        ("ipv6", server, ["fd00::2"]),
    ]
    assert [link.get("ld") for link in animation.iter("link")] == ["near 8 Mbps 10 ms", "far 80 Mbps 1 ms"]


def test_each_arrival_is_a_packet_with_its_times(animation: ElementTree.Element, result: Path) -> None:
    packets = list(animation.iter("p"))
    arrived = sum(frame.inbound for path in (result / "capture").iterdir() for frame in frames(path))
    assert len(packets) == arrived > 60
    starts = [float(packet.get("fbTx", "nan")) for packet in packets]
    assert starts == sorted(starts)
    nodes = {node.get("descr"): node.get("id") for node in animation.iter("nu")}
    delays = set()
    for packet in packets:
        first, last, begins, ends = (float(packet.get(name, "nan")) for name in ("fbTx", "lbTx", "fbRx", "lbRx"))
        assert first < last < ends
        assert first < begins < ends
        assert last - first == pytest.approx(ends - begins, abs=2e-9)
        near = nodes["client"] in (packet.get("fId"), packet.get("tId"))
        delays.add((near, round(1000 * (begins - first), 3), first > 1.1))
    assert delays == {(True, 10.0, False), (False, 1.0, False), (True, 30.0, True), (False, 1.0, True)}
    assert any("seq" in packet.get("meta-info", "") and " len 14" in packet.get("meta-info", "") for packet in packets)


BRIDGES = """
duration = "100 ms"
[bridging]
[host.client]
[host.server]
[switch.s1]
[switch.s2]
[link.left]
ends = ["client", "s1"]
[link.between]
ends = ["s1", "s2"]
[link.right]
ends = ["s2", "server"]
[[application]]
kind = "ping"
count = 1
"""


def test_frames_of_a_spanning_tree_are_no_ip(tmp_path: Path) -> None:
    (tmp_path / "bridges.toml").write_text(BRIDGES)
    out, file = tmp_path / "out", tmp_path / "anim.xml"
    done = CliRunner().invoke(app, ["run", str(tmp_path / "bridges.toml"), "--pcap", "links", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert CliRunner().invoke(app, ["export", "netanim", str(out), "-o", str(file)]).exit_code == 0
    said = {packet.get("meta-info") for packet in ElementTree.parse(file).getroot().iter("p")}
    assert said == {"BPDU", "ICMP 10.0.0.1 > 10.0.2.2", "ICMP 10.0.2.2 > 10.0.0.1"}


def test_captures_that_are_too_large_or_damaged_are_said(result: Path, tmp_path: Path) -> None:
    copy = tmp_path / "result"
    shutil.copytree(result, copy)
    near = copy / "capture" / "near.pcapng"
    whole = near.read_bytes()

    def said() -> str:
        outcome = CliRunner().invoke(app, ["export", "netanim", str(copy), "-o", str(tmp_path / "x.xml")])
        return str(outcome.exception)

    with near.open("r+b") as file:
        file.truncate(10**12)
    assert re.search(r"capture has 1e\+06 MB to read, more than 500 MB; a result may take 4 GB", said())
    for damage in (whole[:-3], whole + bytes(20), whole[:28] + whole[60:], bytes(200)):
        near.write_bytes(damage)
        assert re.match(re.escape(f"{near}: ") + "(this is no|ends within|a block is|a frame is)", said())
    near.unlink()
    os.mkfifo(near)
    assert said() == f"{near.parent}: near.pcapng is not a plain file"
    assert not (tmp_path / "x.xml").exists()


def test_what_cannot_be_exported_is_said(result: Path, tmp_path: Path) -> None:
    wrong = CliRunner().invoke(app, ["export", "netanm", str(result), "-o", str(tmp_path / "x")])
    assert "unknown format 'netanm'" in str(wrong.exception)
    (tmp_path / "broken.pcapng").write_bytes(b"no capture at all")
    with pytest.raises(CaptureError, match="no capture in pcapng"):
        list(frames(tmp_path / "broken.pcapng"))
    far, near = (result / "capture" / f"{name}.pcapng" for name in ("far", "near"))
    far.rename(tmp_path / "far.pcapng")
    far.write_bytes(near.read_bytes())
    swapped = CliRunner().invoke(app, ["export", "netanim", str(result), "-o", str(tmp_path / "x.xml")])
    assert str(swapped.exception) == f"{far} is of another link: r:eth0 is no end of far"
    far.unlink()
    lacking = CliRunner().invoke(app, ["export", "netanim", str(result), "-o", str(tmp_path / "x.xml")])
    assert "the run needs `--pcap links`" in str(lacking.exception)
    assert list(tmp_path.glob(".*partial")) == []
