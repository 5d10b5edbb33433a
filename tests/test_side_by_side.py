"""The comparison with csg-htsim: what benches/htsim/side_by_side.py makes of what the programs print."""

from pathlib import Path
from typing import Any

import pytest

from polypath import folders

from .scripts import loaded

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benches" / "htsim" / "side_by_side.py"
LINE = (
    '{{"work": "W1", "packet_hops": {hops}, "share_of_capacity": 0.5, "cpu_seconds": {cpu}, '
    '"set_up_cpu_seconds": {set_up}, "memory_mb": {memory}}}\n'
)


@pytest.fixture(scope="module")
def script() -> Any:
    return loaded(SCRIPT)


def line(hops: int = 1000, cpu: float = 2e-4, set_up: float = 0.25, memory: float = 8.5) -> str:
    return LINE.format(hops=hops, cpu=cpu, set_up=set_up, memory=memory)


def test_the_last_line_is_the_result(script: Any) -> None:
    assert script.parse(f"At 3 RTO 250\n{line()}") == script.Run(1000, 2e-4, 0.25, 8.5, 0.5)


@pytest.mark.parametrize("text", ["", "Abort.\n", "[]\n", '{"packet_hops": 1}\n', line().replace("8.5", "null")])
def test_what_is_no_result_is_said(script: Any, text: str) -> None:
    with pytest.raises(script.Failure, match="no result"):
        script.parse(text)


def test_the_least_of_each_cost_counts(script: Any) -> None:
    runs = [script.parse(line(cpu=3.0, set_up=0.1, memory=9)), script.parse(line(cpu=2.0, set_up=0.2, memory=8))]
    assert script.least(runs) == script.Run(1000, 2.0, 0.1, 8.0, 0.5)


def test_runs_that_differ_are_no_rounds_of_one_work(script: Any) -> None:
    with pytest.raises(script.Failure, match="same"):
        script.least([script.parse(line(hops=1000)), script.parse(line(hops=1001))])


def test_the_ratio_is_that_of_a_packet_hop_in_the_same_round(script: Any) -> None:
    rounds = [(4e-4, 1e-4), (8e-4, 4e-4), (9e-4, 2e-4)]
    htsim = [script.parse(line(hops=1000, cpu=cpu)) for cpu, _ in rounds]
    ours = [script.parse(line(hops=500, cpu=cpu, memory=20)) for _, cpu in rounds]
    head, rule, row = script.table({"W1": script.Pair(htsim, ours)}).splitlines()
    assert row == "| W1 | 400 | 200 | 2.00 | 1.00 to 2.25 | 4.00 | 0.500, 0.500 | 8, 20 | 0.25, 0.25 |"
    assert head.count("|") == rule.count("|") == row.count("|")


@pytest.mark.parametrize(("load", "said"), [(0.2, False), (3.1, True)])
def test_a_busy_machine_makes_a_preliminary_table(script: Any, load: float, said: bool) -> None:
    assert ("Preliminary" in script.conditions(5, load, "a processor", "g++ 12")) is said


def test_a_page_keeps_what_is_around_the_table(script: Any) -> None:
    page = f"before\n\n{script.BEGIN}\nold\n{script.END}\n\nafter\n"
    assert script.replaced(page, "new") == page.replace("old", "new")
    with pytest.raises(script.Failure, match="in the page"):
        script.replaced("before\n", "new")


def test_the_performance_page_has_a_place_for_the_table(script: Any) -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert script.replaced(script.replaced(page, "new"), "newer").count("newer") == 1
    assert script.COMMIT[:7] in page


def test_a_command_that_is_missing_or_fails_is_one_line(script: Any) -> None:
    with pytest.raises(script.Failure, match="is missing"):
        script.done(["/no/such/program"])
    with pytest.raises(script.Failure, match="no reason given"):
        script.done(["false"])


@pytest.mark.parametrize("base", ["", "relative", "/absolute"])
def test_the_folder_is_in_the_package_s_cache(script: Any, monkeypatch: pytest.MonkeyPatch, base: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", base)
    assert script.cache() == folders.cache() / "htsim"


def test_programs_take_turns(script: Any, tmp_path: Path) -> None:
    said = tmp_path / "said"
    for name, cpu in (("htsim", 4e-4), ("ours", 2e-4)):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho {name} $1 >> {said}\ncat << END\n{line(cpu=cpu)}END\n")
        program.chmod(0o755)
    pairs = script.measure(tmp_path / "htsim", tmp_path / "ours", ["W1", "W3"], 2)
    assert [pairs[work].ratios(lambda run: run.nanoseconds) for work in pairs] == [pytest.approx([2, 2])] * 2
    assert said.read_text().split("\n")[:-1] == ["htsim W1", "ours W1", "htsim W3", "ours W3"] * 2
