"""polypath plot: figures of stored results, for papers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from polypath.cli import figures, progress
from polypath.cli.console import err, warn
from polypath.cli.errors import InputError
from polypath.cli.figures import Drawing
from polypath.cli.options import OutFolder
from polypath.results import MetricError, OutputError, Recording, folder, layout, reading, stored
from polypath.results.names import of_folders, told_apart
from polypath.results.stored import StoredSweep
from polypath.units import nearest


@dataclass(frozen=True)
class _Found:
    """What the results named hold."""

    runs: Mapping[Path, Recording]
    sweeps: Mapping[Path, StoredSweep]


def plot(
    results: Annotated[list[Path], typer.Argument(metavar="RESULT..", help="Folders that `polypath run --out` wrote.")],
    kinds: figures.Kinds = None,
    form: figures.Format = "png",
    size: figures.Size = None,
    font_size: figures.FontSize = None,
    no_title: figures.NoTitle = False,
    sheet: figures.Style = None,
    smooth: figures.Smooth = None,
    connection: Annotated[
        str | None,
        typer.Option(
            "--connection", metavar="NAME", help="Draw only this connection of a sweep, or this class of flows."
        ),
    ] = None,
    out: OutFolder = None,
) -> None:
    """Draw figures of stored results, with several runs on the same axes, or boxes of several sweeps side by side.

    The figures of a single result become part of it, in its folder `plots`. Figures of several results go to `--out
    DIR`, a folder of figures. Files that a person made or changed are never overwritten.

    Examples: `polypath plot results/mptcp --kind rate,window+rtt --format pdf --size 3.5x2.4 --no-title`,
    `polypath plot results/tcp results/mptcp --kind rate,cdf --out figures`,
    `polypath plot sweep --kind cdf-completion --connection files`.
    """
    wanted = figures.drawing(kinds, form, size, font_size, no_title, sheet, smooth)
    found = _read(results)
    if connection is not None:
        found = _only(found, connection)
    if found.runs and found.sweeps:
        raise InputError("runs and sweeps have no axes in common; draw them by commands of their own")
    _require_suited(found, wanted)
    if len(found.sweeps) > 1:
        _require_shared(found, wanted)
    places = [*found.runs, *found.sweeps]
    if out is None and len(places) > 1:
        raise InputError(f"figures of {len(places)} results need --out DIR to write to")
    kind = folder.DRAWN if out is not None else folder.SWEEP if found.sweeps else folder.RUN
    target = places[0] if out is None else out
    with folder.claim(target, kind) as held:
        staged = held.stage()
        saved = _draw(found, wanted, staged if out is not None else staged / layout.PLOTS)
        if not saved:
            raise InputError(f"there is nothing to draw: {_reason(found, wanted)}")
        held.commit(_told(target, found, saved) if out is not None else None, keep=True)
    for path in saved:
        where = target / path.name if out is not None else target / layout.PLOTS / path.name
        err.print(f"{where}", markup=False, soft_wrap=True)


def _read(results: Sequence[Path]) -> _Found:
    runs: dict[Path, Recording] = {}
    sweeps: dict[Path, StoredSweep] = {}
    for path in results:
        if not path.is_dir():
            raise OutputError(f"no results in {path}: it is {'a file' if path.exists() else 'not there'}")
        places = list(stored.found(path))
        if not places:
            raise OutputError(f"no results in {path}; name a folder that `polypath run --out` wrote")
        for place, kind in places:
            if kind is folder.RUN:
                runs[place] = Recording.load(place)
            else:
                sweeps[place] = StoredSweep.read(place)
    return _Found(runs, sweeps)


def _only(found: _Found, connection: str) -> _Found:
    """The sweeps with the tables of one connection. Raises InputError where one has none of that name."""
    if found.runs:
        raise InputError(f"--connection chooses in the tables of a sweep; {next(iter(found.runs))} is a run")
    for path, sweep in found.sweeps.items():
        known = sweep.points["connection"].unique(maintain_order=True).to_list()
        if connection not in known:
            hint = nearest(connection, known)
            raise InputError(
                f"--connection: {path} has no connection '{connection}'; "
                + (f"did you mean '{hint}'?" if hint else f"it has {', '.join(known)}")
            )
    own = pl.col("connection") == connection
    return _Found(
        {},
        {
            path: replace(sweep, points=sweep.points.filter(own), statistics=sweep.statistics.filter(own))
            for path, sweep in found.sweeps.items()
        },
    )


def _require_suited(found: _Found, wanted: Drawing) -> None:
    """Raises InputError for figures of runs where there is a sweep, and the other way round."""
    suited = figures.of_sweeps(wanted) if found.sweeps else figures.of_runs(wanted)
    for name in wanted.names or ():
        if suited is not None and name not in suited:
            if found.sweeps:
                raise InputError(f"'{name}' shows runs; name the folders of points in {next(iter(found.sweeps))}")
            raise InputError(f"'{name}' shows a sweep; {next(iter(found.runs))} is a run")


def _require_shared(found: _Found, wanted: Drawing) -> None:
    """Raises InputError for figures that several sweeps do not share."""
    from polypath.plots import sweeps

    if wanted.names is None or any(name not in sweeps.SHARED for name in wanted.names):
        names = ", ".join(str(path) for path in found.sweeps)
        raise InputError(
            f"a sweep is drawn by itself, but for {', '.join(sweeps.SHARED[:2])} and so on; name one of {names}"
        )


def _draw(found: _Found, wanted: Drawing, directory: Path) -> list[Path]:
    figures.ready()
    from polypath import plots
    from polypath.plots import sweeps

    with progress.points("figures", "figures") as shown:
        if found.sweeps:
            results, asked = list(found.sweeps.values()), figures.of_sweeps(wanted)
            if len(results) > 1:
                saved = sweeps.save_shared(results, directory, asked or (), wanted.form, wanted.look)
            else:
                (result,) = results
                saved = sweeps.save_all(result, result.load, directory, asked, wanted.form, wanted.look, progress=shown)
            for name in asked or ():
                if directory / f"{name}.{wanted.form}" not in saved:
                    warn(figures.undrawn(name))
            return saved
        runs = labelled(found.runs)
        names = figures.of_runs(wanted)
        if names is None:
            names = list(plots.USUAL if len(runs) == 1 else plots.shared())
        saved = []
        for number, name in enumerate(names):
            shown(number, len(names))
            path = directory / plots.file_name(name, wanted.form)
            try:
                made = plots.save(name, runs, path, wanted.look, smooth_s=wanted.smooth_s)
            except MetricError as error:
                raise InputError(f"--kind {name}: {error}") from error
            if made is not None:
                saved.append(made)
            elif wanted.names is not None:
                warn(figures.undrawn(name))
        return saved


def labelled(runs: Mapping[Path, Recording]) -> dict[str, Recording]:
    """Runs by a name for the legend: what differs of their own, or the folder's where only that tells them apart."""
    names = told_apart([run.metadata.scenario for run in runs.values()])
    if len(set(names)) < len(names):
        names = of_folders(list(runs))
    return dict(zip(names, runs.values(), strict=True))


def _reason(found: _Found, wanted: Drawing) -> str:
    what = "the sweep" if found.sweeps else "the run" if len(found.runs) == 1 else "none of the runs"
    if wanted.names is None:
        return f"{what} has no values"
    return f"{what} has nothing for {', '.join(wanted.names)}"


def _told(target: Path, found: _Found, saved: Sequence[Path]) -> dict[str, Any]:
    """What figures.json says: of each figure the runs that it shows."""
    try:
        before = reading.data(target / layout.DRAWN).get("drawn", {})
    except (OSError, ValueError):
        before = {}
    runs = [
        {"scenario": run.metadata.scenario, "recording_sha256": run.metadata.recording_sha256}
        for run in found.runs.values()
    ] or [{"scenario": sweep.name} for sweep in found.sweeps.values()]
    return {"format": 1, "drawn": {**before, **{path.name: runs for path in saved}}}
