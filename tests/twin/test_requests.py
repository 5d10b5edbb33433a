"""Where the time of requests went."""

from pathlib import Path

import pytest

from polypath import Scenario, run
from polypath.results import Recording
from polypath.twin.requests import Request, requests

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


@pytest.mark.parametrize("transport", ["tcp", "mptcp"])
@pytest.mark.parametrize("loss", ["0 %", "3 %"])
def test_the_parts_of_each_request_add_up_to_its_delay(tmp_path: Path, transport: str, loss: str) -> None:
    text = scenario(transport=transport, loss=loss, more=SECOND, duration="20 s")
    recording, found = asked(tmp_path, text.replace("[host.client]", 'path_manager = "fullmesh"\n[host.client]'))
    delays = recording.table("requests")["delay_ns"].to_list()
    assert len(delays) == 8
    assert [each.parts.total for each in found] == pytest.approx([delay / 1e9 for delay in delays], abs=1e-6)
    for each in found:
        assert min(each.parts.__dict__.values()) > -1e-6


def test_each_part_is_what_the_scenario_has(tmp_path: Path) -> None:
    _, (_, *found) = asked(tmp_path, scenario(think="40 ms", queue="200 packets"))
    for each in found:
        assert each.parts.application == pytest.approx(0.040, abs=0.001)
        # Both ways, and the bytes of one packet each way.
        assert each.parts.propagation == pytest.approx(0.030, abs=0.003)
        assert each.parts.transmission == pytest.approx(60e3 / 1448 * 1514 * 8 / 8e6, rel=0.05)
        assert each.parts.loss == 0
        assert each.other_paths_s == 0


def test_a_lost_last_packet_is_loss(tmp_path: Path) -> None:
    _, found = asked(tmp_path, scenario(response="4 kB", loss="10 %", duration="20 s"))
    slowest = max(found, key=lambda each: each.parts.total)
    assert slowest.parts.loss > 0.5 * slowest.parts.total


def test_an_ample_link_leaves_the_window(tmp_path: Path) -> None:
    _, (first, *_) = asked(tmp_path, scenario(response="500 kB", rate="500 Mbps", delay="50 ms", queue="1000 packets"))
    assert first.parts.window > 0.6 * first.parts.total


def test_a_slower_path_is_waited_for(tmp_path: Path) -> None:
    text = scenario(transport="mptcp", more=SECOND.replace('\nloss = "1 %"', ""), response="300 kB")
    text = text.replace("[host.client]", 'path_manager = "fullmesh"\nscheduler = "roundrobin"\n[host.client]')
    _, found = asked(tmp_path, text)
    last = found[-1]
    assert last.path.startswith("10.0.2.1")
    assert last.other_paths_s > 0.1
