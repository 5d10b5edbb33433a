"""polypath import: another tool's files as a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polypath.cli.console import warn
from polypath.cli.options import OutFile
from polypath.cli.write import require_not_read, write
from polypath.formats import minitopo


def import_(
    topo: Annotated[Path, typer.Argument(metavar="TOPO", help="minitopo topology.", show_default=False)],
    xp: Annotated[Path, typer.Argument(metavar="XP", help="minitopo experiment.", show_default=False)],
    out: OutFile = None,
) -> None:
    """Turn a minitopo pair into a scenario."""
    if out is not None:
        require_not_read(out, topo, xp)
    scenario, warnings = minitopo.load(topo, xp)
    for warning in warnings:
        warn(warning)
    write(scenario.to_toml(), out)
