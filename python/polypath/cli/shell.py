"""polypath shell: a scenario's network, and a prompt."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from polypath import engines
from polypath.cli import complete, jobs
from polypath.cli.console import err
from polypath.cli.errors import DONE, InputError
from polypath.cli.options import Runs, Seed, Settings


def shell(
    target: Annotated[
        str, typer.Argument(metavar="LAB|SCENARIO.toml", show_default=False, autocompletion=complete.targets)
    ],
    engine: Annotated[
        str,
        typer.Option(
            help="The engine: linux (time stands still at the prompt), live (real time).",
            autocompletion=complete.engines,
        ),
    ] = "linux",
    tcp: Annotated[bool, typer.Option("--tcp", help="Do not turn TCP sockets of programs into Multipath TCP.")] = False,
    settings: Settings = None,
    seed: Seed = None,
    runs: Runs = None,
) -> int:
    """Keep a scenario's network up, and run commands in it at a prompt like Mininet's.

    `HOST PROGRAM ..` runs a program from this computer on a host, `link wifi down` changes a link, and `help` lists the
    other commands. Applications and events of the scenario do not run. Ctrl-C ends the running program. Ctrl-D leaves
    the prompt and removes the network.

    Examples: `polypath shell two_paths.toml`, `polypath shell aggregation --run mptcp --engine live`,
    `echo 'client ping server' | polypath shell two_paths.toml`.
    """
    chosen: Any = engines.get(engine)
    if not hasattr(chosen, "session"):
        raise InputError(f"engine {engine} has no hosts that programs could run on; there is linux, live")
    job = jobs.only(jobs.of_target(target, runs or (), settings or (), seed, alone=False), "a shell has one network")
    job.require_one()
    from polypath.cli.prompt import Prompt

    with chosen.session(job.scenario.plan(seed)) as session:
        asked = sys.stdin.isatty()
        if asked:
            err.print(f"{job.name} is up on engine {engine}; help lists what there is, exit leaves", markup=False)
        Prompt(session, job.scenario, engine, mptcp=not tcp, asked=asked).run()
    return DONE
