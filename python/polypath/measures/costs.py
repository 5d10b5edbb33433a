"""What a run costs over links that have a price or a cap."""

from __future__ import annotations

from collections.abc import Sequence

from polypath.measures.measure import MEGABYTES, NUMBER, PART, Figure, Measure
from polypath.results import costs, metrics
from polypath.results.recording import Recording


def _costs(recording: Recording, measure: str, link: str | None) -> Sequence[costs.LinkCost]:
    """One link, or all that have a price or a cap."""
    found = costs.of(recording)
    chosen = () if found is None else [each for each in found.links if link in (None, each.link)]
    if not chosen:
        which = "no link" if link is None else f"no link '{link}'"
        raise metrics.MetricError(f"measure '{measure}': {which} has a price or a cap")
    return chosen


def _together(recording: Recording, measure: str, link: str | None) -> costs.Costs:
    return costs.Costs(tuple(_costs(recording, measure, link)))


def _cost(recording: Recording, *, link: str | None = None) -> Figure:
    return _together(recording, "cost", link).cost


def _priced(recording: Recording, *, link: str | None = None) -> Figure:
    return _together(recording, "priced", link).priced_bytes


def _over_cap(recording: Recording, *, link: str | None = None) -> Figure:
    return _together(recording, "over_cap", link).over_cap_bytes


def _dear_share(recording: Recording, *, link: str) -> Figure:
    links = _costs(recording, "dear_share", None)
    own, total = sum(each.bytes for each in _costs(recording, "dear_share", link)), sum(each.bytes for each in links)
    return own / total if total else None


_SOURCE = "docs/hybrid.md"

FIGURES = (
    Measure(
        "cost",
        NUMBER,
        "run",
        "cost of the run",
        "what bytes over links with a price cost, or over one of them",
        _cost,
        source=_SOURCE,
        heading="cost",
        kept=("costs", "cost"),
    ),
    Measure(
        "priced",
        MEGABYTES,
        "run",
        "bytes over links with a price, in the run",
        "bytes of IP packets over links with a price, or over one of them",
        _priced,
        source=_SOURCE,
        heading="priced MB",
        kept=("costs", "priced_bytes"),
    ),
    Measure(
        "over_cap",
        MEGABYTES,
        "run",
        "bytes beyond caps, in the run",
        "bytes beyond the caps of links, or of one of them",
        _over_cap,
        source=_SOURCE,
        heading="over cap MB",
        kept=("costs", "over_cap_bytes"),
    ),
    Measure(
        "dear_share",
        PART,
        "link",
        "share of a link with a price",
        "a link's part of the bytes over all links that have a price or a cap",
        _dear_share,
        source=_SOURCE,
    ),
)
