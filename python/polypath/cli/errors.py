"""How commands end: an exit code, and one line on standard error for any failure."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NoReturn

import typer

from polypath.cli import signals
from polypath.cli.console import cannot_print, out, printable
from polypath.errors import PolypathError

#: Exit codes.
DONE: Final = 0
#: `polypath check` found a figure outside its bounds.
MISSED: Final = 1
BAD_INPUT: Final = 2
#: Ctrl-C; of a command that SIGTERM or SIGHUP ended, the process's own code is 143 or 129.
INTERRUPTED: Final = 130

#: Set to 1, it shows Python's traceback instead of the line.
TRACEBACK: Final = "POLYPATH_TRACEBACK"


#: What does the work of an option that other programs have.
_INSTEAD: Final = {
    "--seeds": "--vary seeds=NUMBER",
    "--scheduler": "--set defaults.scheduler=NAME",
    "--congestion": "--set defaults.congestion=NAME",
    "--path-manager": "--set defaults.path_manager=NAME",
    "--profile": "--set defaults.profile=NAME",
    "--duration": "--set 'duration=10 s'",
}


#: Modules of Python that Windows lacks.
_OF_UNIX: Final = ("fcntl", "pwd", "resource", "termios")
_NEEDS_UNIX: Final = "this needs Linux or macOS; on Windows, run it in WSL 2"


class InputError(PolypathError, ValueError):
    """Options or arguments that make no sense together; the message is one line."""


def require_unix() -> None:
    """Raises InputError on Windows."""
    if sys.platform == "win32":
        raise InputError(_NEEDS_UNIX)


def run(command: Callable[[], object]) -> NoReturn:
    """Runs a command and ends the process with its exit code."""
    try:
        with signals.unwrapped():
            code = command()
    except BaseException as error:
        code = _code(error)
        if os.environ.get(TRACEBACK) == "1" and code not in (DONE, INTERRUPTED):
            raise
        _complain(_line(error))
    else:
        code = code if isinstance(code, int) else DONE
        if code == INTERRUPTED:
            _complain(signals.word())
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        out.discard()
    except OSError as error:
        out.discard()
        if code == DONE:  # else it was said above
            _complain(f"polypath: {cannot_print(error)}")
            code = BAD_INPUT
    # the interpreter's last search for cycles takes a seventh of a short run, and there is nothing to find
    gc.freeze()
    sys.exit(signals.code() if code == INTERRUPTED else code)


def _complain(line: str | None) -> None:
    if line:
        with suppress(OSError):
            print(printable(line), file=sys.stderr)


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
            out.discard()
            return None
        case KeyboardInterrupt() | typer.Abort():
            return signals.word()
        case typer.TyperException() if (other := _instead(error)) is not None:
            return f"polypath: {other}"
        case typer.TyperException():
            # none where a group of commands has shown its help instead
            message = _one_line(error.format_message())
            return f"polypath: {message}" if message else None
        case InputError():
            return f"polypath: {error}"
        case OSError():
            if isinstance(error, PolypathError):
                return f"polypath: {error}"
            where = f"{error.filename}: " if error.filename else ""
            return f"polypath: {where}{error.strerror or error}"
        case ModuleNotFoundError(name=name) if name in _OF_UNIX:
            return f"polypath: {_NEEDS_UNIX}"
        case PolypathError():
            return f"polypath: {_one_line(str(error))}"
        case _:
            kind = type(error).__name__
            return f"polypath: internal error ({kind}: {_one_line(str(error))}); {TRACEBACK}=1 shows where"


def _instead(error: Any) -> str | None:
    """What to give for an unknown option that one of the command's does the work of."""
    unknown = getattr(error, "option_name", "")
    given = _INSTEAD.get(unknown)
    if given is None:
        return None
    known = {option for parameter in error.cmd.params for option in parameter.opts}
    return f"there is no {unknown}; give {given}" if given.split()[0] in known else None


def _one_line(text: str) -> str:
    return " ".join(text.split())
