"""polypath new-trace: a synthetic trace of a link."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from polypath.cli.console import err, printable
from polypath.cli.errors import InputError
from polypath.cli.write import require_new, write
from polypath.results import UnknownName
from polypath.scenario.synthetic import KINDS
from polypath.units import TIME, UnitError

LONGEST_S = 3600


def new_trace(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"One of {', '.join(KINDS)}.")],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="A new file. Default: standard output.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.", min=0)] = 1,
    duration: Annotated[str, typer.Option(metavar="TIME", help="Length of the trace, in whole seconds.")] = "30 s",
) -> None:
    """Write a synthetic trace of a link, from a published model with a seed: lte, wifi-walk or satellite.

    The same seed gives the same file. `lte` is in the format of Mahimahi's mm-link, for `rate = { trace = "FILE" }` of
    a link. `wifi-walk` and `satellite` are CSV, for `conditions = { csv = "FILE" }`. Existing files are not
    overwritten.

    Examples: `polypath new-trace lte lte.up --seed 7 --duration '60 s'`, `polypath new-trace wifi-walk walk.csv`.
    """
    if kind not in KINDS:
        raise UnknownName.of("kind of trace", kind, KINDS)
    try:
        length = TIME.parse(duration, positive=True)
    except UnitError as error:
        raise InputError(f"--duration {duration}: {error}") from error
    if length % 1_000_000_000 or length > LONGEST_S * 1_000_000_000:
        raise InputError(f"--duration {duration}: a trace has whole seconds, from 1 to {LONGEST_S}")
    if file is not None:
        require_new(file)
    write(KINDS[kind].make(seed, length // 1_000_000_000), file)
    if file is not None:
        use = KINDS[kind].scenario.format(file=json.dumps(file.name))
        err.print(f"wrote {printable(str(file))}; a link beside it takes {printable(use)}", markup=False)
