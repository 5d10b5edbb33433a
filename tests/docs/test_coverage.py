"""The table of how often intervals cover, against what makes it."""

from __future__ import annotations

import re
from pathlib import Path

from ..scripts import loaded

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_is_that_of_these_intervals() -> None:
    coverage = loaded(DOCS / "coverage.py")
    page = (DOCS / "statistics.md").read_text(encoding="utf-8")
    name = "normal, 20 ± 3"
    draw, mean = coverage.FIGURES[name]
    row = re.search(rf"^\| mean of figures: {re.escape(name)} \|(.*)\|$", page, re.MULTILINE)
    assert row is not None
    written = [cell.strip() for cell in row[1].split("|")]
    for seeds in (6, 10):
        found = coverage.of_figures(draw, mean, seeds, coverage.REPETITIONS)
        assert f"{100 * found:.1f} %" == written[coverage.SEEDS.index(seeds)]


def test_the_table_of_seeds_until_is_that_of_these_intervals() -> None:
    coverage = loaded(DOCS / "coverage.py")
    page = (DOCS / "statistics.md").read_text(encoding="utf-8")
    name = "normal, 20 ± 10"
    cell = coverage.adaptive_cell(*coverage.ADAPTIVE[name], coverage.WIDTHS[0])
    assert f"| {name} | {cell} |" in page
