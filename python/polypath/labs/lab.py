"""A lab, as its folder describes it.

The folder has these files:

    scenario.toml   the network and what runs
    lab.toml        title, question, source; [[run]] name, set, vary; [[expect]] name, published, measure, run, min,
                    max, unit, relative_to (run, at, over, model, by, parameters that differ), at, along, shape,
                    share_above, cause of a known miss, chance (whether the miss is), and the measure's own parameters
    README.md       the question, the picture, what to expect and why, things to try
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ConfigDict, Field, ValidationError, model_validator

from polypath.scenario import Scenario, ScenarioError, describe_topology
from polypath.scenario.base import Model
from polypath.scenario.fields import Name, fault
from polypath.scenario.reading import read_text
from polypath.scenario.validate import faults

Number = int | float

#: The heading of what a reader may try.
_TRIES: Final = "## Things to try"


class LabRun(Model):
    """One run of a lab: the scenario with settings ("link.path0.rate=10 Mbps") and axes ("seeds=10")."""

    name: Name
    settings: list[str] = Field(default_factory=list, alias="set")
    vary: list[str] = Field(default_factory=list)

    def of(self, scenario: Scenario) -> Scenario:
        """The lab's scenario as this run has it. Raises ScenarioError."""
        return scenario.with_settings(self.settings).with_axes(self.vary)


class Expectation(Model):
    """A published figure, and the bounds for the measured one.

    `parameters` are those of the measure, `connection` among them.

    With `relative_to`, the figure is the quotient of this run's measure by another one. The other is that of another
    run, point (`at`), connection or time, or a computed `model`. With `by = "difference"`, it is the difference. With
    `by = "aggregation-benefit"`, it is the gain over the single paths of the other run, which are the labels of its
    axis `over`.

    For a sweep, `at` picks points by their labels, and every place keeps the bounds, as a mean over seeds. With
    `along`, the figure is the deviation of the curve over that axis from its `shape`. With `share_above`, it is the
    share of places with a higher figure.

    `cause` explains a known miss. It permits the miss, and must be removed when the bounds are kept. With `chance` it
    may stay: the figure lies at a bound or depends on milliseconds.
    """

    model_config = ConfigDict(extra="allow")

    name: str
    published: str
    measure: str
    run: str
    relative_to: dict[str, Any] | None = None
    at: dict[str, str] = Field(default_factory=dict)
    along: str | None = None
    shape: str = "rising"
    share_above: Number | None = None
    minimum: Number | None = Field(default=None, alias="min")
    maximum: Number | None = Field(default=None, alias="max")
    unit: str = ""
    cause: str = ""
    chance: bool = False

    @model_validator(mode="after")
    def _bounded(self) -> Expectation:
        if self.minimum is None and self.maximum is None:
            raise fault(f"expectation '{self.name}' has neither 'min' nor 'max'")
        if self.chance and not self.cause:
            raise fault(f"expectation '{self.name}' is said to be missed by 'chance', but for no 'cause'")
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        """The measure's parameters."""
        return dict(self.model_extra or {})

    @property
    def connection(self) -> str | None:
        """The application that is measured, if the measure is of one."""
        connection = self.parameters.get("connection")
        return None if connection is None else str(connection)


class _Description(Model):
    title: str
    question: str
    source: str
    run: list[LabRun] = Field(min_length=1)
    expect: list[Expectation] = Field(default_factory=list)

    @model_validator(mode="after")
    def _consistent(self) -> _Description:
        runs = [run.name for run in self.run]
        names = [expectation.name for expectation in self.expect]
        for what, given in (("run", runs), ("expectation", names)):
            for name in given:
                if given.count(name) > 1:
                    raise fault(f"there are two {what}s '{name}'")
        for expectation in self.expect:
            needed = {expectation.run, (expectation.relative_to or {}).get("run", expectation.run)}
            for name in needed - set(runs):
                raise fault(f"expectation '{expectation.name}' is of a run '{name}' that the lab has not")
        return self


@dataclass(frozen=True)
class Lab:
    """A question about multipath transport, a scenario that answers it, and what its answer should be."""

    name: str
    title: str
    question: str
    source: str
    folder: Path
    runs: list[LabRun]
    expectations: list[Expectation]

    @classmethod
    def load(cls, folder: Path) -> Lab:
        """Reads a lab's folder; raises ScenarioError when it is incomplete or inconsistent."""
        path = folder / "lab.toml"
        text = read_text(path, "lab")
        try:
            data = tomllib.loads(text)
            description = _Description.model_validate(data)
        except tomllib.TOMLDecodeError as error:
            raise ScenarioError(f"invalid TOML: {error}", str(path)) from error
        except ValidationError as error:
            found = faults(error, data)
            raise ScenarioError(found[0].message, str(path), hint=found[0].hint) from error
        return cls(
            folder.name,
            description.title,
            description.question,
            description.source,
            folder,
            description.run,
            description.expect,
        )

    @property
    def readme(self) -> str:
        """The text for the reader, Markdown."""
        return read_text(self.folder / "README.md", "text")

    @property
    def tries(self) -> list[str]:
        """What the text says to try, an item each, Markdown in one line."""
        _, _, rest = self.readme.partition(_TRIES)
        items = re.split(r"^- ", rest.partition("\n## ")[0], flags=re.MULTILINE)[1:]
        return [" ".join(item.split()) for item in items]

    @property
    def picture(self) -> str:
        """The topology in text."""
        return describe_topology(self.scenario())

    def scenario(self, run: str | None = None) -> Scenario:
        """The scenario of a run; without one, before any run's settings. Raises ScenarioError."""
        base = Scenario.load(self.folder / "scenario.toml")
        if run is None:
            return base
        known = {each.name: each for each in self.runs}
        if run not in known:
            raise ScenarioError(f"lab '{self.name}' has no run '{run}'; it has {', '.join(known)}")
        return known[run].of(base)
