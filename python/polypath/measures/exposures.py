"""What eavesdroppers on a path see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polypath.measures.measure import PART, Figure, Measure
from polypath.results.metrics import Connection
from polypath.results.recording import Recording

if TYPE_CHECKING:
    from polypath.results import exposure


def _most_exposed(recording: Recording, of: Connection) -> exposure.Exposure | None:
    # with numpy, which the table of a run does without
    from polypath.results.exposure import exposure

    found = [
        each
        for each in exposure(recording)
        if each.tap.kind == "path" and (each.stream.connection, each.stream.side) == (of.id, of.sender)
    ]
    return max(found, key=lambda each: each.share, default=None)


def _exposure(recording: Recording, of: Connection) -> Figure:
    found = _most_exposed(recording, of)
    return None if found is None else found.share


def _exposure_cbc(recording: Recording, of: Connection) -> Figure:
    found = _most_exposed(recording, of)
    return None if found is None or not found.share else found.readable_share / found.share


FIGURES = (
    Measure(
        "exposure",
        PART,
        "connection",
        "exposure",
        "part of the bytes that the path sees which sees most; of a run with segments",
        _exposure,
        source="docs/exposure.md",
    ),
    Measure(
        "exposure_cbc",
        PART,
        "connection",
        "exposure in CBC mode",
        "part of what that path sees which a known key opens in CBC mode, in blocks of 16 bytes",
        _exposure_cbc,
        source="docs/exposure.md",
    ),
)
