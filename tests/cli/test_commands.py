import json
from pathlib import Path
from typing import Any

from polypath.labs import catalogue
from polypath.scenario import Scenario, json_schema


def test_without_a_command_there_is_help(polypath: Any) -> None:
    outcome = polypath()
    assert outcome.code == 0
    assert "Usage: polypath" in outcome.out
    for command in ("run", "labs", "show", "check", "algorithms", "import", "schema", "bench"):
        assert f" {command} " in outcome.out


def test_version(polypath: Any) -> None:
    outcome = polypath("--version")
    assert outcome.code == 0
    assert outcome.out.startswith("polypath 0.")


def test_labs_lists_the_catalogue(polypath: Any) -> None:
    outcome = polypath("labs")
    assert outcome.code == 0
    first_words = {line.split()[0] for line in outcome.out.splitlines() if line.strip()}
    assert catalogue().keys() <= first_words


def test_show_has_question_picture_and_expected_numbers(polypath: Any) -> None:
    outcome = polypath("show", "aggregation")
    assert outcome.code == 0
    lab = catalogue()["aggregation"]
    assert lab.question in outcome.out
    assert lab.picture.rstrip() in outcome.out
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert "aggregation/tcp 19-20 Mbps 18.5 to 20 Mbps" in lines


def test_algorithms_come_from_the_registry(polypath: Any) -> None:
    outcome = polypath("algorithms", "scheduler")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert {"default", "roundrobin", "redundant"} <= {line.split()[0] for line in lines if line.strip()}
    assert any("num_segments = 1, cwnd_limited = true" in " ".join(line.split()) for line in lines)
    assert "cubic" not in outcome.out
    assert "cubic" in polypath("algorithms").out


def test_algorithms_tell_which_engines_take_them(polypath: Any) -> None:
    """Below each description, where an engine may lack some."""
    cases = (("congestion", "dctcp", "ewtcp"), ("queue", "fq-pie", "dualpi2"), ("scheduler", "blest", "otias"))
    for kind, both, one in cases:
        told: dict[str, str] = {}
        for line in polypath("algorithms", kind).out.splitlines():
            name = line.split(" ", 1)[0] or next(reversed(told), "")
            told[name] = told.get(name, "") + line
        assert "engines: sim, linux" in told[both]
        assert "engines: sim" in told[one]
        assert "sim, linux" not in told[one]
        assert ("transports: tcp, mptcp, quic, mpquic" in told[one]) == (kind == "congestion")


def test_schema_is_json(polypath: Any, tmp_path: Path) -> None:
    outcome = polypath("schema")
    assert outcome.code == 0
    assert json.loads(outcome.out) == json_schema()
    assert polypath("schema", "--out", tmp_path / "schema.json").out == ""
    assert json.loads((tmp_path / "schema.json").read_text()) == json_schema()


TOPOLOGY = """desc:Simple configuration with two para path
topoType:MultiIf
path_c2r_0:10,10,4
path_c2r_1:40,40,4
"""


def test_an_imported_topology_of_mininet_runs(polypath: Any, tmp_path: Path) -> None:
    out = tmp_path / "single.toml"
    link = ["--link", "tc,bw=10,delay=5ms,max_queue_size=50"]
    made = polypath("import", "--topo", "single,3", *link, "--iperf", "h1", "h3", "--pingall", "--out", out)
    assert (made.code, made.err) == (0, "")
    ran = polypath("run", out)
    assert ran.code == 0
    assert " → 10.0.0.3:" in ran.out
    assert ran.out.count("1 request, delay median 20.") == 6


def test_import_gives_a_scenario(polypath: Any, tmp_path: Path) -> None:
    (tmp_path / "topo").write_text(TOPOLOGY)
    (tmp_path / "xp").write_text("xpType:iperf\niperfTime:10\n")
    outcome = polypath("import", tmp_path / "topo", tmp_path / "xp")
    assert outcome.code == 0
    assert Scenario.parse(outcome.out, "imported.toml").plan().data["applications"][0]["work"]["kind"] == "bulk"


def test_run_takes_a_minitopo_pair(polypath: Any, engine: Any, tmp_path: Path) -> None:
    (tmp_path / "topo").write_text(TOPOLOGY)
    (tmp_path / "xp").write_text("xpType:iperf\niperfTime:10\nsnaplenPcap:100\n")
    outcome = polypath("run", "--topo", tmp_path / "topo", "--xp", tmp_path / "xp")
    assert outcome.code == 0
    assert len(engine.plans) == 1
    assert outcome.err.startswith("warning: ")


def test_bench_counts_packet_hops(polypath: Any) -> None:
    outcome = polypath("bench", "W6", "--seconds", "0.2", "--json")
    assert outcome.code == 0
    measured = json.loads(outcome.out)
    assert (measured["work"], measured["simulated_s"], measured["subflows"]) == ("W6", 0.2, 16)
    assert measured["packet_hops"] > 1000
    assert 0 < measured["share_of_capacity"] < 1
