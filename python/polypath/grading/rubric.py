"""A rubric: what is handed in, the networks that it is tried on, and the points that figures are worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, model_validator

from polypath.grading.fixed import Fixed
from polypath.labs.claims import problems
from polypath.measures import REGISTRY
from polypath.registry import Kind
from polypath.results.settled import settled
from polypath.scenario import Scenario, ScenarioError, document, former
from polypath.scenario.base import Model
from polypath.scenario.document import Document
from polypath.scenario.errors import Problem, unknown_at
from polypath.scenario.fields import Name, Period, Size, fault
from polypath.scenario.files import anchored
from polypath.scenario.vary import SEED, SEEDS, Vary

Number = int | float


@dataclass(frozen=True)
class Submitted:
    """A kind of what is handed in: what the file is called in a folder, and where an algorithm goes, if it is one."""

    file: str
    algorithm: Kind | None = None
    place: str = ""


KINDS: Final[Mapping[str, Submitted]] = {
    "scenario": Submitted("scenario.toml"),
    "scheduler": Submitted("scheduler.py", "scheduler", "defaults.scheduler"),
    "congestion": Submitted("congestion.py", "congestion", "defaults.congestion"),
    "path-manager": Submitted("path_manager.py", "path-manager", "defaults.path_manager"),
}
"""What can be handed in, by the name that a rubric has for it."""


class Limits(Model):
    """What a submission may take."""

    cpu: Period = Field(default=30 * 10**9)
    """CPU time of all of its runs together."""
    memory: Size = Field(default=10**9)
    """Memory beyond what Polypath takes by itself."""
    wall: Period = Field(default=300 * 10**9)
    """Time on the clock; only a guard for what sleeps, since it depends on the machine."""


class Relative(Model):
    """The reference by whose figure another is divided, or whose figure is subtracted."""

    reference: str
    by: Literal["quotient", "difference"] = "quotient"


class Criterion(Model):
    """Points for a figure within bounds; further keys are the parameters of its measure."""

    model_config = ConfigDict(extra="allow")

    name: str
    points: Annotated[Number, Field(gt=0)]
    measure: str
    relative_to: str | Relative | None = None
    at: dict[str, str] = Field(default_factory=dict)
    """The networks that count, by labels; all if left out."""
    share: bool = False
    """Whether each network that keeps the bounds brings its part of the points; otherwise, all must keep them."""
    minimum: Number | None = Field(default=None, alias="min")
    maximum: Number | None = Field(default=None, alias="max")
    unit: str = ""

    @model_validator(mode="after")
    def _bounded(self) -> Criterion:
        if self.minimum is None and self.maximum is None:
            raise fault(f"points '{self.name}' have neither 'min' nor 'max'")
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        """The measure's parameters."""
        return dict(self.model_extra or {})

    @property
    def relative(self) -> Relative | None:
        """What it is relative to, if it is."""
        given = self.relative_to
        return Relative(reference=given) if isinstance(given, str) else given


class _Text(Model):
    """What the file says."""

    title: str
    submission: Literal["scenario", "scheduler", "congestion", "path-manager"]
    file: str = ""
    class_: Name | None = Field(default=None, alias="class")
    scenario: str | None = None
    place: str | list[str] = Field(default_factory=list)
    fixed: list[str] = Field(default_factory=list)
    free: list[str] = Field(default_factory=list)
    seeds: Annotated[int, Field(ge=1)] | Annotated[list[int], Field(min_length=1)] = 1
    limits: Limits = Field(default_factory=Limits.empty)
    vary: Vary = Field(default_factory=dict)
    reference: dict[Name, str] = Field(default_factory=dict)
    points: list[Criterion] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> _Text:
        algorithm = KINDS[self.submission].algorithm is not None
        if algorithm and self.class_ is None:
            raise fault(f"'class' is missing: what the class of a submitted {self.submission} is called")
        if algorithm and self.scenario is None:
            raise fault(f"'scenario' is missing: the file that a submitted {self.submission} is tried on")
        if (self.fixed or self.free) and (algorithm or self.scenario is None):
            key = "fixed" if self.fixed else "free"
            raise fault(f"'{key}' compares submitted scenarios with that of 'scenario'", at=(key,))
        for key in (SEED, SEEDS):
            if key in self.vary:
                raise fault("the seeds of a rubric are its key 'seeds'", at=("vary", key))
        names = [each.name for each in self.points]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise fault(f"there are two points '{name}'", at=("points", number, "name"))
        return self


