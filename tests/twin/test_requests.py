"""Where the time of requests went."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from polypath import Scenario, capture, engines, labs, run
from polypath.engines import Options
from polypath.results import Recording
from polypath.twin.pattern import Turn
from polypath.twin.requests import Request, requests
from polypath.twin.sent import Sent

from .conftest import ONE_PATH, USUAL

ASKING = """
kind = "request-response"
request = "300 B"
response = "{response}"
count = 8
interval = "150 ms"
think = "{think}"
"""


def asked(folder: Path, text: str) -> tuple[Recording, tuple[Request, ...]]:
    recording = run(Scenario.parse(text, "asked.toml"), captures="hosts", directory=folder)
    (found,) = requests(folder / "client.pcapng", folder / "server.pcapng")
    return recording, found.requests


def scenario(*, response: str = "60 kB", think: str = "0 s", more: str = "", **values: str) -> str:
    work = ASKING.format(response=response, think=think) + more
    return ONE_PATH.format(**{**USUAL, "work": work, **values})


SECOND = '\n[link.path1]\nends = ["client:path1", "r"]\nrate = "3 Mbps"\ndelay = "40 ms"\nloss = "1 %"'


@pytest.mark.parametrize("transport", ["tcp", "mptcp", "quic", "mpquic"])
@pytest.mark.parametrize("loss", ["0 %", "3 %"])
def test_the_parts_of_each_request_add_up_to_its_delay(tmp_path: Path, transport: str, loss: str) -> None:
    text = scenario(transport=transport, loss=loss, more=SECOND, duration="20 s")
    # The profile's scheduler does not run over QUIC.
    settings = 'path_manager = "fullmesh"\n' + ('scheduler = "default"\n' if transport == "mpquic" else "")
    recording, found = asked(tmp_path, text.replace("[host.client]", f"{settings}[host.client]"))
    delays = recording.table("requests")["delay_ns"].to_list()
    assert len(delays) == 8
    assert [each.parts.total for each in found] == pytest.approx([delay / 1e9 for delay in delays], abs=1e-6)
    for each in found:
        assert min(each.parts.__dict__.values()) > -1e-6


@pytest.mark.parametrize("transport", ["tcp", "quic"])
def test_each_part_is_what_the_scenario_has(tmp_path: Path, transport: str) -> None:
    _, (_, *found) = asked(tmp_path, scenario(think="40 ms", queue="200 packets", transport=transport))
    for each in found:
        assert each.parts.application == pytest.approx(0.040, abs=0.001)
        # Both ways, and the bytes of one packet each way.
        assert each.parts.propagation == pytest.approx(0.030, abs=0.003)
        assert each.parts.transmission == pytest.approx(60e3 / 1448 * 1514 * 8 / 8e6, rel=0.05)
        assert each.parts.loss == 0
        assert each.other_paths_s == 0


@pytest.mark.parametrize("transport", ["tcp", "quic"])
def test_a_lost_last_packet_is_loss(tmp_path: Path, transport: str) -> None:
    _, found = asked(tmp_path, scenario(response="4 kB", loss="10 %", duration="20 s", transport=transport))
    slowest = max(found, key=lambda each: each.parts.total)
    assert slowest.parts.loss == max(slowest.parts.__dict__.values())


def test_an_ample_link_leaves_the_window(tmp_path: Path) -> None:
    _, (first, *_) = asked(tmp_path, scenario(response="500 kB", rate="500 Mbps", delay="50 ms", queue="1000 packets"))
    assert first.parts.window > 0.6 * first.parts.total


@pytest.mark.parametrize("transport", ["mptcp", "mpquic"])
def test_a_slower_path_is_waited_for(tmp_path: Path, transport: str) -> None:
    text = scenario(transport=transport, more=SECOND.replace('\nloss = "1 %"', ""), response="300 kB")
    text = text.replace("[host.client]", 'path_manager = "fullmesh"\nscheduler = "roundrobin"\n[host.client]')
    _, found = asked(tmp_path, text)
    last = found[-1]
    assert last.path.startswith("10.0.2.1")
    assert last.other_paths_s > 0.1


def test_a_walk_out_of_reach_costs_timeouts(tmp_path: Path) -> None:
    """Copies of a request that come before the next one are no part of it, and a timeout is told as one."""
    scenario_of_lab = labs.get("wifi-walk").scenario().plan()
    recording = engines.get("sim").run(scenario_of_lab, Options("hosts", tmp_path))
    (found,) = requests(tmp_path / "client.pcapng", tmp_path / "server.pcapng")
    slowest = max(found.requests, key=lambda each: each.parts.total)
    longest_ns = max(recording.table("requests")["delay_ns"].drop_nulls().to_list())
    assert slowest.parts.total == pytest.approx(longest_ns / 1e9, abs=1e-4)
    assert slowest.parts.loss > 0.8 * slowest.parts.total


@pytest.mark.parametrize(("second_arrives_s", "stalled_s"), [(np.nan, 0.39), (0.55, 0.39), (0.06, 0.0)])
def test_nothing_left_before_a_timeout(second_arrives_s: float, stalled_s: float) -> None:
    """The second piece is sent again after half a second. It was lost if no copy came, or the second copy alone."""
    sent_s = np.array([0.0, 0.01, 0.5, 0.5])
    offset = np.array([0, 1000, 1000, 2000])
    sent = Sent(
        stream=np.zeros(4, dtype=np.int64),
        offset=offset,
        length=np.full(4, 1000),
        sent_s=sent_s,
        arrived_s=np.array([0.05, second_arrives_s, 0.55, 0.55]),
        first_s=sent_s,
        way=np.zeros(4, dtype=np.int64),
        wire=np.full(4, 1050.0),
        names=("path",),
        least_s=np.array([0.05]),
        rate_bps=np.array([1e6]),
        exact=False,
    )
    assert sent.stalled_s(Turn("server", 0.0, 0.5, 3000), 0.5, 0.1) == pytest.approx(stalled_s)


FETCHING = """
kind = "fetch"
size = "80 kB"
count = 12
parallel = 4
streams = "{streams}"
"""


@pytest.mark.parametrize("streams", ["each", "ordered"])
@pytest.mark.parametrize("transport", ["quic", "mpquic"])
def test_requests_on_several_streams_are_told_apart(tmp_path: Path, transport: str, streams: str) -> None:
    values = {**USUAL, "transport": transport, "loss": "3 %", "duration": "20 s"}
    text = ONE_PATH.format(**{**values, "work": FETCHING.format(streams=streams) + SECOND})
    text = text.replace("[host.client]", 'path_manager = "fullmesh"\nscheduler = "default"\n[host.client]')
    recording, found = asked(tmp_path, text)
    delays = recording.table("requests")["delay_ns"].to_list()
    # An answer's delay runs from its request's departure, which a pacer may hold for a moment.
    assert sorted(each.parts.total for each in found) == pytest.approx(
        sorted(delay / 1e9 for delay in delays), abs=5e-5
    )
    for each in found:
        assert min(each.parts.__dict__.values()) > -1e-6
        # The server thinks for no time: an answer waits for others that are sent before.
        assert each.parts.application == pytest.approx(0, abs=1e-4)
    if streams == "ordered":
        assert max(each.parts.queue for each in found) > 0.05


def test_each_stream_frame_of_a_packet_is_told(tmp_path: Path) -> None:
    run(
        Scenario.parse(scenario(transport="quic", loss="3 %", duration="20 s"), "asked.toml"),
        captures="hosts",
        directory=tmp_path,
    )
    seen = capture.trace([tmp_path / "server.pcapng"], segments=True).recording
    sums = seen.table("stream_frames").group_by("segment").agg(pl.col("bytes").sum())
    both = seen.table("segments").with_row_index("segment").join(sums, on="segment", how="left")
    assert both["bytes"].fill_null(0).to_list() == both["payload_bytes"].to_list()
    first = seen.table("stream_frames").unique("segment", keep="first", maintain_order=True)
    offsets = first.join(both.filter(pl.col("dsn").is_not_null()), on="segment")
    assert offsets["offset"].to_list() == offsets["dsn"].to_list()
    assert sums.height < seen.table("stream_frames").height  # one packet has what was lost, and what is new
