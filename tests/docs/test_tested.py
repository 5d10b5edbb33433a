"""The page that counts what tests Polypath counts what the other pages say."""

from __future__ import annotations

from pathlib import Path

from ..scripts import loaded

DOCS = Path(__file__).parents[2] / "docs"


def test_campaigns_are_counted_as_their_pages_have_them() -> None:
    """A change is taken over by `python docs/tested.py`."""
    committed = loaded(DOCS / "tested.py").PAGE.read_text(encoding="utf-8").splitlines()
    rows = list(loaded(DOCS / "tested.py").campaigns())
    assert len(rows) > 10
    for row in rows:
        assert f"| {' | '.join(row)} |" in committed