@dataclass(frozen=True)
class Rubric:
    """A rubric that was checked."""

    file: Path
    said: _Text
    #: The scenario beside it: what algorithms are tried on, or what scenarios are compared with.
    base: Scenario | None

    @property
    def kind(self) -> Submitted:
        """What is handed in."""
        return KINDS[self.said.submission]

    @property
    def submitted_file(self) -> str:
        """What the file is called in a folder that is handed in."""
        return self.said.file or self.kind.file

    @property
    def criteria(self) -> Sequence[Criterion]:
        """What brings points, in order."""
        return self.said.points

    @property
    def fixed(self) -> Fixed | None:
        """What a scenario that is handed in may not change."""
        if self.base is None or not (self.said.fixed or self.said.free):
            return None
        return Fixed(self.base, self.said.fixed, self.said.free)

    def with_algorithm(self, name: str) -> Scenario:
        """The scenario with an algorithm where the submitted ones go. Raises ScenarioError."""
        assert self.base is not None, "an algorithm has a scenario"
        given = self.said.place
        places = [given] if isinstance(given, str) else given or [self.kind.place]
        return self.base.with_(dict.fromkeys(places, name))

    def networks(self, scenario: Scenario) -> Scenario:
        """A scenario with the rubric's networks and seeds as axes. Raises ScenarioError."""
        seeds = self.said.seeds
        axes: dict[str, Any] = dict(anchored({"vary": self.said.vary}, self.file.parent)["vary"])
        return scenario.varied(axes | ({SEEDS: seeds} if isinstance(seeds, int) else {SEED: seeds}))

    def reference(self, name: str) -> Scenario:
        """The scenario of a reference, without the networks. Raises ScenarioError."""
        value = self.said.reference[name]
        if self.kind.algorithm is None:
            return Scenario.load(self.file.parent / value)
        return self.with_algorithm(anchored({self.kind.place: value}, self.file.parent)[self.kind.place])


def load(file: Path) -> Rubric:
    """Reads a rubric and checks all that does not need a submission. Raises ScenarioError with file and line."""
    text = document.load(file, "rubric", _Text, former.told)
    said = text.said
    base = None if said.scenario is None else Scenario.load(file.parent / said.scenario)
    rubric = Rubric(file, said, base)
    if base is not None and (base.vary.keys() & {SEED, SEEDS}):
        raise text.error(Problem(("scenario",), f"{said.scenario} varies the seed; a rubric has its own 'seeds'"))
    tried = _tried(rubric, text)
    text.require(
        problem
        for number, each in enumerate(said.points)
        for problem in _problems(("points", number), each, said, tried)
    )
    return rubric


def _tried(rubric: Rubric, text: Document[_Text]) -> Scenario | None:
    """The scenario with the rubric's networks; None where only a submission brings one."""
    tried = None
    if rubric.base is not None:
        try:
            tried = rubric.networks(rubric.base)
        except ScenarioError as error:
            raise text.error(Problem(("vary",), error.message, error.hint)) from error
    for name in rubric.said.reference:
        try:
            rubric.networks(rubric.reference(name))
        except ScenarioError as error:
            message = f"reference '{name}': {error.message}"
            raise text.error(Problem(("reference", name), message, error.hint)) from error
    return tried


def _problems(place: tuple[str | int, ...], each: Criterion, said: _Text, tried: Scenario | None) -> Iterator[Problem]:
    own = [field.alias or name for name, field in Criterion.model_fields.items()]
    yield from problems(place, each.measure, each.parameters, own, tried)
    if settled(each.measure) in REGISTRY and (relative := each.relative) and relative.reference not in said.reference:
        yield unknown_at((*place, "relative_to"), "reference", relative.reference, said.reference)
    axes = {axis.name: axis.labels for axis in tried.axes} if tried is not None else {}
    for axis, label in each.at.items() if tried is not None else ():
        if axis not in axes:
            yield unknown_at((*place, "at"), "axis", axis, axes)
        elif label not in axes[axis]:
            yield unknown_at((*place, "at"), f"value of {axis}", label, axes[axis])
