"""Labs of one's own: folders with a lab.toml, checked as a person's files are.

Tests hold the package's labs to the same rules, so these are read without the checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from polypath.labs.claims import problems
from polypath.labs.lab import FILE, Description, Expectation, Lab, described
from polypath.scenario import Scenario, ScenarioError
from polypath.scenario.document import Document
from polypath.scenario.errors import Problem, unknown_at
from polypath.scenario.positions import Path as Place


def folder_of(path: Path) -> Path | None:
    """The folder of the lab that a path names, itself or by its lab.toml; None: it names no lab."""
    try:
        if path.name == FILE and path.is_file():
            return path.parent
        return path if (path / FILE).is_file() else None
    except (OSError, ValueError):
        return None


def load(folder: Path) -> Lab:
    """Reads and checks the folder of a lab. Raises ScenarioError with file, line and the nearest valid name."""
    document = described(folder)
    lab = Lab.of(folder, document.said, own=True)
    scenarios = _scenarios(lab, document)
    document.require(
        problem
        for number, expectation in enumerate(lab.expectations)
        for problem in _problems(("expect", number), expectation, scenarios)
    )
    return lab


def _scenarios(lab: Lab, document: Document[Description]) -> dict[str, Scenario]:
    """The scenario of each run. Raises ScenarioError at the line of the run that has none."""
    base, found = lab.scenario(), {}
    for number, run in enumerate(lab.runs):
        try:
            found[run.name] = lab.at(run, base)
        except ScenarioError as error:
            message = f"run '{run.name}': {error.message}"
            raise document.error(Problem(("run", number), message, error.hint)) from error
    return found


def _problems(place: Place, expectation: Expectation, scenarios: Mapping[str, Scenario]) -> Iterator[Problem]:
    own = [*(field.alias or name for name, field in Expectation.model_fields.items())]
    scenario = scenarios[expectation.run]
    yield from problems(place, expectation.measure, expectation.parameters, own, scenario)
    axes = {axis.name: axis.labels for axis in scenario.axes}
    for axis, label in expectation.at.items():
        yield from _unknown((*place, "at"), axis, label, axes)
    if expectation.along is not None and expectation.along not in axes:
        yield unknown_at((*place, "along"), "axis", expectation.along, axes)


def _unknown(place: Place, axis: str, label: str, axes: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    if axis not in axes:
        yield unknown_at(place, "axis", axis, axes)
    elif label not in axes[axis]:
        yield unknown_at(place, f"value of {axis}", label, axes[axis])
