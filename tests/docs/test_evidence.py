"""The page of evidence has the figures of the pages that it sums up, and is short."""

from __future__ import annotations

from pathlib import Path

from ..scripts import loaded

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "evidence.md").read_text(encoding="utf-8")

#: Rows of the page of tests that are no evidence of a campaign.
OTHERS = {
    "Fuzz targets",
    "Gates on instructions per packet-hop",
    "Blocks of commands in the documentation, all run by tests",
}


def test_its_figures_are_those_of_the_campaigns_pages() -> None:
    rows = [row for row in loaded(DOCS / "tested.py").campaigns() if row[0] not in OTHERS]
    assert len(rows) > 10
    assert [figure for _, figure, _ in rows if figure not in PAGE] == []


def test_it_has_at_most_1500_words() -> None:
    assert len(PAGE.split()) <= 1500
