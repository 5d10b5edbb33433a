"""Publishes the records of the campaigns (assurance/records) as pages of the documentation.

In the repository, links lead to the records themselves. In the built documentation they lead to the published pages.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = "evidence"
"""Where the records are published, in the documentation's folder."""

RECORDS = Path(__file__).parents[1] / "assurance" / "records"


def publish(documentation: Path) -> None:
    """Writes each record into the documentation's folder of evidence, with links that lead from there."""
    folder = documentation / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for record in RECORDS.glob("*.md"):
        text = record.read_text(encoding="utf-8").replace("](../../docs/", "](../")
        (folder / record.name).write_text(text, encoding="utf-8")


def published(text: str) -> str:
    """The text of a page whose links to records lead to the published pages."""
    return text.replace("../assurance/records/", f"{FOLDER}/")
