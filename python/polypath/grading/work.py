"""What the process of a submission does: it runs the submission in each network, and notes figures or failures."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from polypath import engines
from polypath.engines import EngineError, Options
from polypath.errors import PolypathError
from polypath.grading.rubric import Criterion, Rubric
from polypath.measures import REGISTRY
from polypath.registry import RegistryError
from polypath.results import MetricError, Recording
from polypath.results.settled import settled
from polypath.scenario import Scenario, ScenarioError
from polypath.scenario.script import parameters
from polypath.sweeps import points

#: Faults of a scenario that are told; the others are counted.
_MOST = 3


class Refused(PolypathError):
    """A submission that is not tried at all; the message is for the one who handed it in."""


@dataclass(frozen=True)
class Seen:
    """What was seen of a run: its labels on each axis, and for each criterion the figure, or why there is none."""

    values: Mapping[str, str]
    figures: Sequence[float | str] = ()


@dataclass(frozen=True)
class Found:
    """What was seen of a submission, or why it was not tried."""

    runs: Sequence[Seen] = field(default_factory=list)
    problem: str | None = None

    def data(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def of(cls, data: Any, criteria: int) -> Found:
        """From what `data` gave, for so many criteria. Raises ValueError for anything else: a submission may have
        written it.
        """
        match data:
            case {"runs": list(runs), "problem": None | str() as problem}:
                return cls([_run(each, criteria) for each in runs], problem)
        raise ValueError("no result")


def _run(data: Any, criteria: int) -> Seen:
    match data:
        case {"values": dict(values), "figures": list(figures)} if len(figures) == criteria:
            if all(isinstance(label, str) for label in values.values()) and all(map(_is_figure, figures)):
                return Seen(values, figures)
    raise ValueError("no run")


def _is_figure(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, float) and isfinite(value))


def submitted(rubric: Rubric, file: Path, room: Path) -> Found:
    """Tries a submission; `room` is an empty folder of its own, and the working directory."""
    try:
        scenario = _algorithm(rubric, file, room) if rubric.kind.algorithm else _scenario(rubric, file)
        return tried(rubric, scenario)
    except Refused as error:
        return Found(problem=str(error))
    except ScenarioError as error:
        return Found(problem=_shortly(error, file.parent, room))


def tried(rubric: Rubric, scenario: Scenario) -> Found:
    """Runs a scenario in each network of the rubric. Raises ScenarioError where it has no plan in one."""
    found = []
    for each in points(rubric.networks(scenario)):
        try:
            recording = engines.get("sim").run(each.plan, Options())
        except EngineError as error:
            message = " ".join(str(error).split())
            found.append(Seen(dict(each.values), [message] * len(rubric.criteria)))
            continue
        found.append(Seen(dict(each.values), list(_figures(rubric.criteria, recording))))
    return Found(found)


def _figures(criteria: Sequence[Criterion], recording: Recording) -> Iterator[float | str]:
    for each in criteria:
        try:
            figure = REGISTRY[settled(each.measure)](recording, each.parameters)
        except MetricError as error:
            yield str(error)
            continue
        yield "no data" if figure is None or not isfinite(figure) else float(figure)


def _algorithm(rubric: Rubric, file: Path, room: Path) -> Scenario:
    """The rubric's scenario with the class of a file. Raises Refused, ScenarioError."""
    assert rubric.kind.algorithm is not None
    if not file.is_file():
        raise Refused(f"{file.name} is missing")
    copy = Path(file.name.replace(":", "-")).with_suffix(".py")  # a name of a file ends at a colon in a scenario
    try:
        shutil.copyfile(file, room / copy)
    except OSError as error:
        raise Refused(f"{file.name} cannot be read: {error.strerror or error}") from error
    name = f"{copy}:{rubric.said.class_}"
    try:
        parameters(rubric.kind.algorithm, name, {})
    except RegistryError as error:
        raise Refused(f"{error}{f'; did you mean {error.hint!r}?' if error.hint else ''}") from error
    return rubric.with_algorithm(name)


def _scenario(rubric: Rubric, file: Path) -> Scenario:
    """The scenario of a file, if it changes nothing that is fixed. Raises Refused, ScenarioError."""
    if not file.is_file():
        raise Refused(f"{file.name} is missing")
    scenario = Scenario.load(file)
    if scenario.vary:
        raise Refused(
            f"[vary]: the rubric chooses networks and seeds, and the scenario varies {', '.join(scenario.vary)}"
        )
    if rubric.fixed is not None and (changes := rubric.fixed.changes(scenario)):
        raise Refused(_listed(changes))
    return scenario


def _shortly(error: ScenarioError, *folders: Path) -> str:
    text = _listed([str(each) for each in error.errors])
    for folder in folders:
        for shown in {str(folder), str(folder.resolve())}:
            text = text.replace(f"{shown}/", "")
    return text


def _listed(parts: Sequence[str]) -> str:
    more = [f"and {len(parts) - _MOST} more"] if len(parts) > _MOST else []
    return "; ".join((*parts[:_MOST], *more))
