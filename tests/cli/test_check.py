from pathlib import Path
from typing import Any

import pytest

from polypath.cli.markdown import validation_page
from polypath.labs import catalogue
from polypath.labs.expectations import Row

#: The goodput of the handmade Recording's iperf is 12 Mbps, below the bound of aggregation/tcp.


def test_a_miss_is_printed_and_exits_1(polypath: Any, engine: Any) -> None:
    outcome = polypath("check", "aggregation")
    assert outcome.code == 1
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert "aggregation/tcp 19-20 Mbps 18.5 to 20 Mbps 12 Mbps MISS" in lines
    assert "aggregation/mptcp twice TCP 1.85 to 2.05 x TCP 1 x TCP MISS" in lines
    every = len(catalogue()["aggregation"].expectations)
    assert f"0 of {every} expectations met in 1 labs" in outcome.out


def test_each_run_of_the_lab_is_run_once(polypath: Any, engine: Any) -> None:
    polypath("check", "aggregation", "--seed", "9")
    assert [plan.data["seed"] for plan in engine.plans] == [9] * len(catalogue()["aggregation"].runs)


def test_an_interrupted_check_exits_130(polypath: Any, engine: Any) -> None:
    engine.interrupted = True
    assert polypath("check", "aggregation").code == 130


def test_the_page_is_written_beside_a_miss(polypath: Any, engine: Any, tmp_path: Path) -> None:
    page = tmp_path / "docs" / "validation.md"
    assert polypath("check", "aggregation", "--markdown", page).code == 1
    text = page.read_text()
    assert "## Bandwidth aggregation" in text
    assert "| aggregation/tcp | 19-20 Mbps | 18.5 to 20 Mbps | 12 Mbps | **miss** |" in text


def test_a_page_that_cannot_be_written_is_refused_before_the_run(polypath: Any, engine: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert polypath("check", "aggregation", "--markdown", tmp_path / "file" / "page.md").code == 2
    assert engine.plans == []


@pytest.mark.parametrize(("ok", "word"), [(True, "ok"), (False, "**miss**")])
def test_cells_keep_the_table_whole(ok: bool, word: str) -> None:
    lab = catalogue()["aggregation"]
    page = validation_page({"aggregation": lab}, {"aggregation": [Row("a|b", "two\nlines", "any", "1", ok)]})
    assert page.endswith(f"| a\\|b | two lines | any | 1 | {word} |\n")
