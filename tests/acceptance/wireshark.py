"""tshark's view of a capture: one row a frame, and what it complains of."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

_CHECKED = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE")

_FIELDS = (
    "frame.number",
    "tcp.stream",
    "tcp.srcport",
    "tcp.seq",
    "tcp.payload",
    "tcp.flags.syn",
    "tcp.flags.ack",
    "tcp.options.mptcp.subtype",
    "tcp.options.mptcp.rawdataseqno",
    "tcp.options.mptcp.subflowseqno",
    "tcp.options.mptcp.datalvllen",
    "tcp.options.mptcp.datafin.flag",
    "tcp.options.mptcp.sendkey",
    "tcp.options.mptcp.sendrand",
    "tcp.options.mptcp.sendtrunchmac",
    "tcp.options.mptcp.sendhmac",
    "tcp.options.mptcp.recvtok",
)


@dataclass(frozen=True)
class Frame:
    """A TCP segment; `field` gives tshark's values of a field, several where it stands in several options."""

    number: int
    stream: int
    source_port: int
    #: Relative to the SYN's.
    seq: int
    payload: bytes
    fields: dict[str, list[str]]

    def field(self, name: str) -> list[str]:
        return self.fields[name]

    def mptcp(self, name: str) -> list[str]:
        return self.fields[f"tcp.options.mptcp.{name}"]

    @property
    def syn(self) -> bool:
        return self.field("tcp.flags.syn") == ["1"]


def tshark(capture: Path, *arguments: str) -> str:
    ran = subprocess.run(
        ["tshark", "-r", str(capture), *_CHECKED, *arguments], capture_output=True, text=True, check=True
    )
    return ran.stdout


def matching(capture: Path, expression: str) -> list[int]:
    """The numbers of the frames that match a display filter."""
    return [int(number) for number in tshark(capture, "-Y", expression, "-T", "fields", "-e", "frame.number").split()]


def frames(capture: Path) -> list[Frame]:
    """Every TCP segment of a capture."""
    columns = [argument for field in _FIELDS for argument in ("-e", field)]
    read = []
    for line in tshark(capture, "-Y", "tcp", "-T", "fields", "-E", "separator=|", *columns).splitlines():
        values = [value.split(",") if value else [] for value in line.split("|")]
        fields = dict(zip(_FIELDS, values, strict=True))
        number, stream, port, seq, payload, *_ = values
        read.append(
            Frame(int(number[0]), int(stream[0]), int(port[0]), int(seq[0]), bytes.fromhex("".join(payload)), fields)
        )
    return read


def complaints(capture: Path) -> set[str]:
    """What the expert information says, each kind once, without numbers."""
    said = tshark(capture, "-Y", "_ws.expert", "-T", "fields", "-E", "aggregator=|", "-e", "_ws.expert.message")
    return {message.split(" (#")[0] for message in said.replace("\n", "|").split("|") if message}
