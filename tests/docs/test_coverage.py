"""The table of how often intervals cover, against what makes it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_is_that_of_these_intervals() -> None:
    spec = importlib.util.spec_from_file_location("coverage_of_intervals", DOCS / "coverage.py")
    assert spec is not None
    assert spec.loader is not None
    coverage = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(coverage)
    page = (DOCS / "statistics.md").read_text(encoding="utf-8")
    name = "normal, 20 ± 3"
    draw, mean = coverage.FIGURES[name]
    row = re.search(rf"^\| mean of figures: {re.escape(name)} \|(.*)\|$", page, re.MULTILINE)
    assert row is not None
    written = [cell.strip() for cell in row[1].split("|")]
    for seeds in (6, 10):
        found = coverage.of_figures(draw, mean, seeds, coverage.REPETITIONS)
        assert f"{100 * found:.1f} %" == written[coverage.SEEDS.index(seeds)]
