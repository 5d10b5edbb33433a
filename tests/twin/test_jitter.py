"""How far a delay varies, wherever it was captured."""

from __future__ import annotations

import pytest

from polypath.twin.made import make

from .conftest import Captured
from .test_estimate import PLACES, estimated

BULK = 'kind = "bulk"\nreverse = true'
ASKED = 'kind = "request-response"\nrequest = "200 B"\nresponse = "150 kB"\ncount = 15\ninterval = "300 ms"'


@pytest.mark.parametrize("hosts", PLACES)
@pytest.mark.parametrize("work", [BULK, ASKED], ids=["bulk", "requests"])
def test_a_delay_that_stays_has_no_jitter(captured: Captured, hosts: tuple[str, ...], work: str) -> None:
    assert estimated(captured, *hosts, work=work).jitter_s is None
    assert estimated(captured, *hosts, work=work, loss="0.5 %", rate="20 Mbps").jitter_s is None


@pytest.mark.parametrize("hosts", PLACES)
@pytest.mark.parametrize(("work", "true"), [(BULK, 0.3), (BULK, 1), (ASKED, 1)])
def test_jitter_is_found_and_spoils_nothing_else(
    captured: Captured, hosts: tuple[str, ...], work: str, true: float
) -> None:
    made = make(captured(*hosts, work=work, jitter=f"{true} ms", duration="8 s"))
    told = made.network.paths[0].estimate
    assert told.jitter_s is not None
    assert told.rate_bps is not None
    assert told.delay_s is not None
    assert told.jitter_s.value == pytest.approx(true / 1e3, rel=0.25)
    assert told.jitter_s.low <= true / 1e3 <= told.jitter_s.high
    assert told.rate_bps.value == pytest.approx(8e6, rel=0.05)
    assert told.delay_s.value == pytest.approx(0.015, abs=0.001)
    if told.queue_bytes is not None:
        assert told.queue_bytes.value == pytest.approx(40 * 1514, rel=0.25)
    assert f'jitter = "{told.jitter_s.value * 1e3:.3g} ms"' in made.text


def test_a_jitter_of_several_packets_is_set_right_by_the_twin(captured: Captured) -> None:
    work = {"work": BULK, "rate": "50 Mbps", "queue": "200 packets", "jitter": "3 ms"}
    first = estimated(captured, "server", **work).jitter_s
    told = make(captured("server", **work)).network.paths[0].estimate.jitter_s
    assert first is not None
    assert told is not None
    assert first.value < 0.0025  # packets that keep their order vary less than their delays
    assert told.value == pytest.approx(0.003, rel=0.25)


def test_what_would_tell_of_jitter_is_said(captured: Captured) -> None:
    assert any("half a tick" in note for note in make(captured("client")).notes)
    notes = make(captured("server", jitter="1 ms")).notes
    assert any("divided evenly" in note for note in notes)
    assert any("a capture at the sender" in note for note in make(captured("client", transport="quic")).notes) or any(
        "one at the sender" in note for note in make(captured("client", transport="quic")).notes
    )
