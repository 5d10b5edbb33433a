"""Our Multipath TCP against the machine's own Linux, over a TUN interface: right on the wire if the kernel says so.

| what | test |
|---|---|
| MP_CAPABLE and MP_JOIN from us, data both ways, DATA_FIN both ways | `test_we_connect_and_join` |
| MP_CAPABLE and joins from the kernel, our ADD_ADDR | `test_the_kernel_connects_and_joins_what_we_announce` |
| DSS checksums | `test_checksums` |
| MP_PRIO | `test_a_backup_carries_no_more` |
| failover | `test_a_path_that_goes_dark` |
| REMOVE_ADDR | `test_an_address_that_goes` |

No test depends on the speed of the machine. Data waits for the second subflow. An action waits until its address has
carried ENOUGH. HELD bytes wait for the action. The kernel closes its direction only after its counters show the action.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NAMESPACE = ["unshare", "--user", "--map-root-user", "--net"]

#: Bytes before an action, on both subflows, and after it.
SEND = 500_000
HELD = 2_500_000
#: From the kernel; its scheduler gives one subflow 64 kB at a time.
REPLY = 300_000
#: Each established subflow gets an initial window of ten segments from the first write (RFC 6928).
ENOUGH = 10_000

Run = Callable[..., dict[str, Any]]


def _unable() -> str | None:
    """Why this machine cannot run these tests."""
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "/dev/net/tun cannot be opened"
    if not Path("/proc/sys/net/mptcp/enabled").exists():
        return "the machine's kernel has no MPTCP"
    tried = subprocess.run([*NAMESPACE, "ip", "mptcp", "limits"], capture_output=True, text=True)
    return f"no namespace with MPTCP: {tried.stderr.strip()}" if tried.returncode else None


@pytest.fixture(scope="module")
def binary() -> Path:
    if reason := _unable():
        pytest.skip(reason)
    subprocess.run(
        ["cargo", "build", "--quiet", "--locked", "-p", "polypath-live", "--example", "tun"], cwd=ROOT, check=True
    )
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "debug" / "examples" / "tun"


@pytest.fixture
def run(binary: Path, tmp_path: Path) -> Run:
    """Runs a connection between us and the kernel, each with two addresses."""

    def connection(
        role: str, *, send: int = SEND, reply: int = REPLY, awaits: dict[str, int] | None = None, **driver: Any
    ) -> dict[str, Any]:
        settings = {
            "binary": str(binary),
            "kernel": {
                "addresses": ["10.9.0.1", "10.9.1.1"],
                "port": 5001,
                "peer": "10.9.0.2",
                "send": reply,
                "awaits": awaits or {},
                "path_manager": [["limits", "set", "subflows", "4", "add_addr_accepted", "4"]],
            },
            "driver": {
                "role": role,
                "local": ["10.9.0.2", "10.9.1.2"],
                "remote": "10.9.0.1:5001",
                "send": send,
                "held": 0,
                "limit_ms": 240_000,
                "seed": 7,
                **driver,
            },
        }
        path = tmp_path / "settings.json"
        path.write_text(json.dumps(settings))
        done = subprocess.run(
            [*NAMESPACE, sys.executable, str(HERE / "namespace.py"), str(path)],
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        assert found["ours"]["ended"] == "finished", found
        assert found["ours"]["multipath"]
        assert found["ours"]["received"] == reply
        assert found["ours"]["counters"].get("PayloadMismatch", 0) == 0
        assert found["ours"]["counters"].get("TcpInCsumErrors", 0) == 0
        assert found["kernel"]["whole"], found["kernel"]
        assert not found["kernel"]["error"]
        return found

    return connection


def _by_address(found: dict[str, Any]) -> dict[str, int]:
    """Bytes that the kernel acknowledged, by our address."""
    acked: dict[str, int] = {}
    for subflow in found["ours"]["subflows"]:
        address = subflow["local"].split(":")[0]
        acked[address] = acked.get(address, 0) + subflow["acked"]
    return acked


def test_we_connect_and_join(run: Run) -> None:
    found = run("connect", subflows=2, awaits={"MPJoinAckRx": 1})
    kernel = found["kernel"]["counters"]
    assert kernel["MPCapableSYNRX"] == kernel["MPCapableACKRX"] == 1
    assert kernel["MPJoinSynRx"] == kernel["MPJoinAckRx"] == 1
    assert not {"MPFallbackTokenInit", "MPRstRx", "MPRstTx", "DSSNotMatching", "DSSNoMatchTCP"} & kernel.keys()
    acked = _by_address(found)
    assert sum(acked.values()) >= SEND
    assert min(acked.values()) >= ENOUGH
    assert all(subflow["established"] and subflow["received"] > 0 for subflow in found["ours"]["subflows"])


def test_the_kernel_connects_and_joins_what_we_announce(run: Run) -> None:
    found = run("accept", subflows=2, awaits={"MPJoinSynAckRx": 1, "EchoAddTx": 1})
    ours, kernel = found["ours"]["counters"], found["kernel"]["counters"]
    # repeated if the kernel's echo takes longer than our timer
    assert kernel["AddAddr"] == ours["MPTcpExtAddAddrTx"] >= 1
    assert kernel["EchoAddTx"] == ours["MPTcpExtEchoAdd"] >= 1
    assert kernel["MPJoinSynAckRx"] >= 1
    assert ours["MPTcpExtMPJoinAckRx"] == kernel["MPJoinSynAckRx"]


@pytest.mark.parametrize("role", ["connect", "accept"])
def test_checksums(run: Run, role: str) -> None:
    found = run(role, checksum=True)
    assert "DataCsumErr" not in found["kernel"]["counters"]
    assert found["ours"]["counters"].get("MPTcpExtDataCsumErr", 0) == 0


def _acting(address: str, deed: str) -> dict[str, Any]:
    action = {"address": address, "acked": ENOUGH, "deed": deed}
    return {"subflows": 2, "held": HELD, "actions": [action]}


def test_a_backup_carries_no_more(run: Run) -> None:
    found = run("connect", awaits={"MPPrioRx": 1}, **_acting("10.9.1.2", "backup"))
    assert found["kernel"]["counters"]["MPPrioRx"] == 1
    acked = _by_address(found)
    assert ENOUGH <= acked["10.9.1.2"] <= SEND
    assert acked["10.9.0.2"] >= HELD


@pytest.mark.parametrize("dark", ["10.9.0.2", "10.9.1.2"])
def test_a_path_that_goes_dark(run: Run, dark: str) -> None:
    # the kernel accepts no join once it has closed its direction
    found = run("connect", awaits={"MPJoinAckRx": 1}, **_acting(dark, "black-hole"))
    acked = _by_address(found)
    (other,) = acked.keys() - {dark}
    assert ENOUGH <= acked[dark] <= SEND
    assert acked[other] >= HELD
    assert found["ours"]["counters"]["TcpExtTCPTimeouts"] >= 1


def test_an_address_that_goes(run: Run) -> None:
    found = run("connect", awaits={"RmAddr": 1}, **_acting("10.9.1.2", "remove"))
    assert found["kernel"]["counters"]["RmAddr"] == 1
