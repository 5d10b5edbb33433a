"""Files over QUIC by the command line, over loopback."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from ..processes import LIMIT_S, wait
from .conftest import Polypath

POLYPATH = str(Path(sys.executable).with_name("polypath"))
LENGTH = 3_000_001


@pytest.fixture
def served(tmp_path: Path) -> Path:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "data.bin").write_bytes(random.Random(3).randbytes(LENGTH))
    return folder


@pytest.fixture
def server(served: Path) -> Iterator[subprocess.Popen[str]]:
    command = [POLYPATH, "quic", "serve", str(served), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def _address(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    return server.stdout.readline().removeprefix("listening at ").strip()


def test_a_file_comes_over_two_paths(
    server: subprocess.Popen[str], served: Path, tmp_path: Path, polypath: Polypath
) -> None:
    at, out = _address(server), tmp_path / "copy.bin"
    sources = ["--from", "127.0.0.1", "--from", "127.0.0.2"]
    outcome = polypath("quic", "fetch", f"{at}/data.bin", *sources, "--out", str(out))
    assert outcome.code == 0, outcome.err
    content = (served / "data.bin").read_bytes()
    assert out.read_bytes() == content
    first, second, *paths = outcome.out.splitlines()
    assert first.startswith(f"{out}: 3,000,001 bytes in ")
    assert second == f"sha256 {sha256(content).hexdigest()}"
    assert [line.split()[:2] for line in paths] == [["path", "0"], ["path", "1"]]
    assert server.stdout is not None
    assert "finished: 'data.bin' (3,000,001 bytes)" in server.stdout.readline()
    server.send_signal(signal.SIGINT)
    _, said = server.communicate(timeout=LIMIT_S)
    assert (server.returncode, said) == (130, "interrupted\n")


def test_what_exists_is_not_overwritten(server: subprocess.Popen[str], tmp_path: Path, polypath: Polypath) -> None:
    out = tmp_path / "mine"
    out.write_text("mine", encoding="utf-8")
    outcome = polypath("quic", "fetch", f"{_address(server)}/data.bin", "--out", str(out))
    assert (outcome.code, outcome.err) == (
        2,
        f"polypath: {out} exists; name another file with --out, or remove it\n",
    )
    assert out.read_text(encoding="utf-8") == "mine"


def test_a_file_that_did_not_come_leaves_nothing(
    server: subprocess.Popen[str], tmp_path: Path, polypath: Polypath
) -> None:
    at, out = _address(server), tmp_path / "copy"
    outcome = polypath("quic", "fetch", f"{at}/nothing", "--out", str(out))
    expected = f"polypath: {at} gave up the file after 0 bytes: it has no such file (error 0x1)\n"
    assert (outcome.code, outcome.err) == (2, expected)
    assert not out.exists()


def _unread(process: int) -> int:
    """Bytes that wait in the UDP sockets of a process."""
    links = (str(file.readlink()) for file in Path("/proc", str(process), "fd").iterdir())
    inodes = {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}
    rows = [line.split() for line in Path("/proc/net/udp").read_text(encoding="ascii").splitlines()[1:]]
    return sum(int(row[4].partition(":")[2], 16) for row in rows if row[9] in inodes)


def test_a_server_that_begins_anew_ends_the_connections_of_the_one_before(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(1 << 36)  # a hole, too large to be through before the server is killed
    (tmp_path / "key").write_bytes(bytes(range(32)))

    def served(listen: str) -> subprocess.Popen[str]:
        command = [POLYPATH, "quic", "serve", str(tmp_path / "file"), "--listen", listen]
        command += ["--reset-key", str(tmp_path / "key")]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    with served("127.0.0.1:0") as first:
        at = _address(first)
        command = [POLYPATH, "quic", "fetch", f"{at}/file", "--out", str(tmp_path / "copy")]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as client:
            wait(lambda: (tmp_path / "copy").exists() and (tmp_path / "copy").stat().st_size > 0)
            client.send_signal(signal.SIGSTOP)
            wait(lambda: _unread(client.pid))  # what it acknowledges when it goes on
            first.kill()
            first.wait()
            with served(at) as second:
                assert _address(second) == at
                client.send_signal(signal.SIGCONT)
                _, said = client.communicate(timeout=LIMIT_S)
                second.kill()
    assert client.returncode == 2
    assert f"{at} no longer knows the connection; " in said
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("fetch", "127.0.0.1:4433"),
            "'127.0.0.1:4433' names no file; write ADDRESS:PORT/NAME, for example 127.0.0.1:4433/data.bin",
        ),
        (
            ("fetch", "localhost/x"),
            "the server: 'localhost' is no ADDRESS:PORT; write it like 127.0.0.1:4433 or [::1]:4433",
        ),
        (
            ("fetch", "::1:4433/x"),
            "the server: '::1:4433' is no ADDRESS:PORT; write it like 127.0.0.1:4433 or [::1]:4433",
        ),
        (
            ("fetch", "127.0.0.1:1/x", "--from", "eth0"),
            "--from: 'eth0' is no IP address; write it like 192.0.2.1 or 2001:db8::1",
        ),
        (
            ("fetch", "127.0.0.1:1/x", "--from", "::1"),
            "::1 and the server's 127.0.0.1 are of different families",
        ),
        (
            ("fetch", "127.0.0.1:1/x", "--from", "203.0.113.1"),
            "203.0.113.1 cannot be used: Cannot assign requested address (os error 99)",
        ),
        (("serve", ".", "--listen", "0.0.0.0:0"), "0.0.0.0 stands for every address; name each one to listen at"),
        (
            ("serve", ".", "--listen", "127.0.0.1:0", "--reset-key", "key"),
            "--reset-key key: No such file or directory",
        ),
        (
            ("serve", ".", "--listen", "127.0.0.1:0", "--reset-key", "/dev/null"),
            "--reset-key /dev/null has 0 bytes; it takes 32",
        ),
        (("serve", "nowhere", "--listen", "127.0.0.1:0"), "nowhere: No such file or directory (os error 2)"),
        (
            ("serve", ".", "--listen", "127.0.0.1:70000"),
            "--listen: '127.0.0.1:70000' is no ADDRESS:PORT; write it like 127.0.0.1:4433 or [::1]:4433",
        ),
    ],
)
def test_bad_input_is_one_line(
    words: tuple[str, ...], message: str, polypath: Polypath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = polypath("quic", *words)
    assert (outcome.code, outcome.err) == (2, f"polypath: {message}\n")
    assert not list(tmp_path.iterdir())


def test_an_algorithm_that_does_not_exist_is_named(polypath: Polypath, tmp_path: Path) -> None:
    out = tmp_path / "x"
    outcome = polypath("quic", "fetch", "127.0.0.1:1/x", "--scheduler", "roundrobbin", "--out", str(out))
    assert outcome.code == 2
    assert "roundrobbin" in outcome.err
    assert outcome.err.count("\n") == 1
