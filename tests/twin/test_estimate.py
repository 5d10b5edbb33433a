"""What a capture tells of a path, wherever it was made."""

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from polypath import capture
from polypath.twin.estimate import Estimate, estimate
from polypath.twin.network import Network, network
from polypath.twin.observed import Place

from .conftest import Captured

FRAME = 1514


def seen(captured: Captured, *hosts: str, **values: str) -> Network:
    recording = capture.trace(captured(*hosts, **values), segments=True).recording
    found = network(recording, None, both_ends=len(hosts) > 1)
    assert found is not None
    return found


def estimated(captured: Captured, *hosts: str, **values: str) -> Estimate:
    (path,) = seen(captured, *hosts, **values).paths
    return path.estimate


PLACES = {
    ("client",): (Place.RECEIVER, Place.SENDER),
    ("server",): (Place.SENDER, Place.RECEIVER),
    ("client", "server"): (Place.BOTH, Place.BOTH),
}


@pytest.mark.parametrize("hosts", PLACES)
@pytest.mark.parametrize("upload", [False, True])
def test_rate_delay_and_queue_come_out_wherever_it_was_captured(
    captured: Captured, hosts: tuple[str, ...], upload: bool
) -> None:
    work = f'kind = "bulk"\nreverse = {str(not upload).lower()}\nduration = "6 s"'
    found = seen(captured, *hosts, work=work)
    (path,) = found.paths
    assert path.ways[0].place is PLACES[hosts][upload]
    told = path.estimate
    assert told.rate_bps is not None
    assert told.delay_s is not None
    assert told.queue_bytes is not None
    assert told.rate_bps.value == pytest.approx(8e6, rel=0.002)
    assert told.delay_s.value == pytest.approx(0.015, abs=0.0002)
    # Timestamps, in ms, tell when a packet came to a queue before the capture.
    assert told.queue_bytes.value == pytest.approx(40 * FRAME, abs=2 * FRAME)
    assert told.rate_bps.low <= 8e6 <= told.rate_bps.high
    assert told.queue_bytes.low <= 40 * FRAME <= told.queue_bytes.high
    assert told.overflows > 0
    assert told.random == 0


@pytest.mark.parametrize("hosts", PLACES)
def test_random_loss_is_told_from_a_full_queue(captured: Captured, hosts: tuple[str, ...]) -> None:
    told = estimated(
        captured, *hosts, loss="1 %", rate="20 Mbps", duration="20 s", work='kind = "bulk"\nreverse = true'
    )
    assert told.loss is not None
    assert told.random > 30
    assert 0.0067 < told.loss.value < 0.015
    assert told.loss.low <= 0.01 <= told.loss.high


def test_a_queue_that_never_overflows_is_left_open(captured: Captured) -> None:
    told = estimated(captured, "client", more='receive_buffer = "60 kB"', queue="500 packets")
    assert told.queue_bytes is None
    assert told.queued_bytes < 60_000
    assert told.rate_bps is not None
    assert told.rate_bps.value == pytest.approx(8e6, rel=0.01)


def test_a_few_short_answers_tell_the_rate(captured: Captured) -> None:
    work = 'kind = "request-response"\nrequest = "200 B"\nresponse = "40 kB"\ncount = 6\ninterval = "300 ms"'
    told = estimated(captured, "server", work=work, rate="30 Mbps")
    assert told.rate_bps is not None
    assert told.rate_bps.value == pytest.approx(30e6, rel=0.01)


def test_a_pause_between_answers_is_part_of_no_train(captured: Captured) -> None:
    """The delay of short answers' packets varies, and none waits for those of the answer before."""
    work = 'kind = "request-response"\nrequest = "200 B"\nresponse = "31 kB"\ncount = 12\ninterval = "500 ms"'
    values = {"rate": "23.1 Mbps", "delay": "35 ms", "jitter": "0.5 ms", "duration": "8 s"}
    told = estimated(captured, "server", work=work, **values)
    assert told.rate_bps is not None
    assert told.rate_bps.value == pytest.approx(23.1e6, rel=0.1)


