import json
from pathlib import Path
from typing import Any

import pytest

from polypath.cli import jobs
from polypath.engines import Options, get
from polypath.results import Recording


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    into = tmp_path_factory.mktemp("captures")
    (job,) = jobs.of_target("aggregation", ["mptcp"], ["duration=500 ms"], None)
    get("sim").run(job.points[0].plan, Options("hosts", into))
    return [str(path) for path in sorted(into.glob("*.pcapng"))]


def test_a_capture_is_shown_as_a_run_is(polypath: Any, captures: list[str]) -> None:
    outcome = polypath("trace", *captures)
    assert outcome.code == 0
    rows = outcome.out.splitlines()
    assert rows[0].startswith("client+server")
    assert rows[1].split() == ["connection", "transport", "Mbps", "share", "RTT", "ms", "resent", "rate"]
    assert rows[3].split()[:4] == ["10.0.0.1:32768", "→", "10.0.2.2:5001", "eth0"]
    assert outcome.err == ""


def test_everything_goes_into_a_folder(polypath: Any, captures: list[str], tmp_path: Path) -> None:
    out = tmp_path / "result"
    outcome = polypath("trace", *captures, "--out", str(out), "--plot", "--interval", "50 ms")
    assert outcome.code == 0, outcome.err
    recording = Recording.load(out)
    assert recording.metadata.engine == "capture"
    assert recording.table("segments").height > 0
    assert set(recording.table("subflows")["time_ns"] % 50_000_000) == {0}
    plots = {path.stem for path in (out / "plots").iterdir()}
    assert {"rate", "sequence-beginning", "window-rtt", "topology"} <= plots
    assert not (out / "scenario.toml").exists()
    assert polypath("report", str(out)).code == 0
    assert polypath("trace", *captures, "--out", str(out)).code == 0, "an earlier result is replaced"


def test_json(polypath: Any, captures: list[str]) -> None:
    outcome = polypath("trace", *captures, "--json")
    found = json.loads(outcome.out)
    assert [len(connection["subflows"]) for connection in found["connections"]] == [2]


def test_what_is_to_be_known_is_a_warning(polypath: Any, captures: list[str]) -> None:
    outcome = polypath("trace", captures[0])
    assert outcome.code == 0
    assert "captured nearer to the client only" in outcome.err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["nowhere.pcap"], "nowhere.pcap: No such file"),
        (["--plot", "x.pcap"], "--plot needs --out DIR"),
        (["--interval", "0 s", "x.pcap"], "--interval: "),
        (["--interval", "fast", "x.pcap"], "--interval: "),
        ([], "Missing argument"),
    ],
)
def test_bad_input_is_one_line(polypath: Any, given: list[str], said: str) -> None:
    outcome = polypath("trace", *given)
    assert outcome.code == 2
    assert said in outcome.err
    assert len(outcome.err.splitlines()) == 1
