"""polypath algorithms: what the registries know."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from polypath.cli import complete
from polypath.cli.console import out, table
from polypath.cli.errors import InputError
from polypath.registry import KINDS, Parameter, entries
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
        rows = table(each, "parameters", "description", "source")
        for entry in entries(each).values():
            parameters = "\n".join(_parameter(parameter) for parameter in entry.parameters)
            rows.add_row(
                f"[bold]{escape(entry.name)}[/bold]",
                escape(parameters),
                escape(entry.description),
                escape(entry.source),
            )
        out.print(rows)
        out.print()


def _parameter(parameter: Parameter) -> str:
    if parameter.default is None:
        return f"{parameter.name}: {parameter.kind}"
    default = str(parameter.default).lower() if isinstance(parameter.default, bool) else parameter.default
    return f"{parameter.name} = {default}"
