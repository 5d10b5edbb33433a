"""Files over QUIC between programs: ours by the command line, and one of the `noq` crate.

Two network namespaces, two links, one of which goes down in mid-transfer: after so many bytes, not after a time.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..processes import LIMIT_S
from ..slow import slow

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NAMESPACE = ["setpriv", "--pdeathsig=KILL", "unshare", "--user", "--map-root-user", "--net"]
POLYPATH = str(Path(sys.executable).with_name("polypath"))
SERVER = "10.7.0.1:4433"
CLIENT = ("10.7.0.2", "10.7.1.2")
LENGTH = 12_000_007
#: Both paths have carried data by then.
AFTER = 2_000_000

Transfer = Callable[..., dict[str, Any]]


def _unable() -> str | None:
    """Why this machine cannot run these tests."""
    script = "ip link add a0 type veth peer name b0 && tc qdisc add dev a0 root tbf rate 1mbit burst 64kb latency 1ms"
    try:
        tried = subprocess.run([*NAMESPACE, "sh", "-c", f"{script} && ip rule list"], capture_output=True, text=True)
    except OSError as error:
        return str(error)
    return f"no namespace with shaped links: {tried.stderr.strip()}" if tried.returncode else None


@pytest.fixture(scope="module")
def noq() -> str:
    subprocess.run(
        ["cargo", "build", "--quiet", "--locked", "-p", "polypath-live", "--example", "noq"], cwd=ROOT, check=True
    )
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return str(target / "debug" / "examples" / "noq")


@pytest.fixture
def transfer(tmp_path: Path) -> Transfer:
    """Runs a transfer of a random file during which a link goes down; asserts that the file is whole."""
    if reason := _unable():
        pytest.skip(reason)
    content = random.Random(7).randbytes(LENGTH)
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "data.bin").write_bytes(content)

    def run(server: str, client: str, link: int) -> dict[str, Any]:
        served, out = str(tmp_path / "served"), tmp_path / "fetched.bin"
        ours = server == POLYPATH
        settings = {
            "server": [server, "quic", "serve", served, "--listen", SERVER, "--once"]
            if ours
            else [server, "serve", served, SERVER],
            "client": [client, "quic", "fetch", f"{SERVER}/data.bin", "--out", str(out)]
            + [word for address in CLIENT for word in ("--from", address)]
            if client == POLYPATH
            else [client, "fetch", SERVER, "data.bin", str(out), *CLIENT],
            "out": str(out),
            "link": link,
            "after": AFTER,
            "ends": ours,
        }
        (tmp_path / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        done = subprocess.run(
            [*NAMESPACE, sys.executable, str(HERE / "two_namespaces.py"), str(tmp_path / "settings.json")],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        assert found["code"] == 0, found
        assert AFTER <= found["down_at"] < LENGTH, found
        assert out.read_bytes() == content
        return found

    return run


def _by_path(said: str) -> list[int]:
    """Bytes that a side of ours shows of each path."""
    return [int(number.replace(",", "")) for number in re.findall(r"^  path .*?([\d,]+) bytes", said, re.MULTILINE)]


@pytest.mark.parametrize("link", [0, 1])
def test_a_file_is_whole_although_a_link_went_down(transfer: Transfer, link: int) -> None:
    found = transfer(POLYPATH, POLYPATH, link)
    received = _by_path(found["client"])
    assert len(received) == 2
    assert min(received) > 100_000
    assert sum(received) >= LENGTH
    # what came after it came over the other
    assert received[1 - link] > LENGTH - found["down_at"] - 1_000_000
    assert "finished: 'data.bin' (12,000,007 bytes)" in found["server"]


@pytest.mark.parametrize("link", [0, slow(1)])
def test_from_a_noq_server(transfer: Transfer, noq: str, link: int) -> None:
    received = _by_path(transfer(noq, POLYPATH, link)["client"])
    assert len(received) == 2
    assert min(received) > 100_000


@pytest.mark.parametrize("link", [0, slow(1)])
def test_to_a_noq_client(transfer: Transfer, noq: str, link: int) -> None:
    found = transfer(POLYPATH, noq, link)
    assert found["client"] == f"{LENGTH} bytes over 2 paths\n"
    acknowledged = _by_path(found["server"])
    assert len(acknowledged) == 2
    assert min(acknowledged) > 100_000
