"""polypath export: a result in another tool's format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from polypath.cli.console import err
from polypath.cli.errors import InputError
from polypath.cli.options import Application
from polypath.cli.write import require_new, require_not_read
from polypath.engines import owned
from polypath.formats import EXPORTERS, ExportError
from polypath.results import OutputError, Recording, folder, layout
from polypath.results.files import write_csv
from polypath.results.phrases import counted
from polypath.results.stored import StoredSweep
from polypath.results.tidy import tidy

_CSV: Final = "csv"
#: Of the folder in which it is until it is whole.
_PARTIAL = ".polypath-export-"


def export(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help=", ".join(EXPORTERS), show_default=False)],
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder that `run --out` wrote.", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            help="A new file for iperf3, netanim and a sweep, otherwise a new folder.",
            show_default=False,
        ),
    ],
    application: Application = None,
) -> None:
    """Write a result in the format of another tool.

    Format csv has every table of a run. A sweep becomes one file, with a row for each point, seed and connection.

    Format iperf3 has a transfer as the JSON of `iperf3 -J`.

    Format xplot has time-sequence graphs like tcptrace's, for a run with `--plot`. Format netanim has an animation for
    ns-3's NetAnim, for a run with `--pcap links`. Format qvis has qlogs that qvis loads, for a run with `--qlog`.

    Examples: `polypath export csv results/mptcp --out tables`,
    `polypath export csv sweep --out sweep.csv`, `polypath export iperf3 results/mptcp --out mptcp.json`.
    """
    if form not in EXPORTERS:
        raise InputError(f"unknown format '{form}'; there is {', '.join(EXPORTERS)}")
    exporter = EXPORTERS[form]
    if form == _CSV and application is None and folder.files(directory, folder.SWEEP) is not None:
        _of_sweep(directory, out)
        return
    if application is not None and not exporter.one:
        raise InputError(f"--application is of iperf3; {form} has all of them")
    recording = Recording.load(directory)
    listed = folder.files(directory, folder.RUN) or {}
    require_not_read(out, *(directory / name for name in (layout.MANIFEST, *listed)))
    require_new(out)
    owned.clear(out.parent, _PARTIAL)
    try:
        with owned.made(out.parent, _PARTIAL) as place:
            partial = place / out.name
            if exporter.folder:
                partial.mkdir()
            try:
                count = exporter.write(recording, directory, partial, application)
            except ExportError as error:
                raise OutputError(str(error)) from error
            except OutputError as error:
                raise OutputError(str(error).replace(str(partial), str(out))) from error
            partial.replace(out)
    except OutputError:
        raise
    except OSError as error:
        # that of a write names no file, or our own folder
        own = error.filename is None or _PARTIAL in str(error.filename)
        raise OutputError(f"{f'cannot write {out}' if own else error.filename}: {error.strerror or error}") from error
    err.print(f"{counted(count, exporter.what)} in {out}", markup=False)


def _of_sweep(directory: Path, out: Path) -> None:
    """Writes the table of a sweep's points into a new file."""
    table = tidy(StoredSweep.read(directory).points)
    require_not_read(
        out, *(directory / name for name in (layout.INDEX, *(folder.files(directory, folder.SWEEP) or {})))
    )
    require_new(out)
    write_csv(out, table)
    err.print(f"{counted(table.height, 'row')} in {out}", markup=False)
