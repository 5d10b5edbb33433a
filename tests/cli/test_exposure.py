"""polypath exposure shows what an eavesdropper gets, of a stored result or of a run made for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polypath.results import Recording


@pytest.fixture
def stored(recording: Recording, tmp_path: Path) -> Path:
    recording.save(tmp_path / "stored")
    return tmp_path / "stored"


def rows(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_stored_result(polypath: Any, stored: Path) -> None:
    """By hand: subflow 0 carries all 2800 bytes, subflow 1 the second half; the last MAC has no other subflow."""
    outcome = polypath("exposure", stored)
    assert outcome.code == 0
    found = rows(outcome.out)
    assert found[0] == "iperf from the client: 2,800 bytes"
    assert "path iperf, subflow 0 (eth0) 100.0% 2,800 1 100.0% 50.0% 0.0%" in found
    assert "path iperf, subflow 1 (eth1, backup) 50.0% 1,400 1 49.1% 0.0% 0.0%" in found
    assert outcome.err.startswith("warning: cross: no figures of UDP")
    assert polypath("exposure", stored.parent).out == outcome.out


DOWN = """
duration = "1 s"
host = { client = {}, server = {} }
link.path0 = { ends = ["client", "server"], rate = "10 Mbps", up = false }
application = [{ kind = "bulk" }]
"""


def test_without_data_it_says_so(polypath: Any, tmp_path: Path) -> None:
    (tmp_path / "down.toml").write_text(DOWN)
    outcome = polypath("exposure", tmp_path / "down.toml")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "warning: no connection sent any data\n")


def test_json_has_the_figures_unrounded(polypath: Any, stored: Path) -> None:
    outcome = polypath("exposure", stored, "--json", "--cbc", "700")
    told = json.loads(outcome.out)
    assert told["block_bytes"] == 700
    (stream,) = told["streams"]
    assert (stream["connection"], stream["side"], stream["bytes"], stream["links_to_read"]) == (
        "iperf",
        "client",
        2800,
        None,
    )
    second = stream["places"][1]
    # two blocks were seen, and the first of them lacks its predecessor
    assert (second["seen_bytes"], second["readable_share"], second["messages_share"]) == (1400, 0.25, None)


def test_a_scenario_is_run_with_its_segments(polypath: Any, engine: Any, scenario: Path) -> None:
    outcome = polypath("exposure", scenario, "--seed", "3")
    assert outcome.code == 0
    assert [plan.data["seed"] for plan in engine.plans] == [3]
    assert engine.options[0].segments
    assert "iperf from the client" in outcome.out


def test_sets_of_links(polypath: Any, tmp_path: Path) -> None:
    outcome = polypath("exposure", "aggregation", "--run", "mptcp", "--set", "duration=300 ms", "--links", "2")
    assert outcome.code == 0
    found = rows(outcome.out)
    assert found[0].endswith("with keys on the neighbour, 1 link to tap to read anything")
    (both,) = [row for row in found if row.startswith("links path0 + path1 ")]
    assert both.split()[4] == "100.0%"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["aggregation"], "choose one run with --run: tcp, mptcp, window-100kB, both-ways"),
        (["agregation"], "unknown lab 'agregation'; did you mean 'aggregation'?"),
        (["stored", "--seed", "2"], "stored is a result; --set, --seed and --run are of a lab or a scenario"),
        (["stored", "--links", "2"], "a set of 2 links was asked for, and packets pass 0 links"),
        (["several"], "several has the results of several runs; name one: several/mptcp, several/tcp"),
        (
            ["bare"],
            "the result has no segments; record them with `run --plot` or `segments = true` in [record]",
        ),
    ],
)
def test_mistakes(
    polypath: Any,
    recording: Recording,
    stored: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    line: str,
) -> None:
    monkeypatch.chdir(stored.parent)
    for name in ("mptcp", "tcp"):
        recording.save(Path("several") / name)
    tables = {name: table for name, table in recording.tables.items() if name != "segments"}
    Recording(tables, recording.plan, recording.metadata).save("bare")
    outcome = polypath("exposure", *arguments)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"polypath: {line}\n")


def test_the_documentation_shows_what_is_printed(polypath: Any) -> None:
    page = (Path(__file__).parents[2] / "docs" / "exposure.md").read_text(encoding="utf-8")
    command, _, shown = page.split("```console\n$ ")[1].split("```")[0].partition("\n")
    assert shown.split() == polypath(*command.split()[1:]).out.split()
