"""Messages over QUIC: in DATAGRAM frames (RFC 9221), and in a stream beside them."""

from typing import Any

import pytest
from typer.testing import CliRunner

from polypath.cli import app
from polypath.engines import get
from polypath.measures.summary import summary
from polypath.results import Recording, metrics
from polypath.scenario import Scenario, ScenarioError

TEXT = """
name = "call"
duration = "30 s"
seed = {seed}
[defaults]
profile = "rfc"
scheduler = "{scheduler}"
[host.client]
[host.server]
[router.r]
[link.path0]
ends = ["client:eth0", "r"]
rate = "10 Mbps"
delay = "20 ms"
[link.path1]
ends = ["client:eth1", "r"]
rate = "10 Mbps"
delay = "20 ms"
[link.server]
ends = ["r", "server"]
[[application]]
name = "call"
kind = "messages"
{application}
# Once both paths are open.
[[event]]
at = "0.5 s"
link = "path0"
loss = "{loss}"
[[event]]
at = "0.5 s"
link = "path1"
loss = "{loss}"
"""
#: So few that the least window of a path, two packets, holds none back (RFC 9221 section 5.4).
SPARSE = 'size = "200 B"\ninterval = "70 ms"\nduration = "28 s"'
CALL = 'size = "200 B"\ninterval = "20 ms"\nduration = "10 s"'


def text(application: str = CALL, loss: str = "0%", scheduler: str = "default", seed: int = 1) -> str:
    return TEXT.format(application=application, loss=loss, scheduler=scheduler, seed=seed)


def run(*arguments: Any, **named: Any) -> Recording:
    return get("sim").run(Scenario.parse(text(*arguments, **named), "call.toml").plan())


def outcome(recording: Recording) -> tuple[metrics.Connection, metrics.Delays]:
    (connection,) = metrics.connections(recording)
    return connection, metrics.Delays.of(metrics.delays(recording, connection))


@pytest.mark.parametrize("transport", ["quic", "mpquic"])
@pytest.mark.parametrize("delivery", ["datagrams", "stream"])
@pytest.mark.parametrize("reverse", ["false", "true"])
def test_without_loss_every_message_takes_the_way_and_nothing_else(transport: str, delivery: str, reverse: str) -> None:
    recording = run(f'{CALL}\ntransport = "{transport}"\ndelivery = "{delivery}"\nreverse = {reverse}')
    connection, known = outcome(recording)
    assert connection.finished
    # It begins with the handshake's end: one every 20 ms from then to 10 s.
    assert known.sent in (497, 498)
    assert known.unanswered == 0
    assert connection.bytes == 200 * known.sent
    assert connection.receiver == ("client" if reverse == "true" else "server")
    assert known.answered[0] > 20e6
    assert known.answered[-1] < 23e6


def test_a_datagram_is_never_sent_again_and_delays_nothing_behind_it() -> None:
    lossy = {"loss": "5%"}
    datagrams, stream = run(SPARSE, **lossy), run(f'{SPARSE}\ndelivery = "stream"', **lossy)
    connection, known = outcome(datagrams)
    assert connection.finished
    assert 10 < known.unanswered < 40
    assert known.answered[-1] < 23e6
    assert connection.bytes == 200 * len(known.answered)
    assert sum(path.retransmitted_bytes for path in metrics.subflows(datagrams, connection)) == 0
    reliable, waited = outcome(stream)
    assert waited.unanswered == 0
    assert reliable.bytes == 200 * waited.sent
    # A loss is repaired a round trip later at the earliest, and what came after it waits (RFC 9000 section 2.2).
    assert waited.answered[-1] > 60e6
    assert sum(delay > 23e6 for delay in waited.answered) >= 10


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_copy_on_each_path_loses_less(seed: int) -> None:
    once, twice = (
        outcome(run(SPARSE, loss="10%", scheduler=name, seed=seed))[1].unanswered for name in ("default", "redundant")
    )
    # 10 % of 400, and 1 % of those of which the other path's window admitted a copy.
    assert 25 <= once <= 55
    assert twice < 0.6 * once


def test_copies_count_once() -> None:
    connection, known = outcome(run(scheduler="redundant"))
    assert (known.sent, known.unanswered, connection.bytes) == (498, 0, 99_600)


def test_a_message_that_fits_no_packet_is_refused_and_counted() -> None:
    recording = run('size = "3 kB"\ninterval = "50 ms"\nduration = "1 s"')
    connection, known = outcome(recording)
    assert (known.sent, known.unanswered) == (20, 20)
    assert metrics.refused(recording, connection) == 20
    assert summary(recording)["connections"][0]["requests"]["refused"] == 20
    (value,) = set(recording.table("events").filter(kind="datagram-refused")["value"])
    assert value == 3000
    whole = outcome(run('size = "3 kB"\ninterval = "50 ms"\nduration = "1 s"\ndelivery = "stream"'))[1]
    assert (whole.sent, whole.unanswered) == (20, 0)


def test_what_fits_is_found_with_the_mtu() -> None:
    recording = run('size = "1300 B"\ninterval = "20 ms"\nduration = "2 s"\ntransport = "quic"')
    connection, known = outcome(recording)
    refused = metrics.refused(recording, connection)
    # Packets of 1200 bytes at first (RFC 9000 section 14), longer ones once a probe has come back.
    assert 0 < refused < 10
    assert known.unanswered == refused


def test_what_goes_on_to_the_end_of_the_run_has_no_end_of_its_own() -> None:
    connection, _ = outcome(run('size = "200 B"\ninterval = "100 ms"\ntransport = "quic"'))
    assert connection.finished is None


def test_a_rate_is_an_interval() -> None:
    by_rate = run('size = "200 B"\nrate = "80 kbps"\nduration = "10 s"')
    assert by_rate.table("requests").equals(run().table("requests"))


def test_equal_seeds_give_equal_recordings() -> None:
    first, second = run(loss="5%"), run(loss="5%")
    assert first.metadata.recording_sha256 == second.metadata.recording_sha256


@pytest.mark.parametrize("more", ["", 'interval = "20 ms"\nrate = "1 Mbps"'])
def test_a_pace_is_needed_and_one_is_enough(more: str) -> None:
    with pytest.raises(ScenarioError, match="messages need either 'interval' or 'rate'"):
        Scenario.parse(text(f'size = "200 B"\n{more}'), "call.toml")


def test_only_quic_carries_messages() -> None:
    with pytest.raises(ScenarioError, match="transport"):
        Scenario.parse(text(f'{CALL}\ntransport = "tcp"'), "call.toml")


def test_a_person_is_told_of_messages(tmp_path: Any) -> None:
    scenario = tmp_path / "call.toml"
    scenario.write_text(text('size = "3 kB"\ninterval = "50 ms"\nduration = "1 s"'), encoding="utf-8")
    told = CliRunner().invoke(app, ["run", str(scenario)])
    assert "call: 20 messages, none arrived, 20 of them fit no packet" in told.output
    scenario.write_text(text(loss="5%"), encoding="utf-8")
    told = CliRunner().invoke(app, ["run", str(scenario)])
    assert "call: 498 messages, delay median 20." in told.output
    assert " lost" in told.output


def test_the_window_holds_datagrams_back() -> None:
    """RFC 9221 section 5.4: at a window of two packets a message each 20 ms waits for acknowledgements."""
    _, known = outcome(run(f'{CALL}\ntransport = "quic"', loss="5%"))
    assert known.answered[0] < 21e6
    assert known.answered[-1] > 30e6
