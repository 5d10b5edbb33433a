"""polypath run: simulate a lab, a scenario or a minitopo pair, or each point of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from polypath import engines, labs, running
from polypath.cli import complete, figures, jobs, of_plan, output, progress, result, sweeps
from polypath.cli.console import err, warn
from polypath.cli.console import out as console
from polypath.cli.errors import DONE, INTERRUPTED, InputError
from polypath.cli.options import (
    Application,
    AsIperf3,
    AsJson,
    Axes,
    Cluster,
    Jobs,
    More,
    OutFolder,
    Pcap,
    Qlog,
    Runs,
    Seed,
    Settings,
    settings_of,
)
from polypath.engines import Engine, EngineError
from polypath.measures.summary import summary, to_json
from polypath.recorded import Record
from polypath.results import Recording, account, folder, stored
from polypath.results.folder import Folder

Todo = jobs.Job | of_plan.PlanJob
"""A run or a sweep of a scenario, or the run of a plan."""


def run(
    target: Annotated[
        str | None,
        typer.Argument(metavar="LAB|SCENARIO.toml|PLAN.json|DIR", show_default=False, autocompletion=complete.targets),
    ] = None,
    topo: Annotated[Path | None, typer.Option(metavar="FILE", help="minitopo topology; needs --xp.")] = None,
    xp: Annotated[Path | None, typer.Option(metavar="FILE", help="minitopo experiment; needs --topo.")] = None,
    settings: Settings = None,
    seed: Seed = None,
    runs: Runs = None,
    axes: Axes = None,
    parallel: Jobs = None,
    cluster: Cluster = None,
    out: OutFolder = None,
    pcap: Pcap = "none",
    snaplen: Annotated[
        int | None,
        typer.Option(min=1, metavar="BYTES", help="Keep so many bytes of each captured frame; in the simulator."),
    ] = None,
    qlog: Qlog = False,
    more: More = None,
    plot: Annotated[bool, typer.Option("--plot", help="Draw plots; needs --out.")] = False,
    kinds: figures.Kinds = None,
    form: figures.Format = "png",
    engine: Annotated[
        str,
        typer.Option(help=f"The engine: {', '.join(engines.REGISTRY)}.", autocompletion=complete.engines),
    ] = "sim",
    as_json: AsJson = False,
    as_iperf3: AsIperf3 = False,
    application: Application = None,
) -> int:
    """Run a lab, a scenario or a minitopo pair, and show the results.

    The folder of a stored result runs again by its scenario, and its plan.json runs alone.

    `--json` and `--iperf3` print a single run as JSON on standard output. `--json --iperf3` is the same as `--iperf3`.

    Examples: `polypath run aggregation --run mptcp --out results --plot`,
    `polypath run scenario.toml --set 'link.path1.delay=200 ms' --seed 3`,
    `polypath run scenario.toml --vary defaults.scheduler=default,blest --vary seeds=10`.
    """
    if application is not None and not as_iperf3:
        raise InputError("--application chooses a transfer for --iperf3")
    record = Record(pcap, qlog)
    if out is None:
        for option in (*(["--plot"] if plot else []), *record.in_files()):
            raise InputError(f"{option} needs --out DIR to write to")
    if snaplen is not None and pcap == "none":
        raise InputError("--snaplen is of captures, which --pcap takes: add --pcap hosts or --pcap links")
    if not plot and (kinds is not None or form != "png"):
        given = "--format is of" if kinds is None else "--kind chooses"
        raise InputError(f"{given} figures, which --plot draws: add --plot")
    wanted = figures.drawing(kinds, form) if plot else None
    chosen = engines.get(engine)
    cut = [*([] if snaplen is None else [f"record.snaplen={snaplen} B"]), *settings_of(more or ())]
    todo = _jobs(target, topo, xp, [*(settings or ()), *cut], seed, runs or (), axes or ())
    for message in dict.fromkeys(message for job in todo if isinstance(job, jobs.Job) for message in job.warnings):
        warn(message)
    if qlog and not any(plan.has_quic for job in todo for plan in job.plans):
        warn("nothing runs over QUIC: there are no qlogs")
    others = sorted({name for job in todo for plan in job.plans for name in plan.stacks_by_others}) if qlog else ()
    for name in others:
        warn(f"{name} writes no qlog, and a peer's lacks what came from it")
    if target is not None and target not in labs.names() and Path(target).is_dir():
        _tell_of_engine(Path(target), engine)
    if as_json or as_iperf3:
        _require_one(todo, "--iperf3" if as_iperf3 else "--json")
    if cluster is not None:
        _require_points(todo, engine)
    varied = [job for job in todo if isinstance(job, jobs.Job) and job.varies]
    single = [job for job in todo if job not in varied]
    for name in (figures.of_sweeps(wanted) if wanted is not None and not varied else None) or ():
        warn(f"'{name}' shows a sweep, and nothing varies here: it is not drawn")
    kept = replace(record, segments=plot or as_iperf3)
    with ExitStack() as stack:
        places = [
            None if out is None else stack.enter_context(folder.claim(out / job.folder, folder.RUN, job.inputs))
            for job in single
        ]
        code = (
            sweeps.run(varied, engine, replace(record, account=False), out, wanted, parallel, cluster)
            if varied
            else DONE
        )
        for job, held in zip(single, places, strict=True):
            recording = _run(job, chosen, kept, held)
            if as_iperf3:
                _print_iperf3(recording, application)
            elif as_json:
                console.verbatim(to_json(summary(recording)))
            else:
                result.show(recording, job.name)
            _tell_of_late_events(recording)
            if recording.metadata.interrupted:
                if plot:
                    warn("the run was interrupted: no figures are drawn")
                return INTERRUPTED
            if wanted is not None and held is not None:
                with output.figures_last(held.shown), progress.points(f"{job.name}: figures", "figures") as drawn:
                    lacking = output.draw(recording, held, wanted, drawn)
                for name in lacking:
                    warn(f"{job.name}: {figures.undrawn(name)}")
            if console.unread and held is None:
                return DONE
    if out is not None:
        err.print(f"results in {out}", markup=False)
    return code


def _tell_of_engine(directory: Path, engine: str) -> None:
    """Says where a result was made by another engine than the one that is to run it again."""
    for path, kind in stored.found(directory):
        made = stored.engine(path, kind)
        if made != engine and made in engines.REGISTRY:
            warn(f"{path} was made by engine {made}, and this is {engine}; --engine {made} runs it as it was")


def _require_one(todo: Sequence[Todo], option: str) -> None:
    """Raises InputError where there is more than one run to print."""
    of_scenarios = [job for job in todo if isinstance(job, jobs.Job)]
    if of_scenarios and jobs.only(of_scenarios, f"{option} prints one run").varies:
        raise InputError(f"{option} prints one run; fix what the scenario varies with --set and --seed")


def _require_points(todo: Sequence[Todo], engine: str) -> None:
    """Raises InputError where a cluster has nothing to do, or cannot do it."""
    if engine != "sim":
        raise InputError(f"--cluster computes points in the simulator, not on engine '{engine}'")
    for job in todo:
        if not isinstance(job, jobs.Job) or not job.varies:
            raise InputError(f"--cluster computes the points of sweeps, and {job.name} varies nothing; see --vary")


def _print_iperf3(recording: Recording, application: str | None) -> None:
    from polypath.formats import iperf3

    try:
        text = iperf3.to_json(iperf3.document(recording, application))
    except iperf3.ShapeError as error:
        raise InputError(f"--iperf3: {error}") from error
    console.verbatim(text)


def _jobs(
    target: str | None,
    topo: Path | None,
    xp: Path | None,
    settings: Sequence[str],
    seed: int | None,
    runs: Sequence[str],
    axes: Sequence[str],
) -> Sequence[Todo]:
    if topo is not None and xp is not None and target is None:
        if runs:
            raise InputError("--run chooses among a lab's runs; a minitopo pair is one run")
        found, warnings = jobs.of_minitopo(topo, xp, settings, seed, axes)
        for warning in warnings:
            warn(warning)
        return found
    if target is None or topo is not None or xp is not None:
        raise InputError("name either a lab, a scenario file, or both --topo and --xp")
    if Path(target).suffix == of_plan.SUFFIX:
        given = {"--set": settings, "--seed": seed is not None, "--vary": axes, "--run": runs}
        return [of_plan.job(Path(target), {name: bool(each) for name, each in given.items()})]
    return jobs.of_target(target, runs, settings, seed, axes, later=True)


def _run(job: Todo, engine: Engine, kept: Record, held: Folder | None) -> Recording:
    """Runs, and writes everything but figures."""
    with progress.shown(job.name) as callback:
        try:
            if held is not None:
                return running.run(job.name, job.plan, job.scenario, engine, kept, held, callback)
            options = engines.into(replace(kept, account=account.is_read(job.plan.view)), job.plan, None)
            return running.named(engine.run(job.plan, options, callback), job.name, job.scenario)
        except EngineError as error:
            raise job.placed(error) from error


def _tell_of_late_events(recording: Recording) -> None:
    """A run ends with its applications, and events after that never happen."""
    end_ns = recording.metadata.end_ns
    late = {event["at_ns"] for event in recording.plan.get("events", []) if event["at_ns"] > end_ns}
    if late and not recording.metadata.interrupted:
        first = f"the event at {min(late) / 1e9:g} s" if len(late) == 1 else f"{len(late)} events"
        warn(f"{first} did not happen: the run ended at {end_ns / 1e9:g} s with its last application")
