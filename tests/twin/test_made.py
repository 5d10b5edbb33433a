"""Twins: what runs as the capture did."""

import json
from pathlib import Path

import pytest

from polypath import Scenario, capture, run
from polypath.capture import CaptureError
from polypath.results import metrics
from polypath.twin.made import Twin, make

from .conftest import Captured


def figures(made: Twin) -> dict[str, tuple[float, float]]:
    return {row.figure: (row.capture or 0.0, row.twin or 0.0) for row in made.rows if row.path == "all"}


@pytest.mark.parametrize("congestion", ["cubic", "reno", "bbr"])
def test_the_controller_is_found(captured: Captured, congestion: str) -> None:
    made = make(captured("client", congestion=congestion, duration="12 s", work='kind = "bulk"\nreverse = true'))
    assert made.trial.choice.congestion == congestion
    assert made.trial.distance < 0.05
    for mine, twin in figures(made).values():
        assert twin == pytest.approx(mine, rel=0.05)


def test_the_scenario_does_what_the_capture_shows(captured: Captured) -> None:
    made = make(captured("client", "server"))
    connection = metrics.connections(run(Scenario.parse(made.text, "twin.toml")))[0]
    assert connection.bytes == pytest.approx(6 * 8e6 / 8 * 1448 / 1514, rel=0.05)
    assert made.data()["paths"][0]["rate_bps"]["value"] == pytest.approx(8e6, rel=0.002)
    json.dumps(made.data(), allow_nan=False)


def test_requests_are_asked_again(captured: Captured) -> None:
    work = 'kind = "request-response"\nrequest = "300 B"\nresponse = "50 kB"\ncount = 7\n'
    work += 'interval = "250 ms"\nthink = "40 ms"'
    for hosts in (("client",), ("server",), ("client", "server")):
        asked = make(captured(*hosts, work=work)).pattern
        assert asked.kind == "request-response"
        assert (asked.settings["count"], asked.settings["request"]) == (7, "300 B")
        assert asked.settings["response"] == "50000 B"
        assert float(str(asked.settings["interval"]).split()[0]) == pytest.approx(250, abs=3)
        assert float(str(asked.settings["think"]).split()[0]) == pytest.approx(40, abs=4)


def test_a_fixed_receive_buffer_is_found(captured: Captured) -> None:
    made = make(captured("client", more='receive_buffer = "40 kB"', delay="60 ms", queue="300 packets"))
    buffer = made.trial.choice.receive_buffer
    assert buffer is not None
    assert buffer == pytest.approx(40_000, rel=0.1)
    assert figures(made)["goodput"][1] == pytest.approx(figures(made)["goodput"][0], rel=0.05)


def test_a_transfer_with_an_end_has_one(captured: Captured) -> None:
    made = make(captured("server", work='kind = "bulk"\nsize = "2 MB"'))
    assert made.pattern.settings == {"size": "2000000 B"}
    connection = metrics.connections(run(Scenario.parse(made.text, "twin.toml")))[0]
    assert connection.bytes == 2_000_000


def test_what_is_not_told_is_said(captured: Captured) -> None:
    made = make(captured("client", more='receive_buffer = "60 kB"', queue="500 packets"))
    assert any("never overflowed" in note for note in made.notes)
    assert any("captures at both ends would tell" in note for note in made.notes)
    assert not any("both ends would tell" in note for note in make(captured("client", "server")).notes)


def test_a_capture_without_a_connection_is_an_error(captured: Captured, tmp_path: Path) -> None:
    files = captured("client")
    with pytest.raises(CaptureError, match=r"no connection 'x' with data; there is 10\.0\.1\.2:5001"):
        make(files, "x")
    recording = capture.trace(files, segments=True).recording
    assert recording.table("connection_ends").height == 1


def test_a_stream_of_blocks_is_one(captured: Captured) -> None:
    for hosts in (("client",), ("server",), ("client", "server")):
        work = 'kind = "stream"\nrate = "1 Mbps"\nblock = "25 kB"\nduration = "5 s"'
        asked = make(captured(*hosts, work=work)).pattern
        assert asked.kind == "stream"
        assert asked.settings["block"] == "25000 B"
        assert float(str(asked.settings["rate"]).split()[0]) == pytest.approx(1, rel=0.02)
        assert float(str(asked.settings["duration"]).split()[0]) == pytest.approx(5, abs=0.3)


def test_questions_as_long_as_answers_are_requests(captured: Captured) -> None:
    work = 'kind = "ping-pong"\nsize = "400 B"\ncount = 30'
    for hosts in (("client",), ("server",), ("client", "server")):
        asked = make(captured(*hosts, work=work)).pattern
        assert (asked.kind, asked.settings["count"]) == ("request-response", 30)
        assert asked.settings["request"] == asked.settings["response"] == "400 B"


def test_two_way_bulk_is_no_request(captured: Captured) -> None:
    made = make(captured("client", work='kind = "bulk"\nsize = "1 MB"\nreverse_size = "1 MB"'))
    assert made.pattern.kind == "bulk"
    assert made.pattern.note.endswith("bytes that went the other way are left out")


def test_the_twin_of_a_rate_that_moves_moves(captured: Captured) -> None:
    work = 'kind = "bulk"\nreverse = true\n[[event]]\nat = "6 s"\nlink = "path0"\nrate = "2 Mbps"\n'
    made = make(captured("client", work=work, duration="12 s", queue="60 packets"))
    assert '[[event]]\nat = "6 s"\nlink = "path0"\nrate = "2 Mbps"\n' in made.text
    for mine, twin in figures(made).values():
        assert twin == pytest.approx(mine, rel=0.1)
