"""The page of queues is what they do now."""

from __future__ import annotations

from pathlib import Path

from polypath import registry

from ..scripts import loaded

DOCS = Path(__file__).parents[2] / "docs"


def test_ping_beside_a_download_is_as_the_page_has_it() -> None:
    """A change that is meant is taken over by `python docs/queues.py`, and reviewed as a change of that page."""
    module = loaded(DOCS / "queues.py")
    committed = (DOCS / "queues.md").read_text()
    table = module.bloat()
    assert "\n".join(table) in committed
    for name in registry.entries("queue"):
        assert any(line.startswith(f"| `{name}` |") for line in table)


def test_prague_beside_cubic_is_as_the_page_has_it() -> None:
    module = loaded(DOCS / "queues.py")
    assert "\n".join(module.l4s()) in (DOCS / "queues.md").read_text()
