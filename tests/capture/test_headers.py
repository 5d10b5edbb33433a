"""What headers say, as Wireshark reads them."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.capture.conftest import captured

from polypath.capture import trace

#: Wireshark's numbers of the subtypes (RFC 8684 section 7.2).
SUBTYPES = {
    0: "MP_CAPABLE",
    1: "MP_JOIN",
    3: "ADD_ADDR",
    4: "REMOVE_ADDR",
    5: "MP_PRIO",
    6: "MP_FAIL",
    7: "MP_FASTCLOSE",
}
FLAGS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR")


def _read(capture: Path, fields: Sequence[str]) -> list[list[str]]:
    command = ["tshark", "-r", str(capture), "-Y", "tcp", "-T", "fields", "-E", "aggregator=+"]
    command += [word for field in fields for word in ("-e", field)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in said.splitlines()]


@pytest.mark.parametrize(
    ("lab", "run", "settings", "named"),
    [
        ("path-manager-mesh", "fullmesh", ["duration=1 s"], {"MP_CAPABLE", "MP_JOIN", "ADD_ADDR"}),
        ("backup", "backup", [], {"MP_CAPABLE", "MP_JOIN"}),
    ],
)
def test_headers_are_as_wireshark_reads_them(
    lab: str, run: str, settings: list[str], named: set[str], tmp_path: Path
) -> None:
    _, files = captured(lab, run, settings, tmp_path)
    (client,) = (path for path in files if path.stem == "client")
    told = trace([client], segments=True).recording
    assert told.table("segments").height == told.table("headers").height
    options = [f"tcp.options.mptcp.{name}" for name in ("subtype", "rawdataack", "rawdataseqno", "datalvllen")]
    options += ["tcp.options.mptcp.datafin.flag", "tcp.options.mss_val"]
    rows = _read(client, ["tcp.flags", "tcp.options.timestamp.tsval", "tcp.options.timestamp.tsecr", *options])
    headers = told.table("headers").to_dicts()
    # A capture at one place has each segment once, in the order of its times.
    assert len(rows) == len(headers) > 70
    zeros: dict[str, set[tuple[bool, int]]] = {"ack": set(), "seq": set()}
    sides = told.table("segments")["side"].to_list()
    seen = set()
    for (flags, value, echo, subtypes, ack, seq, length, fin, mss), header, side in zip(
        rows, headers, sides, strict=True
    ):
        set_flags = [name for bit, name in enumerate(FLAGS) if int(flags, 16) >> bit & 1]
        assert header["flags"] == ", ".join(set_flags)
        assert header["timestamp"] == (int(value) if value else None)
        assert header["timestamp_echo"] == (int(echo) if echo else None)
        kinds = [int(kind) for kind in subtypes.split("+") if kind]
        words = [part.split(" ")[0] for part in header["options"].split("; ")]
        assert [word for word in words if word in SUBTYPES.values()] == [
            SUBTYPES[kind] for kind in sorted(kinds) if kind in SUBTYPES
        ]
        seen |= set(words)
        assert (f"MSS={mss}" in header["options"]) == bool(mss)
        assert header["data_fin"] == ("1" in fin or "True" in fin)
        if 2 in kinds:
            assert (header["data_bytes"] is None) == (not length)
            if length:
                assert header["data_bytes"] == int(length)
            for number, name in ((ack, "ack"), (seq, "seq")):
                offset = header[f"data_{name}"]
                assert (offset is None) == (not number)
                if number:
                    zeros[name].add((side == "client", int(number, 0) - offset))
    assert named <= seen
    # One origin for each direction of the stream.
    assert zeros["ack"]
    for each in zeros.values():
        assert len(each) == len({origin[0] for origin in each})
