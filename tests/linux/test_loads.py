"""Videos and pages on the kernel, beside the simulator, and what their programs say of wrong bytes."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from polypath import measures
from polypath.engines import EngineError, get
from polypath.engines.linux.engine import translate
from polypath.engines.namespaces import applications, logs, programs
from polypath.plan.types import VideoWork
from polypath.results import Recording
from polypath.scenario import Scenario

from ..loads import check_page, check_player
from ..processes import wait

HERE = Path(__file__).parent
COMMAND = (sys.executable, "-m", "polypath")
Run = Callable[..., Recording]
Load = Callable[..., Scenario]

#: Figures of one scenario on both engines (assurance/records/fidelity.md).
AGREEMENT = 0.05

RULES = {
    "throughput": "throughput",
    "buffer": '{ kind = "buffer", reservoir = "1500 ms", cushion = "3 s" }',
    "fixed": '{ kind = "fixed", representation = 3 }',
}


@pytest.mark.parametrize("transport", ["tcp", "mptcp"])
@pytest.mark.parametrize("rule", RULES)
def test_a_player_keeps_its_rule_and_the_simulators_rate(linux: Run, scenario: Load, rule: str, transport: str) -> None:
    settings = (f"application.film.rule={RULES[rule]}", f"application.film.transport={transport}")
    recording = linux("video", *settings)
    rows = check_player(recording)
    assert (len({row["representation"] for row in rows}) > 2) == (rule != "fixed")
    simulated = get("sim").run(scenario("video", *settings).plan(None))
    check_player(simulated)
    if (rule, transport) == ("throughput", "mptcp"):
        assert linux("video", *settings).metadata.recording_sha256 == recording.metadata.recording_sha256
    _agree(recording, simulated, "video_rate", "film")


@pytest.mark.parametrize("transport", ["tcp", "mptcp"])
@pytest.mark.parametrize("connections", [1, 6])
def test_a_page_loads_in_its_order_and_the_simulators_time(
    linux: Run, scenario: Load, connections: int, transport: str
) -> None:
    settings = (f"application.news.connections={connections}", f"application.news.transport={transport}")
    recording = linux("page", *settings)
    objects = check_page(recording)
    assert len({row["application"] for row in objects.values()}) == connections
    simulated = get("sim").run(scenario("page", *settings).plan(None))
    check_page(simulated)
    if (connections, transport) == (6, "mptcp"):
        assert linux("page", *settings).metadata.recording_sha256 == recording.metadata.recording_sha256
    name = "news" if connections == 1 else "news-1"
    _agree(recording, simulated, "page_load", name)
    _agree(recording, simulated, "first_object", name)


def _agree(linux: Recording, sim: Recording, measure: str, connection: str) -> None:
    found, expected = (measures.REGISTRY[measure](each, {"connection": connection}) for each in (linux, sim))
    assert found == pytest.approx(expected, rel=AGREEMENT)


def test_what_does_not_come_in_time_is_asked_for_and_open(linux: Run) -> None:
    recording = linux("video", "duration=8300 ms")
    *_, last = recording.table("chunks").to_dicts()
    assert (last["arrived_ns"], last["played_ns"]) == (None, None)
    assert recording.table("requests").to_dicts()[-1]["delay_ns"] is None
    page = linux("page", "duration=300 ms").table("objects").to_dicts()
    assert 0 < sum(row["arrived_ns"] is None for row in page) < len(page) < 15


@pytest.mark.usefixtures("linux")
@pytest.mark.parametrize(
    ("name", "figures"), [("video", ("video", "first picture")), ("page", ("page load", "first object"))]
)
def test_compare_sets_the_engines_side_by_side(name: str, figures: tuple[str, str]) -> None:
    words = ["compare", str(HERE / f"{name}.toml"), "--engines", "sim,linux"]
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for figure in figures:
        (row,) = (line for line in done.stdout.splitlines() if f" {figure}, " in line)
        assert float(row.split()[-1]) == pytest.approx(1, abs=AGREEMENT)


def test_objects_that_a_server_cannot_tell_apart_are_refused(scenario: Load) -> None:
    data = scenario("page").plan(None).data
    objects = data["applications"][0]["work"]["objects"]
    objects[3]["path"] = objects[4]["path"]
    with pytest.raises(EngineError, match=r"objects 'app.js' and 'lib.js' of 'news-1' differ, .*/lib.js; give one"):
        translate(data)
    objects[3]["size_bytes"] = objects[4]["size_bytes"]
    translate(data)


def test_ten_thousand_objects_are_a_file(scenario: Load) -> None:
    data = scenario("page").plan(None).data
    made = [
        {"name": f"{place}", "path": f"/{place}", "size_bytes": place, "after": [0] if place else [], "think_ns": 0}
        for place in range(10_000)
    ]
    data["applications"][0]["work"]["objects"] = made
    _, files = translate(data)
    assert files["page-0"].splitlines()[9_999] == "9999 0 /9999 0"
    assert len(files["page-0-ends"].splitlines()) == 6
    assert max(map(len, files["job"].splitlines())) < 2_000


WORK: VideoWork = {
    "kind": "video",
    "segment_ns": 1_000_000_000,
    "segments": 2,
    "rates_bps": [8_000, 16_000],
    "buffer_ns": 9_000_000_000,
    "startup_ns": 1_000_000_000,
    "rule": {"kind": "fixed", "representation": 1},
}
ANSWER = (
    b"HTTP/1.1 200 OK\r\nServer: polypath\r\nContent-Type: application/octet-stream\r\nContent-Length: 2000\r\n\r\n"
)
REQUEST = b"GET /%s HTTP/1.1\r\nHost: server\r\nUser-Agent: polypath\r\nAccept: */*\r\n\r\n"


@contextmanager
def _guest(folder: Path, side: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """One end of a film on the loopback interface."""
    options = {"side": side, "transport": "tcp", "destination": "127.0.0.1", "port": port, "log": str(folder / side)}
    words = [f"{name}={value}" for name, value in (options | applications.video(WORK)).items()]
    with subprocess.Popen([programs.build(), "app", *words]) as process:
        try:
            yield process
        finally:
            process.terminate()


def _payload(offset: int, length: int) -> bytes:
    """What the server of application 0 sends (crates/wire/src/payload.rs)."""
    found = bytearray()
    for index in range(offset // 8, (offset + length) // 8 + 1):
        x = 1 ^ (index * 0x9E3779B97F4A7C15 % 2**64)
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
        found += (((x ^ x >> 31) & 0x0F0F0F0F0F0F0F0F) + 0x6161616161616161).to_bytes(8, "little")
    return bytes(found[offset % 8 :][:length])


@pytest.mark.parametrize("wrong", [None, 0, 17, len(ANSWER) - 1, len(ANSWER), 1_500, len(ANSWER) + 1_999])
def test_a_client_sees_a_wrong_byte(tmp_path: Path, wrong: int | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        with _guest(tmp_path, "client", listener.getsockname()[1]) as process:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(60)
                for number in range(2):
                    asked = connection.recv(1000)
                    assert asked == REQUEST % f"1/{number}".encode()
                    length = len(ANSWER) + 2_000
                    answer = bytearray(ANSWER + _payload(number * length + len(ANSWER), 2_000))
                    if wrong is not None and number:
                        answer[wrong] ^= 1
                    connection.sendall(answer)
                assert connection.recv(1000) == b""
            assert process.wait(60) == 0
    log = logs.read_app(tmp_path / "client")
    assert len(log.chunks) == len(log.requests) == 2
    assert (log.wrong_at is None) == (wrong is None)
    # of what was read at once
    assert log.wrong_at is None or len(ANSWER) + 2_000 <= log.wrong_at <= len(ANSWER) + 2_000 + (wrong or 0)


def _connection(port: int) -> socket.socket | None:
    try:
        return socket.create_connection(("127.0.0.1", port), 60)
    except ConnectionRefusedError:
        return None


@pytest.mark.parametrize(
    ("request_", "right"),
    [
        (REQUEST % b"0/0", True),
        (REQUEST % b"1/0", True),
        (REQUEST % b"2/0", False),
        (REQUEST % b"0/1", False),
        (REQUEST % b"0/00", False),
        (REQUEST % b"0/0\0", False),
        (REQUEST.replace(b"*/*", b"*/+") % b"0/0", False),
        (REQUEST.replace(b"GET", b"PUT") % b"0/0", False),
        (b"x" * 20_000, False),
    ],
)
def test_a_server_sees_a_request_that_is_none(tmp_path: Path, request_: bytes, right: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with _guest(tmp_path, "server", port) as process:
        client = wait(lambda: _connection(port))
        assert client is not None
        with client:
            client.sendall(request_)
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass
        assert process.wait(60) == 0
    assert (logs.read_app(tmp_path / "server").wrong_at is None) == right
