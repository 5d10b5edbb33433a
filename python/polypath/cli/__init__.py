"""The command line, `polypath`: one file a command."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

from polypath import _core
from polypath.cli import (
    algorithms,
    bench,
    check,
    compare,
    console,
    errors,
    export,
    import_,
    kernel,
    labs,
    run,
    schema,
    show,
    signals,
    size_buffers,
)

app = typer.Typer(
    name="polypath",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def polypath(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Polypath, a multipath transport lab: describe a network with several paths, run it, see what came of it."""
    if version:
        typer.echo(f"polypath {_core.version()}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for name, command in (
    ("run", run.run),
    ("labs", labs.labs),
    ("show", show.show),
    ("check", check.check),
    ("compare", compare.compare),
    ("size-buffers", size_buffers.size_buffers),
    ("algorithms", algorithms.algorithms),
    ("import", import_.import_),
    ("export", export.export),
    ("schema", schema.schema),
    ("bench", bench.bench),
):
    app.command(name)(command)
app.add_typer(kernel.app, name="kernel")


def main() -> NoReturn:
    """The entry point; ends the process."""
    signals.install()
    console.encode_what_can_be()
    if console.STARTED_CLOSED:
        console.warn("standard output is closed: results are not shown")
    errors.run(lambda: app(prog_name="polypath", standalone_mode=False))
