"""polypath bench: how fast the simulator is."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.markup import escape

from polypath import _core
from polypath.cli.console import out, table
from polypath.cli.errors import InputError

WORKS = ("W1", "W2", "W3", "W6")


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="WORK..", help=", ".join(WORKS), show_default=False)
    ] = None,
    seconds: Annotated[float | None, typer.Option(min=0.001, help="Simulated time, instead of the work's own.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print measurements as JSON, one line a work.")] = False,
) -> None:
    """Measure process CPU time per packet-hop."""
    chosen = names or list(WORKS)
    for name in chosen:
        if name not in WORKS:
            raise InputError(f"unknown benchmark '{name}'; there is {', '.join(WORKS)}")
    rows: list[dict[str, Any]] = []
    for name in chosen:
        rows.append(json.loads(_core.bench(name, seconds)))
        if as_json:
            print(json.dumps({"name": name} | rows[-1]), flush=True)
    if not as_json:
        _show(chosen, rows)


def _show(names: list[str], rows: list[dict[str, Any]]) -> None:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    shown = table("work", *columns, numbers=frozenset(columns))
    for name, row in zip(names, rows, strict=True):
        shown.add_row(name, *(_cell(row.get(column)) for column in columns))
    out.print(shown)


def _cell(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else escape("" if value is None else str(value))
