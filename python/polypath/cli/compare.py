"""polypath compare: the figures of a scenario for several values of a setting, or on several engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.markup import escape

from polypath.cli import agreement, contenders, fidelity, fidelity_labs, jobs
from polypath.cli import figures as drawing
from polypath.cli.console import err, out, table
from polypath.cli.errors import DONE, InputError
from polypath.cli.kept import Kept
from polypath.cli.options import Axes, Jobs, OutFolder, Runs, Seed, Settings
from polypath.results import Recording, folder, layout
from polypath.results.folder import Folder
from polypath.scenario.seeds import MOST as MOST_SEEDS
from polypath.statistics import comparison

_REFERENCE: Final = "linux"
_ENGINES: Final = f"sim,{_REFERENCE}"


def compare(
    target: Annotated[str | None, typer.Argument(metavar="LAB|SCENARIO.toml", show_default=False)] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every scenario of the fidelity table.")] = False,
    every_lab: Annotated[bool, typer.Option("--labs", help="Every run of every lab, in the profile 'linux'.")] = False,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="PATH[=A,B]",
            help="Compare values of a setting, paired by seed. Default values: those that the scenario varies, or all.",
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE", help="With --by: the value that the others are compared with. Default: the first."
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_SEEDS, help="With --by: number of seeds. Default: the scenario's, or 10."),
    ] = None,
    measures: Annotated[
        list[str] | None,
        typer.Option("--measure", metavar="NAME", help="With --by: only this measure (repeatable), such as goodput."),
    ] = None,
    networks: Annotated[
        list[str] | None,
        typer.Option(
            "--networks",
            metavar="AXIS",
            help="With --by: the axes whose points are networks (repeatable); one table over all of them.",
        ),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(
            "--engines",
            metavar="A,B",
            help="Engines; the first is the base. Default: sim,linux. noq: the simulator, with noq on every "
            "host. With --by: a single engine.",
        ),
    ] = None,
    settings: Settings = None,
    seed: Seed = None,
    runs: Runs = None,
    axes: Axes = None,
    parallel: Jobs = None,
    directory: OutFolder = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --all or --labs, also write the table as a page.")
    ] = None,
) -> int:
    """Compare the figures of a lab or a scenario for several values of a setting, or on several engines.

    With --by: every value with every seed, with the differences within seeds, intervals and p-values.

    With --networks besides: each value over many networks, as ratios, wins and ranks.

    Without it: on several engines, side by side.

    With --all: the scenarios of the fidelity table on two engines. Exit code 1 means an unexplained difference.
    Scenarios over QUIC are compared with noq, with --engines sim,noq.

    With --labs: all runs of the labs, or of LAB, that both engines support, and the reasons for the others. With --out,
    the kernel's runs are kept, and existing ones are used.

    Examples: `polypath compare scenario.toml --by defaults.scheduler --seeds 20`,
    `polypath compare aggregation --engines sim,linux`.
    """
    if by is not None:
        return _paired(
            target,
            everything or every_lab,
            by,
            base,
            seeds,
            measures,
            networks,
            names,
            settings,
            seed,
            runs,
            axes,
            parallel,
            directory,
            markdown,
        )
    for option, given in {
        "--base": base,
        "--seeds": seeds,
        "--measure": measures,
        "--networks": networks,
        "--vary": axes,
    }.items():
        if given:
            raise InputError(f"{option} goes with --by")
    named = _ENGINES if names is None else names
    chosen = [name.strip() for name in named.split(",") if name.strip()]
    if len(chosen) < 2 or len(set(chosen)) < len(chosen):
        raise InputError("--engines takes two or more engines, each once, as in --engines sim,linux")
    if everything and every_lab:
        raise InputError("--all runs the fidelity table and --labs the labs: take one of them")
    if everything or every_lab:
        option = "--all" if everything else "--labs"
        if len(chosen) != 2:
            raise InputError(f"{option} compares two engines, as in --engines sim,linux")
        if settings or seed is not None:
            raise InputError(f"{option} runs what it compares as it is: without --set or --seed")
        if everything:
            if target or runs or directory:
                raise InputError("--all runs the fidelity table as it is: without LAB, --run or --out")
            return fidelity.run(chosen[0], chosen[1], markdown)
        return _labs(chosen[0], chosen[1], target, runs or (), directory, markdown)
    if target is None:
        raise InputError("name a lab or a scenario file, or --all or --labs")
    if markdown is not None:
        raise InputError("--markdown goes with --all or --labs")
    made = {name: contenders.get(name) for name in chosen}
    with ExitStack() as stack:
        own = {
            name: jobs.of_target(target, runs or (), (*(settings or ()), *one.settings), seed, dry=number > 0)
            for number, (name, one) in enumerate(made.items())
        }
        todo = own[chosen[0]]
        for job in todo:
            job.require_one()
        places = [
            None
            if directory is None
            else stack.enter_context(folder.claim(directory / job.folder, folder.COMPARISON, job.inputs))
            for job in todo
        ]
        for index, (job, place) in enumerate(zip(todo, places, strict=True)):
            recordings = {
                name: agreement.recorded(one.engine, f"{job.name} on {name}", own[name][index].plan)
                for name, one in made.items()
            }
            figures = comparison.compare(recordings)
            if place is not None:
                _save(place, recordings, figures)
            _show(job.name, chosen, figures)
            if out.unread and place is None:
                return DONE
    if directory is not None:
        err.print(f"results in {directory}", markup=False)
    return DONE


def _labs(
    base: str, other: str, target: str | None, runs: Sequence[str], directory: Path | None, markdown: Path | None
) -> int:
    if contenders.NOQ in (base, other):
        raise InputError("--labs runs in the kernel's profile, which noq has no part in: take --all")
    if target is None and runs:
        raise InputError("--run chooses among a lab's runs: name the lab")
    if target is not None and markdown is not None:
        raise InputError("--markdown writes the page of all labs: without LAB")
    from polypath.engines.linux.engine import LinuxEngine

    if directory is not None and other != _REFERENCE:
        raise InputError(f"--out keeps the kernel's runs: the second engine is then {_REFERENCE}")
    keep = fidelity_labs.NONE if directory is None else Kept(directory, LinuxEngine().versions())
    return fidelity_labs.run(base, other, markdown, target, runs, keep)


def _paired(
    target: str | None,
    of_tables: bool,
    by: str,
    base: str | None,
    seeds: int | None,
    measures: list[str] | None,
    networks: list[str] | None,
    engine: str | None,
    settings: list[str] | None,
    seed: int | None,
    runs: list[str] | None,
    axes: list[str] | None,
    parallel: int | None,
    directory: Path | None,
    markdown: Path | None,
) -> int:
    if target is None or of_tables:
        raise InputError("--by takes one lab or scenario file")
    if markdown is not None:
        raise InputError("--markdown goes with --all or --labs")
    if seed is not None:
        raise InputError("--by compares over several seeds: give their number, --seeds 10, or --vary seed=4,5,6")
    if engine is not None and "," in engine:
        raise InputError("--by compares on one engine, as in --engines sim")
    from polypath.cli import paired

    return paired.run(
        target,
        by,
        base,
        seeds,
        measures or (),
        networks or (),
        settings or (),
        runs or (),
        axes or (),
        engine or "sim",
        directory,
        parallel,
    )


def _show(name: str, chosen: list[str], figures: list[comparison.Figure]) -> None:
    base, *others = chosen
    ratios = [f"{other}/{base}" for other in others]
    headings = ("connection", "figure", *chosen, *ratios)
    shown = table(*headings, numbers=frozenset((*chosen, *ratios)), title=name)
    last = None
    for figure in figures:
        subject = figure.connection if not figure.subject else f"  {figure.subject}"
        shown.add_row(
            escape(subject) if subject != last else "",
            f"{figure.measure}, {figure.unit}",
            *(_number(figure.values[engine]) for engine in chosen),
            *(_number(figure.ratio(other, base)) for other in others),
        )
        last = subject
    out.print(shown)
    out.print()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"


def _save(held: Folder, recordings: Mapping[str, Recording], figures: list[comparison.Figure]) -> None:
    drawing.ready()
    from polypath.plots import save

    data = {
        "engines": {name: dict(recording.metadata.versions) for name, recording in recordings.items()},
        "figures": [figure.to_dict() for figure in figures],
    }
    staged = held.stage()
    save("rate", recordings, staged / layout.RATES)
    held.commit(data)
