import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from polypath import Scenario, run

SLOW = """
duration = "4 s"
[defaults]
profile = "linux"
congestion = "reno"
[host.client]
[host.server]
[link.dsl]
ends = ["client:dsl", "server"]
rate = "4 Mbps"
delay = "10 ms"
queue = "30 packets"
[[application]]
name = "get"
kind = "bulk"
transport = "tcp"
reverse = true
"""


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("captures")
    run(Scenario.parse(SLOW, "slow.toml"), captures="hosts", directory=into)
    return into / "client.pcapng"


def test_a_capture_becomes_a_scenario_that_runs(polypath: Any, capture: Path, tmp_path: Path) -> None:
    out = tmp_path / "twin.toml"
    outcome = polypath("twin", str(capture), "--out", str(out))
    assert outcome.code == 0, outcome.err
    assert [line.split()[0] for line in outcome.out.splitlines()[1:]] == [
        "goodput",
        "RTT,",
        "RTT,",
        "lost",
        "goodput",
        "RTT,",
    ]
    assert tomllib.loads(out.read_text())["link"]["dsl"]["rate"] == "4 Mbps"
    assert polypath("run", str(out)).code == 0
    ranked = json.loads(polypath("what-if", str(out), "--seeds", "1", "--json").out)
    assert {row["name"] for row in ranked["ranking"]} >= {"as it is", "congestion control bbr", "buffers of 1 MB"}
    assert ranked["measure"] == "goodput_mbps"
    written = out.read_text()
    again = polypath("twin", str(capture), "--out", str(out))
    assert again.code == 2
    assert "exists; name another file" in again.err
    assert out.read_text() == written


def test_a_twin_is_printed_as_text_or_json(polypath: Any, capture: Path) -> None:
    text = polypath("twin", str(capture)).out
    assert tomllib.loads(text)["defaults"]["congestion"] == "reno"
    assert re.search(r'delay = "(9\.98.|10) ms"  # one way, half of the least round trip; 9\.\d+ to 10\.\d+ ms', text)
    data = json.loads(polypath("twin", str(capture), "--json").out)
    assert data["scenario"] == text
    (path,) = data["paths"]
    for key in ("rate_bps", "delay_s", "queue_bytes", "loss"):
        assert path[key]["low"] <= path[key]["value"] <= path[key]["high"]


def test_what_would_help_is_a_table(polypath: Any, tmp_path: Path) -> None:
    scenario = tmp_path / "slow.toml"
    scenario.write_text(SLOW)
    outcome = polypath("what-if", str(scenario), "--seeds", "2", "--goal", "goodput")
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[0] == "get: goodput, 2 seeds; the best first"
    assert any(line.startswith("as it is") for line in lines)
    refused = polypath("what-if", str(scenario), "--goal", "fun")
    assert refused.code == 2
    assert "a goal is goodput, completion, delay-median, delay-p95" in refused.err


def test_a_capture_is_explained_by_its_twin(polypath: Any, capture: Path) -> None:
    outcome = polypath("explain", str(capture))
    assert outcome.code == 0, outcome.err
    assert "twin: goodput 3." in outcome.err
    assert outcome.out.startswith("app: ")
    assert outcome.out.splitlines()[1].split() == ["path", "MB", "Mbps", "share"]
    told = polypath("explain", str(capture), "--seed", "3")
    assert told.code == 2
    assert "is a capture; --set, --seed and --run are of a lab or a scenario" in told.err
