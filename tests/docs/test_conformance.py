"""The page of packetdrill's scripts, and the reasons that it gives."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "assurance" / "packetdrill"
PAGE = (ROOT / "assurance" / "records" / "conformance.md").read_text(encoding="utf-8")
OUTCOME = "(passed|failed|not supported)"
ROW = re.compile(rf"^\| ((?:mptcp|tcp)/\S+\.pkt)(, IPv[46])? \| {OUTCOME} \| {OUTCOME} \| (.*) \|$", re.MULTILINE)
#: Script, version of IP if they differ, our outcome, the kernel's, the reason.
ROWS = ROW.findall(PAGE)


def test_the_page_begins_with_its_text() -> None:
    written = (FOLDER / "page.md").read_text(encoding="utf-8").rstrip()
    release = re.search(r"against Linux (\S+),", PAGE)
    assert release is not None
    assert PAGE.startswith(written.format(release=release[1]))


def test_every_difference_has_a_reason_and_nothing_else() -> None:
    assert len(ROWS) > 100
    assert [row for row in ROWS if (row[2] == "passed") == bool(row[4])] == []


@pytest.mark.parametrize("reason", tomllib.loads((FOLDER / "reasons.toml").read_text(encoding="utf-8"))["difference"])
def test_every_reason_stands_on_the_page(reason: dict[str, object]) -> None:
    assert any(row[4] == reason["reason"] for row in ROWS)


def test_the_counts_are_those_of_the_rows() -> None:
    table = re.findall(r"^\| (tcp|mptcp), (IPv[46]) " + r"\| (\d+) " * 8 + r"\|$", PAGE, re.MULTILINE)
    assert len(table) == 4
    for suite, version, run, *outcomes in table:
        of = [row for row in ROWS if row[0].startswith(f"{suite}/") and row[1] in ("", f", {version}")]
        foreign = "v6.pkt" if version == "IPv4" else "v4.pkt"
        counted = [(row[2], row[3]) for row in of if not row[0].endswith(foreign)]
        assert int(run) == len(counted)
        ours = [outcome for outcome, _ in counted]
        passed = [(own == "passed", kernel == "passed") for own, kernel in counted]
        assert [int(it) for it in outcomes] == [
            *(ours.count(it) for it in ("passed", "failed", "not supported")),
            *(passed.count(it) for it in ((True, True), (False, True), (True, False), (False, False))),
        ]
