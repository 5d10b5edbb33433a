"""A command imports what it needs. Importing the rest would cost more CPU time than most commands take."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

import polypath
from polypath import cli

#: What no command needs before it draws, sweeps or exports.
RARE = {
    "dask",
    "distributed",
    "loky",
    "matplotlib",
    "networkx",
    "numpy",
    "rich.progress",
    "scipy",
    "tomlkit",
    "xml",
    "polypath.engines.linux",
    "polypath.engines.live",
    "polypath.formats",
    "polypath.plots",
}
HEAVY = {"polars", "pydantic", "polypath._core", "polypath.engines", "polypath.results", "polypath.scenario"}

SCRIPT = """
import sys
from polypath.command import main
sys.argv = ["polypath", *sys.argv[1:]]
try:
    main()
finally:
    print(*sys.modules, sep="\\n", file=sys.stderr)
"""


def imported(*arguments: str) -> set[str]:
    """The modules that a command has imported when it ends."""
    command = [sys.executable, "-c", SCRIPT, *arguments]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stderr.splitlines())


@pytest.mark.parametrize("arguments", [["--help"], ["-h"]])
def test_the_list_of_commands_imports_none_of_them(arguments: list[str]) -> None:
    found = imported(*arguments)
    assert "polypath.cli" in found
    assert not found & (HEAVY | RARE)
    assert not {f"polypath.cli.{command.module}" for command in cli.COMMANDS.values()} & found


def test_the_version_imports_the_native_module_alone() -> None:
    found = imported("--version")
    assert found & (HEAVY | RARE) - {"pydantic"} == {"polypath._core"}  # typer itself uses pydantic


def test_a_run_imports_the_simulator_and_the_table() -> None:
    found = imported("run", "aggregation", "--run", "tcp")
    assert found >= HEAVY
    assert not found & RARE


#: Each name in a process that has imported the package alone.
NAMES = """
import os, sys
import polypath
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        getattr(polypath, name)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"polypath.{name}")
"""


def test_the_package_has_its_names_and_parts_without_further_imports() -> None:
    names = [*polypath.__all__, "engines", "results", "scenario"]
    done = subprocess.run([sys.executable, "-c", NAMES, *names], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_package_has_no_other_names() -> None:
    with pytest.raises(AttributeError, match="module 'polypath' has no attribute 'frobnicate'"):
        polypath.frobnicate  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_summary_is_the_first_line_of_the_command(name: str) -> None:
    command = typer.main.get_command(cli.COMMANDS[name].load(name))
    assert command.help is not None
    assert command.help.splitlines()[0] == cli.COMMANDS[name].summary
