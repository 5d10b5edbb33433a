"""polypath exec: an unmodified program from this computer on a host of a scenario."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from polypath import engines
from polypath.cli import complete, jobs, output, progress
from polypath.cli.console import err, warn
from polypath.cli.errors import DONE, INTERRUPTED, InputError
from polypath.cli.options import OutFolder, Pcap, Runs, Seed, Settings
from polypath.plan.access import WAYS
from polypath.recorded import Record
from polypath.results import Recording, UnknownName, folder
from polypath.scenario import Scenario, script

#: As timeout(1) has it.
LIMIT: Final = 124
_PROGRAM: Final = "program"


def exec_(
    target: Annotated[
        str, typer.Argument(metavar="LAB|SCENARIO.toml", show_default=False, autocompletion=complete.targets)
    ],
    command: Annotated[list[str], typer.Argument(metavar="-- PROGRAM [ARGUMENT]..", show_default=False)],
    host: Annotated[str, typer.Option(metavar="NAME", help="The host on which the program runs.")] = "client",
    servers: Annotated[
        list[str] | None,
        typer.Option(
            "--server",
            metavar="'HOST: COMMAND'",
            help="A program that runs until the first one ends, e.g. 'server: iperf3 -s' (repeatable).",
        ),
    ] = None,
    tcp: Annotated[bool, typer.Option("--tcp", help="Do not turn TCP sockets of programs into Multipath TCP.")] = False,
    files: Annotated[
        list[str] | None,
        typer.Option("--file", metavar="FILE", help="A text file for the programs' working folders (repeatable)."),
    ] = None,
    limit: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="End it after this time, e.g. '5 min'. Default: the scenario's duration."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(help="The engine: linux (virtual time), live (real time).", autocompletion=complete.engines),
    ] = "linux",
    settings: Settings = None,
    seed: Seed = None,
    runs: Runs = None,
    out: OutFolder = None,
    pcap: Pcap = "none",
) -> int:
    """Run an unmodified program from this computer on a host of a scenario.

    The command has the program's output and exit code. Standard error gives the duration, and the bytes on each path.
    Hosts are known by their names, and programs that request TCP get Multipath TCP. Applications of the scenario run
    beside the program. Exit code 124 means that the time was up.

    Examples: `polypath exec scenario.toml --server 'server: python3 -m http.server 8000' -- curl -O http://server:8000/f`,
    `polypath exec two_paths.toml --server 'server: iperf3 -s' --out results --pcap hosts -- iperf3 -c server -t 5`,
    `polypath exec two_paths.toml --host server --engine live -- ip address`.
    """
    record = Record(pcap, account=False)
    for option in record.in_files() if out is None else ():
        raise InputError(f"{option} needs --out DIR to write to")
    chosen = engines.get(engine)
    scenario, name, inputs = _scenario(target, runs or (), settings or (), limit)
    own = [str(Path(file).absolute()) for file in files or ()]
    added = _applications(scenario, host, command, servers or (), tcp, own)
    exact = str(added[0]["name"])
    scenario = scenario.with_more("application", added)
    plan = scenario.plan(seed)
    with ExitStack() as stack:
        held = None if out is None else stack.enter_context(folder.claim(out, folder.RUN, inputs))
        staged = None if held is None else held.stage()

        def passed_on(program: str, stream: str, text: bytes) -> None:
            if program == exact:
                into = (sys.stdout if stream == "stdout" else sys.stderr).buffer
                into.write(text)
                into.flush()

        callback = stack.enter_context(progress.shown(name)) if out is not None else lambda now_ns, end_ns: None
        recording = chosen.run(plan, engines.into(record, plan, staged, passed_on), callback)
        recording = replace(recording, metadata=replace(recording.metadata, scenario=name))
        if held is not None and staged is not None:
            output.save(recording, scenario, held, staged)
    return _end(recording, exact)


def _scenario(
    target: str, runs: Sequence[str], settings: Sequence[str], limit: str | None
) -> tuple[Scenario, str, Sequence[Path]]:
    given = [*settings, *([] if limit is None else [f"duration={limit}"])]
    job = jobs.only(jobs.of_target(target, runs, given, None, alone=False), "a program runs in one network")
    job.require_one()
    return job.scenario, job.name, job.inputs


def _applications(
    scenario: Scenario, host: str, command: Sequence[str], servers: Sequence[str], tcp: bool, files: Sequence[str]
) -> list[dict[str, Any]]:
    """The program, then its servers, as a scenario writes them. Raises RegistryError for files that cannot be read."""
    script.texts(files)
    hosts = [node["name"] for node in scenario.plan().view["nodes"] if node["kind"] == "host"]
    _require_host("--host", host, hosts)
    common: dict[str, Any] = {"kind": "command", "files": list(files), "transport": "tcp" if tcp else "mptcp"}
    taken = {application.name for application in scenario.application}
    made = [{**common, "host": host, "command": _absolute(command), "ends_run": True}]
    for text in servers:
        name, colon, line = text.partition(":")
        if not colon or not line.strip():
            raise InputError(f"--server: '{text}' is no HOST: COMMAND; write it like 'server: iperf3 -s'")
        _require_host("--server", name.strip(), hosts)
        made.append({**common, "host": name.strip(), "command": shlex.split(line), "background": True})
    for each in made:
        each["name"] = _free(Path(each["command"][0]).name, taken)
        taken.add(each["name"])
    return made


def _require_host(option: str, host: str, known: Sequence[str]) -> None:
    if host not in known:
        raise InputError(f"{option}: {UnknownName.of('host', host, known)}")


def _absolute(command: Sequence[str]) -> list[str]:
    """A program that is named by a path is that of the folder where the command was typed."""
    first, *rest = command
    return [str(Path(first).absolute()) if "/" in first else first, *rest]


def _free(program: str, taken: set[str | None]) -> str:
    """A name for it that no application has."""
    name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in program).strip("-")[:50]
    name = name or _PROGRAM
    return next(each for each in (name, *(f"{name}-{number}" for number in range(2, 10_000))) if each not in taken)


def _end(recording: Recording, exact: str) -> int:
    rows = {row["name"]: row for row in recording.table("programs").iter_rows(named=True)}
    if recording.metadata.interrupted:
        return INTERRUPTED
    row = rows.pop(exact)
    for other in rows.values():
        if other["state"] in ("exited", "killed") and other["exit_code"]:
            warn(f"{other['name']} on {other['host']} ended with exit code {other['exit_code']}")
    over = row["state"] != "exited" and row["state"] != "killed"
    code = LIMIT if over else int(row["exit_code"])
    took = f"{(recording.metadata.end_ns if over else row['end_ns'] - row['start_ns']) / 1e9:.3f} s"
    what = f"was ended after {took}, when the time was up" if over else f"ended with exit code {code} after {took}"
    err.print(f"{exact} on {row['host']} {what}; {_paths(recording, row['host'])}", markup=False)
    return code if code else DONE


def _paths(recording: Recording, host: str) -> str:
    """Bytes that went out and came in over each link of the host, those of other programs included."""
    node = [each["name"] for each in recording.plan["nodes"]].index(host)
    sent = {(row["link"], row["direction"]): row["sent_bytes"] for row in recording.table("link_ends").to_dicts()}
    told = []
    for index, link in enumerate(recording.plan["links"]):
        for end, (there, back) in ((link["a"], WAYS), (link["b"], WAYS[::-1])):
            if end["node"] == node:
                out, into = (sent.get((index, direction), 0) for direction in (there, back))
                told.append(f"{link['name']} {out:,} B out, {into:,} B in")
    return "; ".join(told)
