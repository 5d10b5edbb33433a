"""The page of packetdrill's scripts, and the reasons that it gives."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "conformance" / "packetdrill"
PAGE = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ((?:mptcp|tcp)/\S+\.pkt)(, IPv[46])? \| (passed|failed|not supported) \| (.*) \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE)


def test_the_page_begins_with_its_text() -> None:
    assert PAGE.startswith((FOLDER / "page.md").read_text(encoding="utf-8").rstrip())


def test_every_difference_has_a_reason_and_nothing_else() -> None:
    assert len(ROWS) > 100
    assert [row for row in ROWS if (row[2] == "passed") == bool(row[3])] == []


@pytest.mark.parametrize("reason", tomllib.loads((FOLDER / "reasons.toml").read_text(encoding="utf-8"))["difference"])
def test_every_reason_stands_on_the_page(reason: dict[str, object]) -> None:
    assert any(row[3] == reason["reason"] for row in ROWS)


def test_the_counts_are_those_of_the_rows() -> None:
    table = re.findall(r"^\| (tcp|mptcp), (IPv[46]) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert len(table) == 4
    for suite, version, run, *outcomes in table:
        of = [row for row in ROWS if row[0].startswith(f"{suite}/") and row[1] in ("", f", {version}")]
        foreign = "v6.pkt" if version == "IPv4" else "v4.pkt"
        counted = [row[2] for row in of if not row[0].endswith(foreign)]
        assert int(run) == len(counted)
        assert [int(it) for it in outcomes] == [counted.count(it) for it in ("passed", "failed", "not supported")]