def test_multipath_tcp_has_an_estimate_for_each_path(captured: Captured) -> None:
    second = '[link.path1]\nends = ["client:path1", "r"]\nrate = "3 Mbps"\ndelay = "30 ms"\nqueue = "30 packets"\n'
    work = f'kind = "bulk"\nreverse = true\n{second}'
    found = seen(captured, "client", transport="mptcp", work=work, more='path_manager = "fullmesh"')
    rates = {path.name: path.estimate.rate_bps for path in found.paths}
    assert {name: rate and round(rate.value / 1e6, 1) for name, rate in rates.items()} == {"path0": 8.0, "path1": 3.0}
    assert {path.sender for path in found.paths} == {"server"}


def test_a_rate_that_moves_is_told_piece_by_piece(captured: Captured) -> None:
    work = 'kind = "bulk"\nreverse = true\n'
    for at, rate in ((4, "3 Mbps"), (8, "12 Mbps")):
        work += f'[[event]]\nat = "{at} s"\nlink = "path0"\nrate = "{rate}"\n'
    for hosts in (("client",), ("server",), ("client", "server")):
        told = estimated(captured, *hosts, work=work, duration="12 s", queue="60 packets")
        assert [round(move.rate_bps / 1e6, 1) for move in told.moves] == [8.0, 3.0, 12.0]
        assert [move.at_s for move in told.moves] == pytest.approx([0, 4, 8], abs=0.6)


@pytest.mark.parametrize("congestion", ["cubic", "reno", "bbr"])
def test_a_rate_that_stays_does_not_move(captured: Captured, congestion: str) -> None:
    told = estimated(captured, "client", congestion=congestion, duration="12 s", work='kind = "bulk"\nreverse = true')
    assert told.moves == ()


def test_a_delay_that_varies_is_no_rate_that_moves(captured: Captured) -> None:
    """Delays that rise slowly and fall at once, for a second, and then the other way round.

    Short trains come too slowly in one second and too fast in the other one. Trains that last long compared with the
    variation have the link's rate throughout.
    """
    (path,) = seen(captured, "server", work='kind = "bulk"\nreverse = true', rate="20 Mbps", duration="8 s").paths
    (way,) = path.ways
    phase = way.told_s % 0.017 / 0.017
    later = 0.003 * np.where(np.floor(way.told_s) % 2 == 0, phase, 1 - phase)
    varied = replace(way, told_s=way.told_s + later, queued_s=way.queued_s + later)
    _, told = estimate([varied])
    assert told.jitter_s is not None
    assert told.moves == ()
    assert told.rate_bps is not None
    assert told.rate_bps.value == pytest.approx(20e6, rel=0.01)


def test_packets_whose_acknowledgement_was_delayed_are_in_the_queue(captured: Captured) -> None:
    """Jitter makes acknowledgements look delayed; a full queue has these packets, too."""
    values = {"rate": "10 Mbps", "delay": "30 ms", "queue": "62 packets", "jitter": "2.5 ms", "congestion": "reno"}
    for hosts in PLACES:
        told = estimated(captured, *hosts, work='kind = "bulk"\nreverse = true', duration="20 s", **values)
        assert told.overflows > 30
        assert told.random <= 0.02 * told.overflows
        assert told.queue_bytes is not None
        assert told.queue_bytes.low <= 62 * FRAME <= told.queue_bytes.high


def test_two_files_of_one_host_are_one_end(captured: Captured, tmp_path: Path) -> None:
    second = '[link.path1]\nends = ["client:path1", "r"]\nrate = "3 Mbps"\ndelay = "30 ms"\nqueue = "30 packets"\n'
    work = f'kind = "bulk"\nreverse = true\n{second}'
    (both,) = captured("client", transport="mptcp", work=work, more='path_manager = "fullmesh"')
    files = [tmp_path / f"{name}.pcap" for name in ("wlan", "lte")]
    for file, address in zip(files, ("10.0.0.1", "10.0.2.1"), strict=True):
        command = ["tshark", "-r", str(both), "-F", "pcap", "-Y", f"ip.addr == {address}", "-w", str(file)]
        subprocess.run(command, capture_output=True, check=True)
    found = network(capture.trace(files, segments=True).recording, None, both_ends=True)
    assert found is not None
    assert {path.ways[0].place for path in found.paths} == {Place.RECEIVER}
    delays = [path.estimate.delay_s.value for path in found.paths if path.estimate.delay_s is not None]
    assert delays == pytest.approx([0.015, 0.030], abs=0.001)
