"""The scenarios of `polypath compare --all`: files in this folder with an entry in catalogue.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from polypath.scenario import Plan, Scenario

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Entry:
    """A scenario of the comparison."""

    name: str
    #: The scenario's file, if it has another name.
    file: str = ""
    #: Settings of the scenario on both engines.
    settings: Sequence[str] = ()
    #: The reference of the simulator: the upstream kernel, or noq.
    reference: Literal["linux", "noq"] = "linux"
    #: Settings of Polypath's own endpoint alone, where it can take over a rule that the reference cannot change.
    polypath: Sequence[str] = ()
    #: Runs on each engine, with seeds from 1 on; figures are their means.
    seeds: int = 1
    #: Why the engines are known to differ; empty: they should not.
    cause: str = ""
    #: Settings that differ from run to run, the same on both engines: a value for each.
    each: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def scenario(self) -> Scenario:
        return Scenario.load(FOLDER / f"{self.file or self.name}.toml").with_settings(list(self.settings))

    def plans(self, settings: Sequence[str] = ()) -> list[Plan]:
        """What each run is, with settings made on top."""
        scenario = self.scenario().with_settings(list(settings))
        scenarios = varied(scenario, self.each) if self.each else [scenario] * self.seeds
        return [one.plan(run + 1) for run, one in enumerate(scenarios[: self.seeds])]


def varied(scenario: Scenario, each: Mapping[str, Sequence[str]]) -> list[Scenario]:
    """The scenario once for each set of values. Raises ScenarioError."""
    return [
        scenario.with_settings([f"{path}={value}" for path, value in zip(each, values, strict=True)])
        for values in zip(*each.values(), strict=True)
    ]


@lru_cache(maxsize=1)
def catalogue() -> tuple[Entry, ...]:
    """Every entry, in the catalogue's order."""
    data = tomllib.loads((FOLDER / "catalogue.toml").read_text("utf-8"))
    return (*(Entry(**entry) for entry in data["entry"]), *_of_controls(data["controls"]))


def _of_controls(groups: Sequence[Mapping[str, Any]]) -> Iterator[Entry]:
    """Scenarios with each of several congestion controls."""
    for group in groups:
        for control in group["names"]:
            for given in group["scenario"]:
                scenario = dict(given)
                name = scenario.pop("name")
                settings = [f"defaults.congestion={control}", *scenario.pop("settings", ())]
                file = scenario.pop("file", name)
                yield Entry(f"{control}-{name}", file=file, settings=settings, **scenario)


@lru_cache(maxsize=1)
def lab_causes() -> Mapping[str, str]:
    """Why runs of labs, named LAB/RUN, are known to differ in `polypath compare --labs`."""
    return {str(name): " ".join(str(cause).split()) for name, cause in _labs()["cause"].items()}


@lru_cache(maxsize=1)
def lab_starts() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Where chance decides the figures of a lab or of a LAB/RUN: settings with a value for each run on an engine.

    A table's name in the file may list several, with commas.
    """
    return {name: each for names, each in _labs()["each"].items() for name in names.split(", ")}


def _labs() -> dict[str, Any]:
    return tomllib.loads((FOLDER / "labs.toml").read_text("utf-8"))
