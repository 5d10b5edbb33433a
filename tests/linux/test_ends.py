"""How an end of an application's connection ends, on the loopback interface: no kernel of our own is needed."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from polypath.engines.namespaces import logs, programs

from ..processes import LIMIT_S, wait

#: Both directions are closed: last-ack, closing.
CLOSED = (9, 11)


@contextmanager
def _client(log: Path, port: int, **options: object) -> Iterator[subprocess.Popen[bytes]]:
    given = {"side": "client", "transport": "tcp", "destination": "127.0.0.1", "port": port, "log": log} | options
    with subprocess.Popen([programs.build(), "app", *(f"{name}={value}" for name, value in given.items())]) as process:
        try:
            yield process
        finally:
            process.terminate()


@contextmanager
def _accepted(log: Path, **options: object) -> Iterator[tuple[subprocess.Popen[bytes], socket.socket]]:
    """A client, and its connection's other end, which takes little at a time."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        listener.settimeout(LIMIT_S)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with _client(log, listener.getsockname()[1], **options) as process:
            peer, _ = listener.accept()
            with peer:
                peer.settimeout(LIMIT_S)
                yield process, peer


def test_a_transfer_in_both_directions_ends_once_its_bytes_have_arrived(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with _accepted(log, work="bulk", size=30_000, back=0, sample=10_000_000) as (process, peer):
        peer.shutdown(socket.SHUT_WR)
        wait(lambda: process.poll() is not None or sum(s.state in CLOSED for s in logs.read_app(log).subflows) > 3)
        assert process.poll() is None
        while peer.recv(30_000):
            pass
        assert process.wait(LIMIT_S) == 0
    found = logs.read_app(log)
    last = found.subflows[-1]
    assert (found.state, last.sent - last.retransmitted, last.received) == ("finished", 30_000, 0)


@pytest.mark.parametrize("work", ["request-response", "back-and-forth"])
def test_a_request_without_an_answer_is_told(tmp_path: Path, work: str) -> None:
    log = tmp_path / "log"
    with _accepted(log, work=work, request=10, response=20, count=3) as (process, peer):
        peer.recv(10)
        peer.sendall(bytes(20))
        peer.recv(10)
        process.terminate()
        assert process.wait(LIMIT_S) == 0
    (answered, unanswered) = logs.read_app(log).requests
    assert answered[1] >= 0
    assert (unanswered[0] > answered[0], unanswered[1]) == (True, -1)


def test_an_end_that_is_killed_has_told_when_its_bytes_came(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with _accepted(log, work="bulk", size=0, back=-1, sample=10_000_000, reverse=1) as (process, peer):
        peer.sendall(bytes(100))
        wait(lambda: sum(each.delivered == 100 for each in logs.read_app(log).connections) > 1)
        process.kill()
    found = logs.read_app(log)
    assert (found.state, found.received) == (None, 100)
    assert found.first_byte_ns is not None
    assert found.first_byte_ns == found.last_byte_ns
