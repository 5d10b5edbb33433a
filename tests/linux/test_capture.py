"""What captures of the kernel tell is what the kernel counted."""

from __future__ import annotations

import bisect
import subprocess
from pathlib import Path

import pytest

from polypath.capture import trace
from polypath.cli import jobs
from polypath.engines import Options
from polypath.engines.linux import LinuxEngine
from polypath.engines.linux.kernel import KernelError, find
from polypath.engines.linux.kernel.make import supported
from polypath.results import metrics

from ..slow import others_slow

#: Runs that close their connections: of others the kernel's last sample is older than the capture's end.
LABS: tuple[tuple[str, str, list[str]], ...] = (
    ("aggregation", "mptcp", []),
    ("aggregation", "tcp", []),
    ("backup", "backup", []),
    ("backup", "normal", []),
    ("delay-classes", "", ["duration=8 s", "application.iperf3.duration=6 s"]),
    ("failover", "busy-5", ["duration=20 s", "event.1.at=1 s", "application.transfer.size=20 MB"]),
    ("path-manager-mesh", "fullmesh", ["duration=6 s", "application.iperf.duration=1 s"]),
    ("path-manager-one-path", "ndiffports", ["duration=6 s", "application.iperf.duration=3 s"]),
    ("path-manager-two-paths", "fullmesh", ["duration=6 s", "application.iperf.duration=2 s"]),
    ("path-mtu", "tcp-told", []),
    ("scheduler-http", "rtt-1MB", []),
    ("scheduler-reqres", "rr", []),
    ("window-sweep", "", ["duration=8 s", "application.iperf.size=400 kB"]),
)
#: Those in which the kernel reinjects. Its own counts (MPTCP_INFO's bytes_retrans, MPTcpExtMPTCPRetrans) are another
#: figure: what its timer handed to any subflow, whether it left or not, without what is queued again when a subflow is
#: closed (net/mptcp/protocol.c, __mptcp_retrans, __mptcp_close_ssk).
REINJECTING = ("backup", "failover")


#: Those that are short: two subflows and four, one that takes over, a path that dies, reports of routers.
SHORT = ("backup", "delay-classes", "path-manager-mesh", "path-mtu", "scheduler-reqres")


@pytest.mark.parametrize(
    ("lab", "run", "settings"), others_slow(LABS, *(each for each in LABS if each[0] in SHORT and each[1] != "normal"))
)
def test_a_capture_tells_what_the_kernel_counted(lab: str, run: str, settings: list[str], tmp_path: Path) -> None:
    try:
        supported()
        find()
    except KernelError as error:
        pytest.skip(str(error))
    job = jobs.of_target(lab, [run] if run else [], settings, None)[0]
    known = LinuxEngine().run(job.points[0].plan, Options("hosts", tmp_path))
    told = trace(sorted(tmp_path.glob("*.pcapng"))).recording
    copies = {path.stem: _copies(path) for path in tmp_path.glob("*.pcapng")}
    for path in tmp_path.glob("*.pcapng"):
        path.unlink()
    key = ("source", "source_port", "destination", "destination_port")
    found = {tuple(row[name] for name in key): row for row in told.table("subflow_ends").iter_rows(named=True)}
    counted = list(known.table("subflow_ends").iter_rows(named=True))
    assert len(found) == len(counted)
    for row in counted:
        other = found[tuple(row[name] for name in key)]
        for side in ("client", "server"):
            assert other[f"{side}_sent_bytes"] == row[f"{side}_sent_bytes"]
            assert other[f"{side}_retransmitted_bytes"] == row[f"{side}_retransmitted_bytes"]
            assert row[f"{side}_received_bytes"] == other[f"{side}_received_bytes"]
    (one,), (two,) = metrics.connections(known), metrics.connections(told)
    assert (two.transport, two.bytes) == (one.transport, one.bytes)
    assert metrics.goodput(told, two) == pytest.approx(metrics.goodput(known, one), rel=0.01)
    for (source, port, destination, other_port), other in found.items():
        for side, way in (
            ("client", (source, port, destination, other_port)),
            ("server", (destination, other_port, source, port)),
        ):
            assert other[f"{side}_reinjected_bytes"] == copies[side].get(way, 0)
    reinjected = told.table("subflow_ends").select("client_reinjected_bytes", "server_reinjected_bytes")
    assert (reinjected.sum_horizontal().sum() > 0) == (lab in REINJECTING)


Way = tuple[str, int, str, int]


def _copies(capture: Path) -> dict[Way, int]:
    """Bytes in new sequence numbers that another subflow carried before, of each direction of a subflow.

    As Wireshark reads the options, without anything of Polypath.
    """
    fields = ["ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "tcp.seq", "tcp.len"]
    fields += [f"tcp.options.mptcp.{name}" for name in ("rawdataseqno", "subflowseqno", "datalvllen")]
    command = ["tshark", "-r", str(capture), "-Y", "tcp.len > 0", "-T", "fields"]
    command += [word for field in fields for word in ("-e", field)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    packets: list[tuple[Way, int, int]] = []
    mappings: dict[Way, dict[int, tuple[int, int]]] = {}
    for line in said.splitlines():
        source, port, destination, other_port, begins, counts, *dss = line.split("\t")
        way = (source, int(port), destination, int(other_port))
        packets.append((way, int(begins), int(counts)))
        own = mappings.setdefault(way, {})
        if all(dss):
            data, relative, size = (int(word, 0) for word in dss)
            own[relative] = (data, size)
    for own in mappings.values():  # MP_CAPABLE maps the first bytes without naming their number
        if own and 1 not in own:
            first = min(own)
            own[1] = (own[first][0] - (first - 1), first - 1)
    starts = {way: sorted(own) for way, own in mappings.items()}
    found = dict.fromkeys(mappings, 0)
    highest: dict[Way, int] = dict.fromkeys(mappings, 1)
    sent: dict[Way, list[tuple[int, int]]] = {way: [] for way in mappings}
    for way, seq, length in packets:
        own = mappings[way]
        at, end = max(seq, highest[way]), seq + length
        highest[way] = max(end, highest[way])
        while at < end and (place := bisect.bisect_right(starts[way], at)):
            start = starts[way][place - 1]
            data, size = own[start]
            until = min(end, start + size)
            if until <= at:
                break
            begin, beyond = data + at - start, data + until - start
            for other, ranges in sent.items():
                if other != way and (other[3] == way[3] or other[1] == way[1]):  # the port of the server
                    found[way] += _shared(ranges, begin, beyond)
            _add(sent[way], begin, beyond)
            at = until
    return found


def _shared(ranges: list[tuple[int, int]], begin: int, end: int) -> int:
    """How much of a range is in ranges that are ascending and apart."""
    shared = 0
    for low, high in reversed(ranges):
        if high <= begin:
            break
        shared += max(0, min(end, high) - max(begin, low))
    return shared


def _add(ranges: list[tuple[int, int]], begin: int, end: int) -> None:
    at = bisect.bisect_left(ranges, (begin, end))
    if at and ranges[at - 1][1] >= begin:
        at -= 1
        begin = ranges[at][0]
    while at < len(ranges) and ranges[at][0] <= end:
        end = max(end, ranges.pop(at)[1])
    ranges.insert(at, (begin, end))
