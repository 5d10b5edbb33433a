"""Twins of QUIC and Multipath QUIC, and the accounts that they have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from polypath.twin.made import make
from polypath.twin.observed import Place

from ..commands import called
from .conftest import Captured
from .test_estimate import PLACES, estimated, seen
from .test_made import figures

BULK = 'kind = "bulk"\nreverse = true\nduration = "6 s"'
SECOND = '[link.path1]\nends = ["client:path1", "r"]\nrate = "3 Mbps"\ndelay = "30 ms"\nqueue = "30 packets"\n'
SEVERAL = 'path_manager = "fullmesh"\nscheduler = "default"'


@pytest.mark.parametrize("hosts", PLACES)
@pytest.mark.parametrize("upload", [False, True])
def test_rate_and_delay_come_out_wherever_it_was_captured(
    captured: Captured, hosts: tuple[str, ...], upload: bool
) -> None:
    work = f'kind = "bulk"\nreverse = {str(not upload).lower()}\nduration = "6 s"'
    (path,) = seen(captured, *hosts, work=work, transport="quic").paths
    told = path.estimate
    assert path.ways[0].place is PLACES[hosts][upload]
    assert told.rate_bps is not None
    assert told.delay_s is not None
    assert told.queue_bytes is not None
    assert told.rate_bps.value == pytest.approx(8e6, rel=0.01)
    assert told.delay_s.value == pytest.approx(0.015, abs=0.0003)
    assert told.queue_bytes.value == pytest.approx(40 * path.packet_bytes, rel=0.25)
    if path.ways[0].place is not Place.RECEIVER:
        assert (told.random, told.jitter_s) == (0, None)


@pytest.mark.parametrize("hosts", PLACES)
def test_random_loss_is_told_by_packet_numbers(captured: Captured, hosts: tuple[str, ...]) -> None:
    told = estimated(
        captured, *hosts, transport="quic", loss="1 %", rate="20 Mbps", duration="20 s", work=BULK.replace("6", "20")
    )
    assert told.loss is not None
    assert told.random > 30
    assert told.loss.low <= 0.01 <= told.loss.high


@pytest.mark.parametrize("congestion", ["cubic", "bbr"])
def test_the_twin_does_what_the_capture_shows(captured: Captured, congestion: str) -> None:
    made = make(captured("server", transport="quic", congestion=congestion, work=BULK))
    assert made.trial.choice.congestion == congestion
    assert 'transport = "quic"' in made.text
    for mine, twin in figures(made).values():
        assert twin == pytest.approx(mine, rel=0.1)


def test_requests_are_asked_again(captured: Captured) -> None:
    work = 'kind = "request-response"\nrequest = "300 B"\nresponse = "50 kB"\ncount = 7\ninterval = "250 ms"'
    asked = make(captured("client", transport="quic", work=work)).pattern
    assert asked.kind == "request-response"
    assert (asked.settings["count"], asked.settings["request"], asked.settings["response"]) == (7, "300 B", "50000 B")


def test_multipath_quic_has_an_estimate_for_each_path(captured: Captured) -> None:
    made = make(captured("server", transport="mpquic", work=BULK + "\n" + SECOND, more=SEVERAL))
    rates = [path.estimate.rate_bps for path in made.network.paths]
    assert [rate and round(rate.value / 1e6, 1) for rate in rates] == [8.0, 3.0]
    assert 'transport = "mpquic"' in made.text
    for mine, twin in figures(made).values():
        assert twin == pytest.approx(mine, rel=0.1)


#: What is planted, and the cause that an account of the capture has to name first besides headers.
PLANTED = {
    "random-loss": {"loss": "1 %", "rate": "20 Mbps", "work": BULK},
    "application": {"work": 'kind = "stream"\nrate = "1 Mbps"\nblock = "25 kB"\nduration = "6 s"'},
}


@pytest.mark.parametrize("cause", PLANTED)
def test_the_account_of_a_capture_names_what_was_planted(
    captured: Captured, capsys: pytest.CaptureFixture[str], cause: str
) -> None:
    values = {"transport": "quic", **PLANTED[cause]}
    (file,) = captured("server" if "reverse" in values["work"] else "client", **values)
    (connection,) = json.loads(called(capsys, "explain", file, "--json").stdout)["connections"]
    assert next(each["cause"] for each in connection["account"] if each["cause"] != "headers") == cause
    total = sum(each["bytes"] for each in connection["account"])
    assert connection["delivered_bytes"] + total == connection["capacity_bytes"]


def test_a_key_log_opens_the_capture(captured: Captured, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (file,) = captured("client", transport="quic", work=BULK)
    missed = called(capsys, "twin", file, "--keys", tmp_path / "missing.log")
    assert (missed.returncode, "missing.log: No such file" in missed.stderr) == (2, True)
    told = json.loads(called(capsys, "twin", file, "--keys", tmp_path / "keys.log", "--json").stdout)
    assert told["paths"][0]["rate_bps"]["value"] == pytest.approx(8e6, rel=0.01)
