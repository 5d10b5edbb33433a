"""A lab, as its folder describes it.

The folder has these files:

    scenario.toml   the network and what runs
    lab.toml        title, question, source, expectation, tries; [[run]] name, set, vary; [[ask]] question, hint;
                    [[expect]] name, published, measure, run, min, max, unit, relative_to (run, at, over, model, by,
                    parameters that differ), at, along, shape, share_above, cause of a known miss, chance (whether the
                    miss is), and the measure's own parameters
    README.md       the question, the picture, what to expect and why, things to try

A lab of one's own needs no README.md: its lab.toml may have `expectation` and `tries`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ConfigDict, Field, model_validator

from polypath.scenario import Scenario, ScenarioError, describe_topology, document, former
from polypath.scenario.base import Model
from polypath.scenario.document import Document
from polypath.scenario.fields import Name, fault
from polypath.scenario.reading import read_text
from polypath.scenario.vary import anchored
from polypath.units import nearest

Number = int | float

FILE: Final = "lab.toml"
SCENARIO: Final = "scenario.toml"
README: Final = "README.md"

#: The headings of what the answer should be, and of what a reader may try.
_EXPECTED: Final = "## What to expect, and why"
_TRIES: Final = "## Things to try"


class LabRun(Model):
    """One run of a lab: the scenario with settings ("link.path0.rate=10 Mbps") and axes ("seeds=10")."""

    name: Name
    settings: list[str] = Field(default_factory=list, alias="set")
    vary: list[str] = Field(default_factory=list)

    def of(self, scenario: Scenario) -> Scenario:
        """The lab's scenario as this run has it. Raises ScenarioError."""
        return scenario.with_settings(self.settings).with_axes(self.vary)

    def anchored(self, folder: Path) -> LabRun:
        """The run with the full names of files, which are relative to a folder."""
        made = {
            "set": [anchored(text, folder) for text in self.settings],
            "vary": [anchored(text, folder, axis=True) for text in self.vary],
        }
        return LabRun.model_validate({"name": self.name, **made})


class Expectation(Model):
    """A claim: the bounds for a measured figure, and the figure that was published, if any.

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
    published: str = ""
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


class Question(Model):
    """What a reader who understood the lab can explain, and a hint."""

    question: str
    hint: str = ""


class Description(Model):
    """What lab.toml says."""

    title: str
    question: str
    source: str = ""
    expectation: str = ""
    tries: list[str] = Field(default_factory=list)
    run: list[LabRun] = Field(min_length=1)
    ask: list[Question] = Field(default_factory=list)
    expect: list[Expectation] = Field(default_factory=list)

    @model_validator(mode="after")
    def _consistent(self) -> Description:
        runs = [run.name for run in self.run]
        names = [expectation.name for expectation in self.expect]
        for key, what, given in (("run", "run", runs), ("expect", "expectation", names)):
            for number, name in enumerate(given):
                if name in given[:number]:
                    raise fault(f"there are two {what}s '{name}'", at=(key, number, "name"))
        for number, expectation in enumerate(self.expect):
            other = (expectation.relative_to or {}).get("run", expectation.run)
            for key, name in (("run", expectation.run), ("relative_to", other)):
                if name not in runs:
                    hint = nearest(str(name), runs)
                    message = f"expectation '{expectation.name}' names run '{name}', which the lab does not define"
                    listed = "" if hint else f"; it has {', '.join(runs)}"
                    raise fault(f"{message}{listed}", hint, at=("expect", number, key))
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
    #: What a reader should be able to explain.
    questions: Sequence[Question] = ()
    #: Whether it is no lab of the package.
    own: bool = False
    #: What lab.toml says the answer should be, and to try; README.md may say so instead.
    _expectation: str = ""
    _tries: Sequence[str] = field(default=())

    @classmethod
    def load(cls, folder: Path) -> Lab:
        """Reads a lab's folder; raises ScenarioError when it is incomplete or inconsistent."""
        return cls.of(folder, described(folder).said)

    @classmethod
    def of(cls, folder: Path, said: Description, *, own: bool = False) -> Lab:
        """The lab of a folder whose lab.toml says this."""
        return cls(
            re.sub(r"[^A-Za-z0-9_.-]+", "-", (folder if folder.name.strip(".") else folder.resolve()).name) or "lab",
            said.title,
            said.question,
            said.source,
            folder,
            said.run,
            said.expect,
            said.ask,
            own,
            said.expectation,
            said.tries,
        )

    @property
    def readme(self) -> str:
        """The text for the reader, Markdown; empty of a lab of one's own that has none."""
        path = self.folder / README
        return "" if self.own and not path.exists() else read_text(path, "text")

    @property
    def expectation(self) -> str:
        """What the answer should be and why, Markdown; empty: neither lab.toml nor README.md says it."""
        return self._expectation.strip() or self._section(_EXPECTED)

    @property
    def tries(self) -> list[str]:
        """What to try, an item each, Markdown in one line."""
        if self._tries:
            return [" ".join(item.split()) for item in self._tries]
        items = re.split(r"^- ", self._section(_TRIES), flags=re.MULTILINE)[1:]
        return [" ".join(item.split()) for item in items]

    def _section(self, heading: str) -> str:
        """What stands below a heading of README.md."""
        return self.readme.partition(f"{heading}\n")[2].partition("\n## ")[0].strip()

    @property
    def origin(self) -> str:
        """Where the question comes from: its source, or of a lab of one's own its file."""
        return self.source or str(self.folder / FILE)

    @property
    def picture(self) -> str:
        """The topology in text."""
        return describe_topology(self.scenario())

    @property
    def inputs(self) -> list[Path]:
        """The files that runs of a lab of one's own are made of; nobody writes into the package."""
        return [self.folder / FILE, self.folder / SCENARIO] if self.own else []

    def scenario(self, run: str | None = None) -> Scenario:
        """The scenario of a run; without one, before any run's settings. Raises ScenarioError."""
        base = Scenario.load(self.folder / SCENARIO)
        if run is None:
            return base
        known = {each.name: each for each in self.runs}
        if run not in known:
            hint = nearest(run, known)
            listed = "" if hint else f"; it has {', '.join(known)}"
            raise ScenarioError(f"lab '{self.name}' has no run '{run}'{listed}", hint=hint)
        return self.at(known[run], base)

    def at(self, run: LabRun, base: Scenario) -> Scenario:
        """The lab's scenario as a run has it. Files that it names are in the lab's folder. Raises ScenarioError."""
        return run.anchored(self.folder).of(base) if self.own else run.of(base)


def described(folder: Path) -> Document[Description]:
    """What the folder's lab.toml says, and where. Raises ScenarioError."""
    return document.load(folder / FILE, "lab", Description, former.told)
