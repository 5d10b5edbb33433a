"""polypath bundle: results, and all that made them, as one file that another person runs again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polypath.cli import complete
from polypath.cli.console import out as console
from polypath.cli.console import warn
from polypath.cli.write import require_new
from polypath.results.phrases import counted


def bundle(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULT..",
            help="Folders that `run --out` wrote: runs, sweeps, or several runs of a lab.",
            show_default=False,
            autocompletion=complete.folders,
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE.zip", help="A new file.", show_default=False)],
    name: Annotated[str | None, typer.Option(metavar="TEXT", help="Title. Default: the file's name.")] = None,
    description: Annotated[str, typer.Option(metavar="TEXT", help="What the results are.", show_default=False)] = "",
    author: Annotated[list[str] | None, typer.Option(metavar="NAME", help="An author (repeatable).")] = None,
    licence: Annotated[
        str,
        typer.Option(
            "--license",
            metavar="URL|TEXT",
            help="How others may use it, e.g. https://creativecommons.org/licenses/by/4.0/.",
            show_default=False,
        ),
    ] = "",
    date: Annotated[
        str | None,
        typer.Option(metavar="YYYY-MM-DD", help="Date of publication. Default: the day of the newest result."),
    ] = None,
    add: Annotated[
        list[Path] | None,
        typer.Option("--add", metavar="FILE|DIR", help="A further file, or a folder of figures (repeatable)."),
    ] = None,
    light: Annotated[
        bool, typer.Option("--light", help="Leave out recorded tables, captures and qlogs, which a rerun makes again.")
    ] = False,
) -> None:
    """Write results, and all that made them, into one file that another person runs again.

    The file is an RO-Crate 1.2 with scenarios, algorithms, traces, plans, tables, figures, versions and hashes. The
    same results give the same bytes. `polypath rerun FILE.zip` runs it.

    Examples: `polypath bundle results/mptcp results/tcp --out paper.zip`,
    `polypath bundle sweep --out paper.zip --light --author 'A. Author' --add figure3.pdf`.
    """
    from polypath import bundles

    require_new(out)
    day = None if date is None else bundles.require_date(date)
    about = bundles.About(name or out.stem, description, licence, author or (), day)
    packed = bundles.pack(results, out, about, added=add or (), light=light)
    for message in packed.warnings:
        warn(message)
    what = [counted(packed.results, "result"), counted(packed.runs, "run"), counted(packed.files, "file")]
    console.print(f"{out}: {', '.join(what)}, SHA-256 {packed.sha256}", markup=False, soft_wrap=True)
