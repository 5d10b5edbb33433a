"""A scenario with what is made of it, each once, and the ways to run it otherwise."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import polypath
from polypath import Plan, Recording, Scenario
from polypath.scenario.tables import Tables


class Case:
    """A scenario by its text. `folder` is empty and for whatever a relation has to write."""

    def __init__(self, text: str, folder: Path) -> None:
        self.text = text
        self._folder = folder
        self._folders = 0

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """What the text says; a relation changes a `copy`."""
        return tomllib.loads(self.text)

    def copy(self) -> dict[str, Any]:
        """What the text says, to be changed."""
        return copy.deepcopy(dict(self.data))

    @cached_property
    def scenario(self) -> Scenario:
        """Raises ScenarioError."""
        return Scenario.parse(self.text, "drawn.toml")

    @cached_property
    def tables(self) -> Tables:
        """The scenario with nothing left out."""
        return self.scenario._resolved

    @cached_property
    def plan(self) -> Plan:
        """Raises ScenarioError."""
        return self.scenario.plan()

    @cached_property
    def recording(self) -> Recording:
        """The run's Recording, with segments only if the scenario requests them."""
        return polypath.run(self.plan)

    @cached_property
    def detailed(self) -> Recording:
        """The run's Recording with segments."""
        return polypath.run(self.plan, segments=True)

    @property
    def end_ns(self) -> int:
        return self.recording.metadata.end_ns

    @property
    def lasts(self) -> bool:
        """Whether the run goes on for the whole of the scenario's duration."""
        return bool(self.end_ns == self.plan.view["duration_ns"])

    def folder(self) -> Path:
        """A new, empty folder."""
        self._folders += 1
        made = self._folder / f"{self._folders}"
        made.mkdir(parents=True)
        return made


def planned(data: Mapping[str, Any]) -> Plan:
    """The plan of a scenario's data. Raises ScenarioError."""
    return Scenario.from_data(dict(data)).plan()


def ran(data: Mapping[str, Any], *, segments: bool = False) -> Recording:
    """The Recording of a scenario's data. Raises ScenarioError and EngineError."""
    return polypath.run(planned(data), segments=segments)
