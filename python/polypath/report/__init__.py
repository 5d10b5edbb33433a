"""The report page: results as one file of HTML that a browser opens without a network.

`document.html(page.build(..))` is the file. Its program is `page.html`, which `make web` builds from `web/`.
"""

from polypath.report.document import filled, html, is_unchanged, sealed
from polypath.report.page import FINE_RUNS, Judged, Labelled, LabOf, Page, SweepOf, build

__all__ = [
    "FINE_RUNS",
    "Judged",
    "LabOf",
    "Labelled",
    "Page",
    "SweepOf",
    "build",
    "filled",
    "html",
    "is_unchanged",
    "sealed",
]
