"""polypath size-buffers: how large a connection's receive buffer must be."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from polypath import units
from polypath.cli import jobs, progress
from polypath.cli.console import out, table
from polypath.cli.errors import DONE, InputError
from polypath.cli.options import Jobs, Runs, Seed, Settings
from polypath.results.phrases import counted
from polypath.sweeps import buffers
from polypath.units import UnitError


def size_buffers(
    target: Annotated[str, typer.Argument(metavar="LAB|SCENARIO.toml", show_default=False)],
    connection: Annotated[
        str | None, typer.Option(metavar="NAME", help="The application, if there are several.")
    ] = None,
    fraction: Annotated[
        str, typer.Option(metavar="SHARE", help="The target, as a fraction of the best goodput.")
    ] = "95 %",
    settings: Settings = None,
    seed: Seed = None,
    runs: Runs = None,
    parallel: Jobs = None,
    engine: Annotated[str, typer.Option(help="The engine.")] = "sim",
) -> int:
    """Find the smallest receive buffer that keeps a connection's paths busy, by rule of thumb and by search.

    Example: `polypath size-buffers scenario.toml`.
    """
    try:
        share = units.parse_share(fraction)
    except UnitError as error:
        raise InputError(f"--fraction {fraction}: {error.message}") from error
    if not 0 < share <= 1:
        raise InputError(f"--fraction {fraction}: it is more than 0 % and at most 100 %")
    todo = jobs.of_target(target, runs or (), settings or (), seed)
    for job in todo:
        job.require_one()
    for job in todo:
        with progress.runs(job.name) as shown:
            found = buffers.size(
                job.scenario,
                connection=connection,
                fraction=share,
                seed=seed,
                jobs=parallel,
                engine=engine,
                progress=shown,
            )
        _show(job.name, found)
    return DONE


def _show(name: str, found: buffers.Sizing) -> None:
    out.print(
        f"[bold]{escape(name)}[/bold]: receive buffer of the {found.receiver} for '{escape(found.connection)}', "
        f"{counted(found.subflows, 'subflow')}"
    )
    rows = table("receive buffer", "", "Mbps", "lost", numbers=frozenset({"receive buffer", "Mbps", "lost"}))
    rule = f"rule of thumb, 2 x {found.links_mbps:g} Mbps x {found.rtt_s * 1e3:g} ms RTT (RFC 6182 section 5.3)"
    rows.add_row(*_trial(found, found.ample, "ample"))
    if f"{found.best.goodput_mbps:.4g}" != f"{found.ample.goodput_mbps:.4g}":
        rows.add_row(*_trial(found, found.best, "best of the ample one and its halves"))
    rows.add_row(*_trial(found, found.rule_of_thumb, rule))
    least = found.smallest.buffer_bytes <= buffers.LEAST_BYTES * (1 + buffers.PRECISION)
    smallest = "smallest that the search tries, still" if least else "smallest"
    rows.add_row(*_trial(found, found.smallest, f"{smallest} with {found.fraction:.4g} of the best"))
    for part, trial in zip(buffers.PARTS, found.below, strict=True):
        rows.add_row(*_trial(found, trial, f"1/{part} of the smallest"))
    out.print(rows)


def _trial(found: buffers.Sizing, trial: buffers.Trial, what: str) -> tuple[str, ...]:
    lost = 1 - trial.goodput_mbps / found.best.goodput_mbps
    return _size(trial.buffer_bytes), what, f"{trial.goodput_mbps:.4g}", f"{max(lost, 0.0):.1%}"


def _size(number: float) -> str:
    """Three digits: the search is no finer."""
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f} B"
