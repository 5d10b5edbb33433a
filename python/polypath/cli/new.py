"""polypath new: a first scenario, from options or from answers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from polypath.cli import complete
from polypath.cli.console import err, printable
from polypath.cli.errors import InputError
from polypath.cli.write import require_new, write
from polypath.scenario import ScenarioError
from polypath.scenario.template import APPLICATIONS, TRANSPORTS, Wanted, choices, parsed_paths, require_known, text
from polypath.units import TIME, UnitError


def new(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE.toml", help="A new file. Default: standard output.", show_default=False),
    ] = None,
    paths: Annotated[
        str | None,
        typer.Option(
            metavar="N|NAME,..", help="A number, or names such as wifi,lte='15 Mbps/30 ms'. Default: wifi,lte."
        ),
    ] = None,
    transport: Annotated[
        str | None,
        typer.Option(help=f"{', '.join(TRANSPORTS)}. Default: mptcp.", autocompletion=complete.template("transport")),
    ] = None,
    application: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(APPLICATIONS)}. Default: bulk.", autocompletion=complete.template("application")
        ),
    ] = None,
    duration: Annotated[
        str | None, typer.Option(metavar="TIME", help="The latest end of the run. Default: 20 s.")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            help="The stack's defaults: rfc, linux, mptcp.org. Default: rfc.",
            autocompletion=complete.template("profile"),
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="One of `polypath algorithms scheduler`.", autocompletion=complete.template("scheduler")),
    ] = None,
    congestion: Annotated[
        str | None,
        typer.Option(help="One of `polypath algorithms congestion`.", autocompletion=complete.template("congestion")),
    ] = None,
) -> None:
    """Write a scenario with an explanation above each line, from options or from answers.

    With only a file name, on a terminal, it asks questions. Existing files are not overwritten. The new scenario runs
    without changes.

    Examples: `polypath new scenario.toml`, `polypath new --paths 3 --transport mpquic --application fetch`,
    `polypath new home.toml --paths 'wifi,lte=20 Mbps/40 ms' --scheduler blest`.
    """
    if file is not None:
        require_new(file)
    given = {
        "paths": paths,
        "transport": transport,
        "application": application,
        "duration": duration,
        "profile": profile,
        "scheduler": scheduler,
        "congestion": congestion,
    }
    wanted = Wanted()
    if file is not None and not any(given.values()) and sys.stdin.isatty():
        wanted = _asked(wanted)
    for key, value in given.items():
        if value is not None:
            try:
                wanted = _with(wanted, key, value)
            except ScenarioError as error:
                raise InputError(f"--{key} {value}: {error}") from error
    try:
        made = text(wanted, "scenario.toml" if file is None else str(file))
    except ScenarioError as error:
        said = ScenarioError(error.message, hint=error.hint)
        raise InputError(f"this does not go together, nothing is written: {said}") from error
    write(made, file)
    if file is not None:
        err.print(f"wrote {printable(str(file))}; next: polypath run {printable(str(file))}", markup=False)


def _with(wanted: Wanted, key: str, value: str) -> Wanted:
    """A copy with one value replaced by the text given. Raises ScenarioError."""
    made: Any = value.strip()
    if key == "paths":
        made = parsed_paths(value)
    elif key == "duration":
        try:
            TIME.parse(made, positive=True)
        except UnitError as error:
            raise ScenarioError(error.message, hint=error.hint) from error
    else:
        require_known(key, made)
    return replace(wanted, **{key: made})


_QUESTIONS = (
    ("paths", "Paths: a number, or names such as wifi,lte", "wifi,lte"),
    ("transport", "Transport", "mptcp"),
    ("application", "Application", "bulk"),
    ("duration", "The run ends after", "20 s"),
    ("scheduler", "Packet scheduler", ""),
)


def _asked(wanted: Wanted) -> Wanted:
    """What a person answers on the terminal; an empty line takes what stands in brackets."""
    for key, question, usual in _QUESTIONS:
        known = f" ({', '.join(choices(key))})" if key in ("transport", "application", "scheduler") else ""
        wanted = _answered(f"{question}{known} [{usual or 'as the profile has it'}]: ", usual, wanted, key, _with)
    return wanted


def _answered(
    question: str, usual: str, wanted: Wanted, key: str, take: Callable[[Wanted, str, str], Wanted]
) -> Wanted:
    while True:
        err.print(question, end="", markup=False)
        line = sys.stdin.readline()
        if not line:
            raise InputError("no answer: the input ended; give flags instead")
        answer = line.strip() or usual
        if not answer:
            return wanted
        try:
            return take(wanted, key, answer)
        except ScenarioError as error:
            err.print(str(error), markup=False)
