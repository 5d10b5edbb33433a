"""polypath completion: the script that lets a shell complete commands, options and names."""

from __future__ import annotations

from typing import Annotated, Final

import typer
from typer._completion_shared import get_completion_script

from polypath.cli.console import out
from polypath.cli.errors import InputError
from polypath.units import nearest

SHELLS: Final = ("bash", "zsh", "fish")
#: Set by the scripts; `main` answers them then.
VARIABLE: Final = "_POLYPATH_COMPLETE"


def completion(
    shell: Annotated[
        str,
        typer.Argument(metavar="|".join(SHELLS), show_default=False, autocompletion=lambda: list(SHELLS)),
    ],
) -> None:
    """Print the script that lets bash, zsh or fish complete commands, options and names.

    Examples: `polypath completion bash`, `polypath completion zsh`, `polypath completion fish`.
    """
    if shell not in SHELLS:
        hint = nearest(shell, SHELLS)
        raise InputError(
            f"unknown shell '{shell}'; " + (f"did you mean '{hint}'?" if hint else f"there is {', '.join(SHELLS)}")
        )
    script = get_completion_script(prog_name="polypath", complete_var=VARIABLE, shell=shell)
    out.verbatim(script + "\n")


def answer() -> None:
    """Makes typer know the shells; for a process that a script has started."""
    from typer._completion_classes import completion_init

    completion_init()
