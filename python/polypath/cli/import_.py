"""polypath import: another tool's files, or a plan, as a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polypath.cli.console import warn
from polypath.cli.errors import InputError
from polypath.cli.options import OutFile
from polypath.cli.write import require_not_read, write


def import_(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[TOPO XP | FILE.py | PLAN.json]",
            help="minitopo's topology and experiment, a custom topology of Mininet, or a plan.",
            show_default=False,
        ),
    ] = None,
    topo: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,ARG..]",
            help="Mininet: the topology, as for `mn --topo`; without a file linear, minimal, reversed, single, "
            "torus or tree.",
        ),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(
            metavar="tc,KEY=VALUE..",
            help="Mininet: options of links without a class, as for `mn --link`, e.g. tc,bw=10,delay=5ms.",
        ),
    ] = None,
    iperf: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="CLIENT SERVER", help="Mininet: add a TCP transfer of 5 s between two hosts."),
    ] = None,
    pingall: Annotated[bool, typer.Option("--pingall", help="Mininet: add a ping between all hosts.")] = False,
    no_controllers: Annotated[
        bool, typer.Option("--no-controllers", help="Mininet: leave out controllers that a scenario does not support.")
    ] = False,
    out: OutFile = None,
) -> None:
    """Convert minitopo files, a topology of Mininet, or a plan to a scenario.

    A result has its plan in plan.json, and a campaign has one per failure.

    Examples: `polypath import topo xp --out scenario.toml`, `polypath import --topo single,3 --iperf h1 h3`.
    """
    given = files or []
    if out is not None:
        require_not_read(out, *given)
    options = {
        "--topo": topo is not None,
        "--link": link is not None,
        "--iperf": iperf is not None,
        "--pingall": pingall,
        "--no-controllers": no_controllers,
    }
    is_plan = len(given) == 1 and given[0].suffix == ".json"
    if (is_plan or len(given) == 2) and any(options.values()):
        raise InputError(f"{next(name for name in options if options[name])} is of Mininet's topologies")
    if len(given) == 2:
        _minitopo(given[0], given[1], out)
    elif is_plan:
        _plan(given[0], out)
    elif len(given) == 1 and given[0].suffix != ".py":
        raise InputError(
            f"{given[0]}: a minitopo pair is two files; one file is FILE.py of Mininet or a plan, FILE.json"
        )
    elif len(given) > 2 or (not given and topo is None):
        raise InputError(
            "name a minitopo topology and its experiment, a Mininet FILE.py, a PLAN.json, or --topo as `mn` takes it"
        )
    else:
        _mininet(given[0] if given else None, topo, link, iperf, pingall, no_controllers, out)


def _plan(file: Path, out: Path | None) -> None:
    from polypath.formats import plan

    write(plan.load(file).to_toml(), out)


def _minitopo(topo: Path, xp: Path, out: Path | None) -> None:
    from polypath.formats import minitopo

    scenario, warnings = minitopo.load(topo, xp)
    for warning in warnings:
        warn(warning)
    write(scenario.to_toml(), out)


def _mininet(
    file: Path | None,
    topo: str | None,
    link: str | None,
    iperf: tuple[str, str] | None,
    pingall: bool,
    no_controllers: bool,
    out: Path | None,
) -> None:
    from polypath.formats import mininet

    asked = None if topo is None else mininet.Asked.parse(topo)
    wanted = mininet.Wanted(iperf, pingall)
    links = None if link is None else mininet.link(link)
    scenario, comments, warnings = mininet.load(file, asked, wanted, links=links, leave_controllers_out=no_controllers)
    for warning in warnings:
        warn(warning)
    write(scenario.to_toml() + comments, out)
