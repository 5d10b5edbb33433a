"""The command line, `polypath`: one file per command, imported when the command is called."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from polypath.cli import console, errors, signals


@dataclass(frozen=True)
class Command:
    """A command before it is imported: where it is, and its line in the list of commands."""

    module: str
    summary: str

    def load(self, name: str) -> typer.Typer:
        """The command or, where the module has an `app`, the group of commands."""
        module = import_module(f"polypath.cli.{self.module}")
        group: typer.Typer | None = getattr(module, "app", None)
        if group is not None:
            return group
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        app.command(name)(getattr(module, self.module))
        return app


COMMANDS: Final[Mapping[str, Command]] = {
    "run": Command("run", "Run a lab, a scenario or a minitopo pair, and show the results."),
    "exec": Command("exec_", "Run an unmodified program from this computer on a host of a scenario."),
    "shell": Command("shell", "Keep a scenario's network up, and run commands in it at a prompt like Mininet's."),
    "validate": Command("validate", "Check scenarios without running them, and show what would run."),
    "new": Command("new", "Write a scenario with an explanation above each line, or a lab of your own."),
    "upgrade": Command("upgrade", "Show scenarios and labs in the present form of the language, or rewrite them."),
    "new-trace": Command(
        "new_trace",
        "Write a synthetic trace of a link, from a published model with a seed: lte, wifi-walk or satellite.",
    ),
    "labs": Command("labs", "List the labs."),
    "show": Command(
        "show", "Show a lab's question, what to expect and what to try, or the figures of a stored result."
    ),
    "check": Command(
        "check", "Run labs and compare the results with published figures, or labs of your own with their claims."
    ),
    "grade": Command("grade", "Grade submissions of a class by a rubric, each in a process of its own."),
    "compare": Command(
        "compare",
        "Compare the figures of a lab or a scenario for several values of a setting, or on several engines.",
    ),
    "interop": Command("interop", "Play every pair of QUIC stacks against each other, in both roles."),
    "bisect": Command("bisect", "Find the first commit of a kernel repository that changes a scenario's figure."),
    "trace": Command("trace", "Read captures of real traffic, and show their connections as `run` does."),
    "twin": Command("twin", "Make a scenario that reproduces a capture."),
    "what-if": Command("what_if", "Try changes that may help a connection, and rank them."),
    "plot": Command(
        "plot",
        "Draw figures of stored results, with several runs on the same axes, or boxes of several sweeps side by side.",
    ),
    "exposure": Command("exposure", "Show how much of each connection an eavesdropper on links, nodes or paths gets."),
    "explain": Command("explain", "Explain why each connection of a run was not faster."),
    "report": Command("report", "Write runs as one interactive page of HTML, which needs no network."),
    "playground": Command("playground", "Write labs and scenarios as a page that contains the simulator."),
    "size-buffers": Command(
        "size_buffers",
        "Find the smallest receive buffer that keeps a connection's paths busy, by rule of thumb and by search.",
    ),
    "algorithms": Command(
        "algorithms", "List schedulers, congestion controls, path managers and the rest, with their parameters."
    ),
    "import": Command("import_", "Convert minitopo files, a topology of Mininet, or a plan to a scenario."),
    "export": Command("export", "Write a result in the format of another tool."),
    "bundle": Command("bundle", "Write results, and all that made them, into one file that another person runs again."),
    "rerun": Command("rerun", "Run what a bundle holds again, and say hash by hash what came out the same."),
    "completion": Command(
        "completion", "Print the script that lets bash, zsh or fish complete commands, options and names."
    ),
    "manual": Command("manual", "Print the manual page, generated from the commands."),
    "schema": Command("schema", "Print the JSON Schema of scenario files, or of plans."),
    "bench": Command("bench", "Measure the simulator's CPU time per packet-hop."),
    "quic": Command("quic", "Serve and fetch files over QUIC or Multipath QUIC, on this computer's sockets."),
    "kernel": Command("kernel", "Build the kernel of `--engine linux`, and show its state."),
}
"""Every command by name, in the order of the help."""


class _Commands(TyperGroup):
    """Lists commands by their summaries, and imports the one that is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, command in COMMANDS.items():
            self.add_command(TyperCommand(name, help=command.summary))

    def resolve_command(self, *given: Any) -> tuple[str | None, Any, list[str]]:
        name, command, arguments = super().resolve_command(*given)
        if name is None:
            return name, command, arguments
        found = self.load(name)
        gc.freeze()  # what was imported stays: the collector need not look through it
        return name, found, arguments

    @staticmethod
    def load(name: str) -> Any:
        """The command as it is called."""
        loaded = typer.main.get_command(COMMANDS[name].load(name))
        loaded.name = name
        for command in (loaded, *getattr(loaded, "commands", {}).values()):
            command.help = "\n\n".join(" ".join(each.split()) for each in (command.help or "").split("\n\n"))
        return loaded


app = typer.Typer(
    cls=_Commands,
    name="polypath",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def polypath(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version and stop.")] = False,
) -> None:
    """Polypath, a multipath transport lab: describe a network with several paths, run it, and see the results."""
    if version:
        from polypath import _core

        typer.echo(f"polypath {_core.version()}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


#: Objects made before the collector looks for cycles. A large scenario is millions of objects and no cycle.
_BETWEEN_COLLECTIONS: Final = 100_000


def main() -> NoReturn:
    """Runs the command, and ends the process."""
    gc.set_threshold(_BETWEEN_COLLECTIONS)
    signals.install()
    console.tell_warnings()
    console.encode_what_can_be()
    if console.STARTED_CLOSED:
        console.warn("standard output is closed: results are not shown")
    if "_POLYPATH_COMPLETE" in os.environ:
        from polypath.cli import completion

        completion.answer()
    errors.run(lambda: app(prog_name="polypath", standalone_mode=False))
