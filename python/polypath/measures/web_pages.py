"""How a web page loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from polypath.measures.measure import SECONDS, Figure, Measure
from polypath.results import metrics, pages
from polypath.results.metrics import Connection
from polypath.results.pages import Load
from polypath.results.recording import Recording


def _of_page(row: Mapping[str, Any]) -> bool:
    return bool(row["application"] == "page")


def _seen(of: Callable[[Load], Figure]) -> Callable[[Recording, Connection], Figure]:
    def compute(recording: Recording, connection: Connection) -> Figure:
        found = pages.load(recording, connection)
        if found is None:
            raise metrics.MetricError(f"'{connection.name}' is no page")
        return of(found)

    return compute


FIGURES = (
    Measure(
        "page_load",
        SECONDS,
        "page",
        "load time of the page",
        "time until all objects of a page are there",
        _seen(lambda found: found.load_ns),
        source="docs/pages.md",
        heading="page s",
        kept=("page", "load_s"),
        beside=True,
        applies=pages.has_objects,
        unfinished=_of_page,
    ),
    Measure(
        "first_object",
        SECONDS,
        "page",
        "time to the first object",
        "time until the first object of a page is there",
        _seen(lambda found: found.first_ns),
        source="docs/pages.md",
        heading="object s",
        kept=("page", "first_object_s"),
        beside=True,
        applies=pages.has_objects,
        unfinished=_of_page,
    ),
)
