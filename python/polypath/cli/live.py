"""What a report contains of each of its runs so that a reader can change it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from polypath.cli import jobs
from polypath.cli.console import warn
from polypath.cli.errors import InputError
from polypath.playground import Preset, command, of_scenario
from polypath.report import Labelled
from polypath.results.phrases import counted
from polypath.scenario import ScenarioError

#: Runs of a page that can be changed: knobs are found by making plans.
MOST: Final = 40


@dataclass(frozen=True)
class Origin:
    """What `polypath run` takes for a run: a lab, scenario file or result, and the settings that single it out."""

    target: str
    run: str | None = None
    settings: Sequence[str] = ()

    def preset(self, of: Labelled) -> Preset:
        """Raises ScenarioError if a page cannot simulate the run, or would simulate another one."""
        made = of.recording.metadata
        if made.engine != "sim":
            raise ScenarioError(f"it ran on engine {made.engine}")
        chosen = () if self.run is None else (self.run,)
        (job,) = jobs.of_target(self.target, chosen, self.settings, None, dry=True)
        if job.plan.sha256() != made.plan_sha256:
            raise ScenarioError("its plan is not that of its scenario today")
        return of_scenario(job.scenario, command(self.target, self.run, self.settings))


def presets(runs: Sequence[Labelled], origins: Sequence[Origin]) -> list[Preset | None]:
    """A preset for each run that can be changed; says which cannot. Raises InputError if none can."""
    found: list[Preset | None] = []
    reasons: dict[str, list[str]] = {}
    for run, origin in zip(runs, origins, strict=True):
        try:
            if len(found) - found.count(None) == MOST:
                raise ScenarioError(f"a page has at most {MOST} such runs")
            found.append(origin.preset(run))
        except (ScenarioError, InputError) as error:
            found.append(None)
            reasons.setdefault(str(error), []).append(run.name)
    for reason, names in reasons.items():
        whose = names[0] if len(names) == 1 else counted(len(names), "run")
        if len(reasons) == 1 and len(names) == len(runs):
            raise InputError(f"--live: no run can be changed in the page: {reason}")
        warn(f"{whose} cannot be changed in the page: {reason}")
    return found
