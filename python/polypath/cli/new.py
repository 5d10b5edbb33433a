"""polypath new: a first scenario, from options or from answers, or a lab."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from polypath.cli import complete
from polypath.cli.console import err, printable
from polypath.cli.errors import InputError
from polypath.cli.write import require_new, write
from polypath.labs import new as new_lab
from polypath.scenario import ScenarioError
from polypath.scenario.template import APPLICATIONS, TRANSPORTS, Wanted, choices, parsed_paths, require_known, text
from polypath.units import TIME, UnitError

#: The word before the name of a new lab.
_LAB: Final = "lab"


def new(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE.toml|lab", help="A new file. Default: standard output.", show_default=False),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="NAME", help="With `lab`: the new folder of a lab of your own.", show_default=False),
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
    """Write a scenario with an explanation above each line, or a lab of your own.

    With only a file name, on a terminal, it asks questions. Existing files are not overwritten. The new scenario runs
    without changes. `polypath new lab NAME` writes a lab: a scenario, its runs, a question and a claim that holds.

    Examples: `polypath new scenario.toml`, `polypath new lab mylab`,
    `polypath new --paths 3 --transport mpquic --application fetch`,
    `polypath new home.toml --paths 'wifi,lte=20 Mbps/40 ms' --scheduler blest`.
    """
    given = {
        "paths": paths,
        "transport": transport,
        "application": application,
        "duration": duration,
        "profile": profile,
        "scheduler": scheduler,
        "congestion": congestion,
    }
    if folder is not None or file == Path(_LAB):
        _lab(file, folder, [f"--{key.replace('_', '-')}" for key, value in given.items() if value is not None])
        return
    if file is not None:
        require_new(file)
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


def _lab(word: Path | None, folder: Path | None, options: list[str]) -> None:
    """Writes the folder of a lab. Raises InputError where something has its name."""
    if word != Path(_LAB) or folder is None:
        raise InputError(f"a lab is written by polypath new {_LAB} NAME, a scenario by polypath new FILE.toml")
    if options:
        raise InputError(f"{options[0]} is for a scenario; change scenario.toml of the new lab instead")
    require_new(folder)
    for name, made in new_lab.files(folder).items():
        write(made, folder / name)
    shown = printable(shlex.quote(str(folder)))
    err.print(f"wrote {shown}; next: polypath show {shown}, polypath check {shown}", markup=False)


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
