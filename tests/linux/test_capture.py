"""What captures of the kernel tell is what the kernel counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from polypath.capture import trace
from polypath.cli import jobs
from polypath.engines import Options
from polypath.engines.linux import LinuxEngine
from polypath.engines.linux.kernel import KernelError, find
from polypath.engines.linux.kernel.make import supported
from polypath.results import metrics

#: Runs that close their connections: of others the kernel's last sample is older than the capture's end.
LABS: tuple[tuple[str, str, list[str]], ...] = (
    ("aggregation", "mptcp", []),
    ("aggregation", "tcp", []),
    ("backup", "backup", []),
    ("backup", "normal", []),
    ("path-manager-mesh", "fullmesh", []),
    ("path-manager-one-path", "ndiffports", []),
    ("path-manager-two-paths", "fullmesh", []),
    ("path-mtu", "tcp-told", []),
    ("scheduler-http", "rtt-1MB", []),
    ("scheduler-reqres", "rr", []),
)
#: Linux counts a FIN among the bytes that it received (net/ipv4/tcp_input.c, tcp_rcv_nxt_update).
FIN = 1


@pytest.mark.parametrize(("lab", "run", "settings"), LABS)
def test_a_capture_tells_what_the_kernel_counted(lab: str, run: str, settings: list[str], tmp_path: Path) -> None:
    try:
        supported()
        find()
    except KernelError as error:
        pytest.skip(str(error))
    (job,) = jobs.of_target(lab, [run], settings, None)
    known = LinuxEngine().run(job.points[0].plan, Options("hosts", tmp_path))
    told = trace(sorted(tmp_path.glob("*.pcapng"))).recording
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
            assert 0 <= row[f"{side}_received_bytes"] - other[f"{side}_received_bytes"] <= FIN
    (one,), (two,) = metrics.connections(known), metrics.connections(told)
    assert (two.transport, two.bytes) == (one.transport, one.bytes)
    assert metrics.goodput(told, two) == pytest.approx(metrics.goodput(known, one), rel=0.01)
