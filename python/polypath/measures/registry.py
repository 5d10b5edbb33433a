"""All figures, by name and by column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from polypath.measures import (
    connections,
    controllers,
    costs,
    exposures,
    flows,
    links,
    repair,
    requests,
    subflows,
    through_tunnels,
    videos,
    web_pages,
)
from polypath.measures.measure import Figure, Measure
from polypath.results.recording import Recording

#: In the order of their columns in tables.
_GROUPS: Final = (
    connections,
    requests,
    flows,
    videos,
    web_pages,
    costs,
    repair,
    subflows,
    links,
    controllers,
    through_tunnels,
    exposures,
)

REGISTRY: Final[Mapping[str, Measure]] = {each.name: each for group in _GROUPS for each in group.FIGURES}

#: Those of which a sweep's table has a column, by that column.
MEASURES: Final[Mapping[str, Measure]] = {
    each.column: each for each in REGISTRY.values() if each.kept and each.of != "subflow"
}


def short(column: str) -> str:
    """The name of a measure without its unit."""
    return MEASURES[column].name


def figure(recording: Recording, name: str, **parameters: Any) -> Figure:
    """A figure by its name, in the unit that people read. Raises MetricError, KeyError."""
    return REGISTRY[name](recording, parameters)
