"""What is wrong with a claim that names a measure, its parameters and its connections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from polypath.measures import REGISTRY
from polypath.results.settled import settled
from polypath.scenario import Scenario
from polypath.scenario.errors import Problem, unknown_at
from polypath.scenario.positions import Path
from polypath.scenario.tables import application_names
from polypath.scenario.validate import show
from polypath.units import nearest

#: The parameters of measures that name connections.
_CONNECTIONS = ("connection", "connections", "numerator")


def problems(
    place: Path, measure: str, parameters: Mapping[str, Any], own: Sequence[str], scenario: Scenario | None
) -> Iterator[Problem]:
    """The faults of the table at `place`, which has its `own` keys beside the parameters of its measure.

    Without a `scenario`, any connection may be named.
    """
    measure = settled(measure)
    if measure not in REGISTRY:
        yield unknown_at((*place, "measure"), "measure", measure, REGISTRY)
        return
    taken = REGISTRY[measure].parameters
    known = [*own, *taken]
    meant = set()
    for key in parameters:
        if key not in taken:
            hint = nearest(key, known)
            listed = "" if hint else f"; measure '{measure}' takes {', '.join(taken) or 'none'}"
            meant.add(hint)
            yield Problem((*place, key), f"unknown key '{key}' in {show(place)}{listed}", hint)
    for key, parameter in taken.items():
        if parameter.default is parameter.empty and key not in parameters and key not in meant:
            yield Problem(place, f"{show(place)}: measure '{measure}' needs '{key}'")
    if scenario is None:
        return
    for key in _CONNECTIONS:
        given = parameters.get(key, [])
        for name in given if isinstance(given, list) else [given]:
            if str(name) not in (there := _connections(scenario, str(name))):
                yield unknown_at((*place, key), "connection", str(name), there)


def _connections(scenario: Scenario, wanted: str) -> list[str]:
    """The connections of a run; an application with many has a plan that names them."""
    written = application_names(scenario)
    if wanted in written:
        return written
    first = scenario.at([axis.values[0] for axis in scenario.axes]) if scenario.axes else scenario
    return [str(each["name"]) for each in first.plan().view["applications"]]
