"""The smallest buffer: against a path whose answer is its bandwidth-delay product, and by its own definition."""

from __future__ import annotations

from pathlib import Path

import pytest

from polypath.cli import size_buffers
from polypath.cli.errors import InputError
from polypath.engines import EngineError
from polypath.scenario import Scenario, ScenarioError
from polypath.sweeps import buffers

PATH = """
name = "path"
duration = "20 s"
defaults = { profile = "linux", congestion = "reno" }
[host.client]
[host.server]
[link.path0]
ends = ["client", "server"]
rate = "10 Mbps"
delay = "50 ms"
queue = "300 packets"
[[application]]
name = "download"
kind = "bulk"
transport = "tcp"
reverse = true
"""


UNBOUND = PATH.replace('rate = "10 Mbps"\n', "").replace('kind = "bulk"', 'kind = "bulk"\nsize = "10 MB"')


@pytest.fixture(scope="module")
def sizing() -> buffers.Sizing:
    return buffers.size(Scenario.parse(PATH, "x"), jobs=1)


def test_one_path_needs_its_bandwidth_delay_product(sizing: buffers.Sizing) -> None:
    product = 10e6 / 8 * 0.1
    assert sizing.rule_of_thumb.buffer_bytes == 2 * product
    # the advertised window is at least half of the buffer and at most all of it
    assert 0.9 * product <= sizing.smallest.buffer_bytes <= 2.2 * product


def test_it_is_the_clients_buffer_that_is_sized(sizing: buffers.Sizing) -> None:
    assert (sizing.connection, sizing.receiver, sizing.subflows) == ("download", "client", 1)


def test_the_answer_is_enough_and_a_little_less_is_not(sizing: buffers.Sizing) -> None:
    scenario = Scenario.parse(PATH, "x")
    search = buffers._Search(scenario, None, None, 1, "sim", lambda runs: None)
    ample, _ = search.ample()
    size = sizing.smallest.buffer_bytes
    enough, less = search.run([size, round(size * 0.95)])
    assert ample == sizing.ample
    assert enough == sizing.smallest
    assert enough.goodput_mbps >= 0.95 * sizing.best.goodput_mbps > less.goodput_mbps


def test_halves_lose_what_a_window_a_round_trip_loses(sizing: buffers.Sizing) -> None:
    assert [trial.buffer_bytes for trial in sizing.below] == [
        round(sizing.smallest.buffer_bytes / part) for part in (2, 4, 8)
    ]
    for part, trial in zip((2, 4), sizing.below, strict=False):
        assert trial.goodput_mbps == pytest.approx(sizing.smallest.goodput_mbps / part, rel=0.15)


def test_the_number_of_processes_changes_nothing(sizing: buffers.Sizing) -> None:
    assert buffers.size(Scenario.parse(PATH, "x"), jobs=2) == sizing


@pytest.mark.parametrize(
    ("text", "connection", "message"),
    [
        (PATH, "upload", "no TCP or Multipath TCP connection is named 'upload' (there: download)"),
        (
            PATH + '[[application]]\nname = "b"\nkind = "bulk"\n',
            None,
            "name the connection, --connection NAME: there is download, b",
        ),
        (
            PATH.replace('"tcp"', '"quic"'),
            None,
            "no application runs over TCP or Multipath TCP: there is no buffer to size",
        ),
        (
            PATH.replace("reverse = true", 'start = "1950 ms"'),
            None,
            "'download' delivers nothing, whatever the buffer: let it last longer",
        ),
        (
            PATH.replace('rate = "10 Mbps"\n', ""),
            None,
            "no link bounds the rate of 'download': there is nothing to size",
        ),
    ],
)
def test_what_cannot_be_sized(text: str, connection: str | None, message: str) -> None:
    with pytest.raises((ScenarioError, EngineError)) as caught:
        buffers.size(Scenario.parse(text.replace('"20 s"', '"2 s"'), "x"), connection=connection, jobs=1)
    assert str(caught.value) == message


def test_a_buffer_with_which_nothing_arrives_loses_all() -> None:
    # without delay the rule of thumb says 0
    text = PATH.replace('"50 ms"', '"0 s"').replace('"10 Mbps"', '"100 kbps"').replace('"20 s"', '"150 ms"')
    found = buffers.size(Scenario.parse(text, "x"), jobs=1)
    assert found.rule_of_thumb == buffers.Trial(1, 0.0)
    assert found.smallest.goodput_mbps > 0


@pytest.mark.parametrize("fraction", ["95", "0 %", "101 %"])
def test_a_fraction_is_a_share(tmp_path: Path, fraction: str) -> None:
    path = tmp_path / "path.toml"
    path.write_text(PATH)
    with pytest.raises(InputError, match=rf"^--fraction {fraction}: "):
        size_buffers.size_buffers(str(path), fraction=fraction)


def test_a_sweep_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "path.toml"
    path.write_text(PATH + "[vary]\nseeds = 2\n")
    with pytest.raises(InputError, match="path varies 'seed'"):
        size_buffers.size_buffers(str(path))


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "path.toml"
    path.write_text(PATH.replace('"20 s"', '"5 s"'))
    assert size_buffers.size_buffers(str(path), fraction="50 %", parallel=1) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "path: receive buffer of the client for 'download', 1 subflow"
    assert lines[2].startswith("64 MB ample ")
    assert lines[3].startswith("250 kB rule of thumb, 2 x 10 Mbps x 100 ms RTT (RFC 6182 section 5.3) ")
    assert " smallest with 0.5 of the best " in lines[4]


def test_where_the_least_buffer_is_enough_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "path.toml"
    path.write_text(
        PATH.replace('"20 s"', '"5 s"').replace('kind = "bulk"', 'kind = "stream"\nrate = "8 kbps"\nblock = "100 B"')
    )
    assert size_buffers.size_buffers(str(path), parallel=1) == 0
    assert "smallest that the search tries, still with 0.95 of the best" in " ".join(capsys.readouterr().out.split())


def test_a_buffer_that_fills_a_long_queue_is_not_the_measure() -> None:
    """The window that a large buffer opens waits in a queue of 1000 packets, and is lost there at once."""
    scenario = Scenario.parse(
        """
duration = "20 s"
defaults = { path_manager = "fullmesh" }
[host.client]
[host.server]
[link.wifi]
ends = ["client", "server"]
rate = "30 Mbps"
delay = "10 ms"
queue = "100 packets"
[link.lte]
ends = ["client", "server"]
rate = "20 Mbps"
delay = "40 ms"
queue = "1000 packets"
[[application]]
kind = "fetch"
transport = "mptcp"
size = "20 MB"
""",
        "x",
    )
    found = buffers.size(scenario, jobs=1)
    assert found.best.goodput_mbps > 1.05 * found.ample.goodput_mbps
    assert found.smallest.goodput_mbps >= 0.95 * found.best.goodput_mbps
    assert found.smallest.buffer_bytes < found.rule_of_thumb.buffer_bytes
    assert all(trial.goodput_mbps < 0.95 * found.best.goodput_mbps for trial in found.below)
