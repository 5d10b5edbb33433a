"""polypath algorithms: the content of the registries."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.text import Text

from polypath.cli import complete
from polypath.cli.console import out, printable, table
from polypath.cli.errors import InputError
from polypath.engines.taken import engines, transports
from polypath.registry import KINDS, Entry, Kind, Parameter, entries
from polypath.scenario import topologies  # noqa: F401, provides the entries of its kind


def algorithms(
    kind: Annotated[
        str | None,
        typer.Argument(metavar="KIND", help=", ".join(KINDS), show_default=False, autocompletion=complete.kinds),
    ] = None,
) -> None:
    """List schedulers, congestion controls, path managers and the rest, with their parameters.

    Example: `polypath algorithms scheduler`.
    """
    chosen = [known for known in KINDS if kind in (None, known)]
    if not chosen:
        raise InputError(f"unknown kind '{kind}'; there is {', '.join(KINDS)}")
    for each in chosen:
        rows = table(each, "description, parameters, source", whole=frozenset({each}))
        for entry in entries(each).values():
            rows.add_row(f"[bold]{escape(entry.name)}[/bold]", _told(each, entry))
        out.print(rows)
        out.print()


def _told(kind: Kind, entry: Entry) -> Text:
    told = Text(printable(entry.description))
    algorithms = [f"{key} = {name}" for key, name in entry.algorithms.items()]
    if algorithms or entry.parameters:
        told.append("\n" + printable(", ".join([*algorithms, *map(_parameter, entry.parameters)])), "cyan")
    taken = engines(kind, entry.name)
    if taken:
        told.append(f"\nengines: {', '.join(taken)}")
    carried = transports(kind)
    if carried:
        told.append(f"; transports: {', '.join(carried)}")
    if entry.source:
        told.append("\n" + printable(entry.source), "dim")
    return told


def _parameter(parameter: Parameter) -> str:
    if parameter.default is None:
        return f"{parameter.name}: {parameter.measure}"
    default = parameter.written(parameter.default)
    if isinstance(default, bool):
        default = str(default).lower()
    return f"{parameter.name} = " + ('""' if default == "" else str(default))
