"""The comparison of two engines over the labs: `polypath compare --labs`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.markup import escape

from polypath import engines, labs
from polypath.cli import agreement, jobs
from polypath.cli.console import out
from polypath.cli.errors import DONE
from polypath.cli.kept import Kept
from polypath.engines import EngineError
from polypath.fidelity import lab_causes, lab_starts, varied
from polypath.results import Recording
from polypath.results.files import require_writable, write_text
from polypath.scenario import Plan, Scenario, ScenarioError
from polypath.statistics.fidelity import OFF, Row, Verdict, rows, verdict

#: For a comparison that keeps nothing.
NONE: Final = Kept(None, {})


@dataclass(frozen=True)
class Outcome:
    """A run of a lab and what came of it: rows, or why an engine cannot have it."""

    name: str
    #: Runs on each engine; figures are their means.
    runs: int = 1
    rows: Sequence[Row] = ()
    refusal: str = ""

    @property
    def verdict(self) -> Verdict:
        return verdict(self.rows)


def run(
    base: str, other: str, markdown: Path | None, lab: str | None = None, chosen: Sequence[str] = (), keep: Kept = NONE
) -> int:
    """Holds engine `base` against `other` in every run of every lab, or of one, or in those chosen of it.

    Runs of `other` that are kept are taken as they are, and others kept.
    """
    if markdown is not None:
        require_writable(markdown.parent)
    made = {name: engines.get(name) for name in (base, other)}
    outcomes = [_outcome(name, scenarios, made, base, other, keep) for name, scenarios in _runs(lab, chosen)]
    _show(outcomes, base, other)
    if markdown is not None:
        write_text(markdown, page(outcomes, base, other))
    return DONE


def _runs(lab: str | None, chosen: Sequence[str]) -> Iterator[tuple[str, Sequence[Scenario]]]:
    for one in labs.catalogue().values() if lab is None else (labs.get(lab),):
        for run in jobs.runs_of(one, chosen):
            name = f"{one.name}/{run.name}"
            scenario = in_the_kernels_profile(one.at(run, one.scenario()))
            each = lab_starts().get(name) or lab_starts().get(one.name)
            yield name, varied(scenario, each) if each else [scenario]


def in_the_kernels_profile(scenario: Scenario) -> Scenario:
    """The first point of the scenario, in the profile `linux`.

    What the lab sets itself stays. Without a path manager, or a topology that opens subflows, it has `fullmesh`. Lowest
    RTT first and a slow start that counts acknowledgements, which the kernel does not have, become the kernel's own. A
    scenario over QUIC, which the kernel refuses, stays as it is.
    Raises ScenarioError.
    """
    if scenario.axes:
        scenario = scenario.at([axis.values[0] for axis in scenario.axes])
    if scenario.plan().has_quic:
        return scenario
    settings = ["defaults.profile=linux"]
    placed = scenario.topology is not None and scenario.topology.opens_subflows
    if scenario.defaults.path_manager is None and not placed:
        settings.append("defaults.path_manager=fullmesh")
    stacks = {"defaults": scenario.defaults} | {f"host.{name}": host for name, host in scenario.host.items()}
    for where, stack in stacks.items():
        if stack.scheduler is not None and stack.scheduler.name == "default":
            settings.append(f"{where}.scheduler=linux")
        if stack.slow_start == "acks":
            settings.append(f"{where}.slow_start=packets")
    return scenario.with_settings(settings)


def _outcome(
    name: str, scenarios: Sequence[Scenario], made: dict[str, engines.Engine], base: str, other: str, keep: Kept
) -> Outcome:
    try:
        plans = [scenario.plan() for scenario in scenarios]
        # The one that refuses goes first.
        references = [_kept(made[other], f"{name} on {other}", name, plan, keep) for plan in plans]
        recordings = [agreement.recorded(made[base], f"{name} on {base}", plan) for plan in plans]
    except (EngineError, ScenarioError) as error:
        return Outcome(name, refusal=str(error).partition("; its last words")[0])
    return Outcome(name, len(plans), rows(recordings, references))


def _kept(engine: engines.Engine, title: str, name: str, plan: Plan, keep: Kept) -> Recording:
    found = keep.find(name, plan)
    if found is None:
        found = agreement.recorded(engine, title, plan)
        keep.keep(name, plan, found)
    return found


def _show(outcomes: Sequence[Outcome], base: str, other: str) -> None:
    compared = [(_title(outcome), outcome.rows) for outcome in outcomes]
    agreement.show("lab/run", compared, base, other)
    for outcome in outcomes:
        if outcome.verdict == OFF and outcome.name in lab_causes():
            out.print(f"{escape(outcome.name)}: {escape(lab_causes()[outcome.name])}")
        if outcome.refusal:
            out.print(f"{escape(outcome.name)}: {escape(outcome.refusal)}")
    out.print(_count(outcomes))


def _title(outcome: Outcome) -> str:
    return outcome.name if outcome.runs == 1 else f"{outcome.name}, {outcome.runs} runs"


def _count(outcomes: Sequence[Outcome]) -> str:
    compared = [outcome for outcome in outcomes if not outcome.refusal]
    more = len(outcomes) - len(compared)
    agreed = agreement.count("runs", [outcome.verdict for outcome in compared])
    return f"{agreed}; {more} more are not for both engines"


_HEAD = """# Fidelity: the labs beside the kernel

Whether simulator and upstream kernel agree on every run of every lab, both in the profile `linux`.
The kernel runs in virtual time. This page is written by

    polypath compare --labs --markdown assurance/records/fidelity-labs.md

[Fidelity](fidelity.md) has scenarios that were made for this comparison. The rules here are:

- A sweep is compared at its first point.
- A lab's own settings stay. A lab without a path manager gets `fullmesh`.
- The kernel has neither lowest RTT first nor a slow start that counts acknowledgements. They become the kernel's own
  rules.
- A figure here is therefore not the lab's own, which is on [Validation](validation.md).
- If chance decides a figure, the run is repeated with slightly different delays and start times, the same on both
  engines. The figure is then the mean with its standard error. `python/polypath/fidelity/labs.toml` lists these runs.
- A run that the kernel did not end within `POLYPATH_LINUX_LIMIT` is listed with the limit.
- If neither engine has a figure, nothing is compared.
- If only some runs have a figure, their number is compared, and the figures of those runs.
"""


def page(outcomes: Sequence[Outcome], base: str, other: str) -> str:
    """The outcome as Markdown."""
    lines = [_HEAD, f"{_count(outcomes)}.", ""]
    compared = [((f"`{outcome.name}`", str(outcome.runs)), outcome.rows) for outcome in outcomes]
    lines += agreement.markdown({"lab/run": "---", "runs": "---:"}, compared, base, other)
    off = {outcome.name for outcome in outcomes if outcome.verdict == OFF}
    known = [f"- `{name}`: {cause}" for name, cause in lab_causes().items() if name in off]
    if known:
        lines += ["", "## Where they differ", "", *known]
    refused: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.refusal:
            refused.setdefault(outcome.refusal, []).append(f"`{outcome.name}`")
    if refused:
        lines += ["", "## Not for both engines", ""]
        lines += [f"- {', '.join(names)}: {reason}" for reason, names in refused.items()]
    return "\n".join(lines) + "\n"
