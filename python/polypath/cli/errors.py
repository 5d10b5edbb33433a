"""How commands end: an exit code, and one line on standard error for whatever goes wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final, NoReturn

import typer

from polypath.cli.codes import BAD_INPUT, DONE, INTERRUPTED
from polypath.cli.console import discard_output
from polypath.engines import EngineError
from polypath.registry import RegistryError
from polypath.results import MetricError, OutputError
from polypath.scenario import ScenarioError

#: Set to 1, it shows Python's traceback instead of the line.
TRACEBACK: Final = "POLYPATH_TRACEBACK"

_EXPECTED = (ScenarioError, EngineError, OutputError, MetricError, RegistryError)


class InputError(ValueError):
    """Options or arguments that make no sense together; the message is one line."""


def run(command: Callable[[], object]) -> NoReturn:
    """Runs a command and ends the process with its exit code."""
    try:
        code = command()
    except BaseException as error:
        code = _code(error)
        if os.environ.get(TRACEBACK) == "1" and code not in (DONE, INTERRUPTED):
            raise
        line = _line(error)
        if line:
            print(line, file=sys.stderr)
    else:
        code = code if isinstance(code, int) else DONE
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
    sys.exit(code)


def _code(error: BaseException) -> int:
    match error:
        case SystemExit(code=1):  # typer leaves so when nobody reads its help
            return DONE
        case SystemExit():
            return error.code if isinstance(error.code, int) else BAD_INPUT
        case typer.Exit():
            return error.exit_code
        case KeyboardInterrupt() | typer.Abort():
            return INTERRUPTED
        case BrokenPipeError():
            return DONE
        case _:
            return BAD_INPUT


def _line(error: BaseException) -> str | None:
    match error:
        case SystemExit() | typer.Exit():
            return None
        case BrokenPipeError():
            discard_output()
            return None
        case KeyboardInterrupt() | typer.Abort():
            return "interrupted"
        case typer.TyperException():
            # none where a group of commands has shown its help instead
            message = _one_line(error.format_message())
            return f"polypath: {message}" if message else None
        case InputError():
            return f"polypath: {error}"
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            return f"polypath: {where}{error.strerror or error}"
        case _ if isinstance(error, _EXPECTED):
            return f"polypath: {_one_line(str(error))}"
        case _:
            kind = type(error).__name__
            return f"polypath: internal error ({kind}: {_one_line(str(error))}); {TRACEBACK}=1 shows where"


def _one_line(text: str) -> str:
    return " ".join(text.split())
