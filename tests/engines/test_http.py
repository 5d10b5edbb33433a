"""HTTP/1.1 in captures, and payload that is nothing but payload."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import polypath
from polypath import Scenario

TWO_PATHS = """
duration = "10 s"
[defaults]
checksum = true
[host.client]
[host.server]
[link.a]
ends = ["client", "server"]
rate = "20 Mbps"
delay = "10 ms"
loss = "2 %"
[link.b]
ends = ["client", "server"]
rate = "10 Mbps"
delay = "20 ms"
"""


#: What was lost comes behind what was sent later.
IN_ORDER = ("-o", "tcp.reassemble_out_of_order:TRUE")
#: Over several subflows a body is in no subflow as a whole.
HEADS = ("-o", "http.desegment_body:FALSE")


def captured(tmp_path: Path, applications: str) -> Path:
    polypath.run(Scenario.parse(TWO_PATHS + applications, "http"), captures="hosts", directory=tmp_path)
    return tmp_path / "client.pcapng"


def tshark(capture: Path, only: str, *fields: str, options: Sequence[str] = IN_ORDER) -> list[list[str]]:
    """The fields of the frames that a display filter lets through."""
    columns = [word for field in fields for word in ("-e", field)]
    ran = subprocess.run(
        ["tshark", "-n", *options, "-r", str(capture), "-Y", only, "-T", "fields", *columns],
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.split("\t") for line in ran.stdout.splitlines()]


def test_a_fetch_is_http(tmp_path: Path) -> None:
    capture = captured(tmp_path, '[[application]]\nkind = "fetch"\ntransport = "tcp"\nsize = "100 kB"\ncount = 3\n')
    requests = tshark(capture, "http.request", "http.request.method", "http.request.uri", "http.host")
    assert requests == [["GET", "/file", "server"]] * 3
    fields = ("http.response.code", "http.content_length", "http.content_type")
    assert tshark(capture, "http.response", *fields) == [["200", "100000", "application/octet-stream"]] * 3


def test_heads_are_there_over_several_subflows(tmp_path: Path) -> None:
    applications = """
[[application]]
kind = "fetch"
size = "300 kB"
stack = { path_manager = "fullmesh" }
"""
    capture = captured(tmp_path, applications)
    assert len(tshark(capture, "http.request", "frame.number", options=HEADS)) == 1
    assert ["200"] in tshark(capture, "http.response", "http.response.code", options=HEADS)


def test_video_asks_over_http(tmp_path: Path) -> None:
    applications = '[[application]]\nkind = "video"\ntransport = "tcp"\nlength = "8 s"\nsegment = "2 s"\n'
    paths = tshark(captured(tmp_path, applications), "http.request", "http.request.uri")
    assert [path.rpartition("/")[2] for (path,) in paths] == ["0", "1", "2", "3"]
    assert paths[0] == ["/0/0"]


@pytest.mark.parametrize("tls", ["1.2", "1.3"])
def test_tls_shows_no_heads(tmp_path: Path, tls: str) -> None:
    applications = f'[[application]]\nkind = "fetch"\ntransport = "tcp"\nsize = "10 kB"\ntls = "{tls}"\n'
    assert not tshark(captured(tmp_path, applications), "http", "frame.number")


def test_payload_is_no_other_protocol(tmp_path: Path) -> None:
    kinds = (
        'kind = "bulk"\nsize = "1 MB"\ntransport = "tcp"',
        'kind = "bulk"\nsize = "1 MB"\nreverse = true',
        'kind = "stream"\nrate = "2 Mbps"\nduration = "1 s"\nport = 9999',
        'kind = "request-response"\ncount = 40\nrequest = "20 B"\nresponse = "300 B"\nport = 40000',
        'kind = "cbr"\nrate = "1 Mbps"\nduration = "1 s"\nport = 6001',
    )
    capture = captured(tmp_path, "".join(f"[[application]]\n{kind}\n" for kind in kinds))
    protocols = {name for row in tshark(capture, "tcp or udp", "frame.protocols") for name in row[0].split(":")}
    assert protocols == {"eth", "ethertype", "ip", "tcp", "udp", "mptcp", "data"}
