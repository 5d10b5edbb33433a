"""The page of the algorithms' behaviour is what they do now."""

from __future__ import annotations

from pathlib import Path

from polypath import registry

from ..scripts import loaded

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_what_the_algorithms_do() -> None:
    """A change that is meant is taken over by `python docs/behaviour.py`, and reviewed as a change of that page."""
    module = loaded(DOCS / "behaviour.py")
    committed = module.PAGE.read_text()
    assert module.page().splitlines() == committed.splitlines()
    for kind, part in (("scheduler", "### Schedulers: "), ("congestion", "### Congestion control: ")):
        tables = [table for table in committed.split("### ") if f"### {table}".startswith(part)]
        assert len(tables) == 6
        for name in registry.entries(kind):
            assert all(f"| `{name}` |" in table for table in tables)
