"""polypath run: simulate a lab, a scenario or a minitopo pair, or each point of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from polypath import engines
from polypath.cli import jobs, output, progress, result, sweeps
from polypath.cli.codes import DONE, INTERRUPTED
from polypath.cli.console import err, warn
from polypath.cli.errors import InputError
from polypath.cli.options import Axes, Jobs, Runs, Seed, Settings
from polypath.engines import Engine, EngineError, Options, ScriptFailed
from polypath.results import Recording
from polypath.results.files import require_writable

#: What `--plot` needs recorded.
_PLOT_SETTINGS = ("record.segments=true",)


class Captures(StrEnum):
    none = "none"
    hosts = "hosts"
    links = "links"


def run(
    target: Annotated[str | None, typer.Argument(metavar="LAB|SCENARIO.toml", show_default=False)] = None,
    topo: Annotated[Path | None, typer.Option(metavar="FILE", help="minitopo topology; needs --xp.")] = None,
    xp: Annotated[Path | None, typer.Option(metavar="FILE", help="minitopo experiment; needs --topo.")] = None,
    settings: Settings = None,
    seed: Seed = None,
    runs: Runs = None,
    axes: Axes = None,
    parallel: Jobs = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write results there; of a sweep, what is there is kept.")
    ] = None,
    pcap: Annotated[Captures, typer.Option(help="Captures at hosts or on links; needs --out.")] = Captures.none,
    plot: Annotated[bool, typer.Option("--plot", help="Draw plots; needs --out.")] = False,
    engine: Annotated[str, typer.Option(help=f"What runs the scenario: {', '.join(engines.REGISTRY)}.")] = "sim",
) -> int:
    """Run a lab, a scenario or a minitopo pair, and show what came of it."""
    if out is None and (plot or pcap is not Captures.none):
        raise InputError(f"{'--plot' if plot else '--pcap'} needs --out DIR to write to")
    chosen = engines.get(engine)
    made = [*(_PLOT_SETTINGS if plot else ()), *(settings or ())]
    todo = _jobs(target, topo, xp, made, seed, runs or (), axes or ())
    if out is not None:
        for job in todo:
            require_writable(out / job.folder)
    varied = [job for job in todo if job.varies]
    code = sweeps.run(varied, engine, pcap.value, out, plot, parallel) if varied else DONE
    for job in todo:
        if job.varies:
            continue
        recording = _run(job, chosen, pcap, out, plot)
        result.show(recording, job.name)
        if recording.metadata.interrupted:
            return INTERRUPTED
    if out is not None:
        err.print(f"results in {out}", markup=False)
    return code


def _jobs(
    target: str | None,
    topo: Path | None,
    xp: Path | None,
    settings: Sequence[str],
    seed: int | None,
    runs: Sequence[str],
    axes: Sequence[str],
) -> list[jobs.Job]:
    if topo is not None and xp is not None and target is None:
        if runs:
            raise InputError("--run chooses among a lab's runs; a minitopo pair is one run")
        found, warnings = jobs.of_minitopo(topo, xp, settings, seed, axes)
        for warning in warnings:
            warn(warning)
        return found
    if target is None or topo is not None or xp is not None:
        raise InputError("name either a lab, a scenario file, or both --topo and --xp")
    return jobs.of_target(target, runs, settings, seed, axes)


def _run(job: jobs.Job, engine: Engine, captures: Captures, out: Path | None, plots: bool) -> Recording:
    directory = None if out is None else out / job.folder
    with ExitStack() as stack:
        folder = None
        if directory is not None and captures is not Captures.none:
            folder = stack.enter_context(output.capture_directory(directory))
        with progress.shown(job.name) as callback:
            try:
                recording = engine.run(job.plan, Options(captures.value, folder), callback)
            except ScriptFailed as error:
                place = job.scenario.where_named(error.script)
                raise EngineError(f"{place}: {error}" if place else str(error)) from error
        recording = replace(recording, metadata=replace(recording.metadata, scenario=job.name))
        if directory is not None:
            output.save(recording, job.scenario.to_toml(), folder, directory, plots)
    return recording
