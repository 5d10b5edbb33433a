"""polypath explain: why a connection was not faster, in bytes that add up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.markup import escape

from polypath import engines, remedies
from polypath.cli import complete, one_run, progress
from polypath.cli.console import err, out, table, warn
from polypath.cli.errors import DONE, INTERRUPTED, InputError
from polypath.cli.options import KeyLogs, Runs, Seed, Settings, key_logs
from polypath.engines import Options
from polypath.registry import traffic
from polypath.remedies import Trial
from polypath.results import Recording, account, incidents, layout, metrics, reasons
from polypath.results.account import Account
from polypath.results.metrics import SECOND, Connection
from polypath.results.phrases import counted
from polypath.scenario import Plan
from polypath.scenario.traffic import TRANSPORTS

if TYPE_CHECKING:
    from polypath.plan.types import Application
    from polypath.twin.requests import Request

#: Transports whose requests are divided.
_ASKED_OVER: Final = frozenset(("tcp", "mptcp", "quic", "mpquic"))
#: Connections without an account that are named.
_NAMED: Final = 6
_CAPTURES: Final = frozenset((".pcap", ".pcapng", ".cap"))
#: Charges below this part of what the links could carry have no row.
_LEAST: Final = 0.001
#: So many sentences at most, of charges of at least this part.
_SENTENCES: Final = 6
_LEAST_SAID: Final = 0.01
_BAR: Final = 24
_SAID: Final = ("said MB", "came MB", "said Mbps", "came Mbps")


def explain(
    target: Annotated[
        str,
        typer.Argument(
            metavar="DIR|LAB|SCENARIO.toml|FILE.pcap[ng]", show_default=False, autocompletion=complete.targets
        ),
    ],
    settings: Settings = None,
    seed: Seed = None,
    runs: Runs = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help=f"The engine for a lab or a scenario: {', '.join(engines.REGISTRY)}. Default: sim.",
            autocompletion=complete.engines,
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        float, typer.Option("--since", metavar="SECONDS", min=0, help="Start of the time explained.")
    ] = 0.0,
    until: Annotated[
        float | None,
        typer.Option("--until", metavar="SECONDS", min=0, help="End of the time explained.", show_default=False),
    ] = None,
    check: Annotated[
        int | None,
        typer.Option(
            "--verify", metavar="N", min=1, show_default=False, help="Run again without each of the N costliest causes."
        ),
    ] = None,
    keys: KeyLogs = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the accounts as JSON instead of tables.")] = False,
) -> int:
    """Explain why each connection of a run was not faster.

    The target is a stored result, or a lab's run or a scenario, which is run here. The account of a connection starts
    with the bytes that its links could have carried. It lists the bytes lost to each cause, and the delivered rest. The
    parts add up. A stretch of time ends at samples (`record.interval`).

    The account of a capture is its twin's. A real kernel (`--engine linux` or `live`) gives a coarser account than the
    simulator.

    `--verify 3` runs the scenario again without each of the three costliest causes that it can remove. It shows the
    predicted and the measured gain.

    Examples: `polypath explain aggregation --run mptcp`, `polypath explain results/mptcp --since 4 --until 6`,
    `polypath explain scenario.toml --set defaults.scheduler=blest --json`.
    """
    with TemporaryDirectory(prefix="polypath-explain-") as held:
        options = partial(_options, Path(held))
        if _is_capture(target):
            if settings or seed is not None or runs:
                raise InputError(f"{target} is a capture; --set, --seed and --run are of a lab or a scenario")
            if engine:
                raise InputError(f"{target} is a capture; --engine is of a lab or a scenario")
            recording = _of_twin(Path(target), options, key_logs(keys))
        else:
            if keys:
                raise InputError(f"{target} is no capture; --keys opens packets of one")
            recording = one_run.recording(target, settings or (), seed, runs or (), options, engine)
        asked = dict(_requests(recording, Path(held)))
    stretch = (round(since * SECOND), None if until is None else round(until * SECOND))
    found = [
        (each, kept)
        for each in metrics.connections(recording)
        if (kept := account.of_connection(recording, each, *stretch)) is not None
    ]
    if not found:
        raise InputError(f"{target}: no account was kept; {_why(recording)}")
    trials = {connection.application: _verified(recording, connection, kept, check or 0) for connection, kept in found}
    if as_json:
        out.verbatim(json.dumps(_data(recording, found, asked, trials if check else None), indent=2) + "\n")
    else:
        for connection, kept in found:
            _show(connection, kept)
            _show_incidents(incidents.of_connection(recording, connection))
            if connection.name in asked:
                _show_requests(asked[connection.name])
            if check:
                _show_trials(kept, trials[connection.application])
        _show_others(recording, {connection.application for connection, _ in found})
        if recording.metadata.engine != "sim":
            out.print(_COARSE, markup=False)
    return INTERRUPTED if recording.metadata.interrupted else DONE


#: What is said below an account that a kernel's counters made.
_COARSE: Final = (
    "By the kernel's counters: what held a subflow is told for each sampling interval, and what reduced its window by"
    " what the links dropped and lost meanwhile. Coupling, and which path carried a copy, the kernel does not tell; the"
    " simulator does (--engine sim)."
)


def _is_capture(target: str) -> bool:
    path = Path(target)
    return path.is_file() and bool(_CAPTURES.intersection(path.suffixes))


def _options(folder: Path, plan: Plan) -> Options:
    """An account, and captures where there are requests to divide."""
    if any(map(_asks, plan.view["applications"])):
        return Options("hosts", folder, account=True)
    return Options(account=True)


def _asks(application: Application) -> bool:
    return traffic(application["work"]["kind"]).delays == "requests" and application["transport"] in _ASKED_OVER


def _of_twin(file: Path, options: Callable[[Plan], Options], keys: Sequence[Path]) -> Recording:
    """The run of a capture's twin, of which it is said how close it is and what packets do not tell."""
    from polypath.twin.made import make

    with progress.runs("twin") as told:
        made = make([file], told=told, keys=keys)
    for note in made.notes:
        warn(note)
    for row in made.rows:
        if row.path == "all" and row.capture is not None and row.twin is not None:
            both = f"{row.twin:.4g} {row.unit}, in the capture {row.capture:.4g} {row.unit}"
            err.print(f"twin: {row.figure} {both}", markup=False)
    plan = made.scenario.plan()
    return engines.get("sim").run(plan, options(plan))


def _why(recording: Recording) -> str:
    if recording.plan.get("controller") or recording.plan.get("bridging") or recording.plan["routing"] == "spread":
        return "under a controller or with bridges the links that bound a connection are not known beforehand"
    if others := Plan(dict(recording.plan)).stacks_by_others:
        return f"{others[0]} does not tell what it waits for"
    if all(each.bytes == 0 for each in metrics.connections(recording)):
        return "no connection carried data"
    return "no link on the way has a rate that a scenario tells, or the result was stored without one: run it again"


def _show(connection: Connection, kept: Account) -> None:
    duration = (kept.until_ns - kept.since_ns) / SECOND
    share = kept.delivered_bytes / kept.capacity_bytes if kept.capacity_bytes else 0.0
    out.print(
        f"[bold]{escape(connection.name)}[/bold]: {_mb(kept.delivered_bytes)} MB delivered, {share:.1%} of the"
        f" {_mb(kept.capacity_bytes)} MB that its links could have carried in {duration:.4g} s"
    )
    rows = table("", "path", "MB", "Mbps", "share", "", numbers=frozenset(("MB", "Mbps", "share")))
    rest = 0
    for each in kept.charges:
        if abs(each.bytes) < _LEAST * kept.capacity_bytes:
            rest += each.bytes
            continue
        rows.add_row(escape(reasons.title(each)), escape(each.path), *_figures(kept, each.bytes, duration))
    if rest:
        rows.add_row("less than 0.1 % each", "", *_figures(kept, rest, duration))
    rows.add_row("[bold]delivered[/bold]", "", *_figures(kept, kept.delivered_bytes, duration))
    out.print(rows)
    said = [each for each in kept.charges if reasons.share(kept, each) >= _LEAST_SAID][:_SENTENCES]
    for each in said:
        moment = f"most of all at {each.worst_ns / SECOND:.4g} s"
        out.print(f"{reasons.share(kept, each):.0%}: {escape(reasons.sentence(each))}; {moment}.")
    out.print()


def _show_incidents(found: Sequence[incidents.Incident]) -> None:
    for each in found:
        out.print(escape(each.sentence))
    if found:
        out.print()


def _show_others(recording: Recording, shown: Set[int]) -> None:
    """Names those of which no account was kept."""
    others = [each for each in metrics.connections(recording) if each.application not in shown]
    if others:
        named = ", ".join(f"{each.name} ({TRANSPORTS.get(each.transport, each.transport)})" for each in others[:_NAMED])
        more = ", .." if len(others) > _NAMED else ""
        out.print(f"without an account: {escape(named)}{more}")


def _verified(recording: Recording, connection: Connection, kept: Account, number: int) -> list[Trial]:
    dearest = [each for each in remedies.cases(kept) if remedies.has_remedy(each)][:number]
    return list(remedies.verify(recording, connection, dearest))


def _show_trials(kept: Account, trials: Sequence[Trial]) -> None:
    """What was said, and what came of it."""
    duration = (kept.until_ns - kept.since_ns) / SECOND
    rows = table("without", "by", "said MB", "came MB", "said Mbps", "came Mbps", numbers=frozenset(_SAID))
    for each in trials:
        both = (each.case.bytes, each.gained_bytes)
        rates = (f"{count * 8 / duration / 1e6:.2f}" for count in both)
        rows.add_row(
            escape(reasons.named(each.case.cause, each.case.at)), each.remedy, *(_mb(count) for count in both), *rates
        )
    out.print(rows)
    out.print()


def _figures(kept: Account, count: int, duration: float) -> tuple[str, str, str, str]:
    share = count / kept.capacity_bytes if kept.capacity_bytes else 0.0
    rate = count * 8 / duration / 1e6 if duration else 0.0
    bar = "█" * round(_BAR * max(0.0, share))
    # No "-0.0" of what is a few bytes below zero.
    return _mb(count), f"{round(rate, 2) + 0.0:.2f}", f"{round(share, 3) + 0.0:.1%}", bar


def _mb(count: int) -> str:
    return f"{round(count / 1e6, 2) + 0.0:.2f}"


def _data(
    recording: Recording,
    found: Sequence[tuple[Connection, Account]],
    asked: Mapping[str, Sequence[Request]],
    trials: Mapping[int, Sequence[Trial]] | None,
) -> dict[str, Any]:
    return {
        "scenario": recording.metadata.scenario,
        "connections": [
            {
                "name": connection.name,
                **kept.data(),
                "incidents": [
                    {"time_s": each.time_ns / SECOND, "sentence": each.sentence}
                    for each in incidents.of_connection(recording, connection)
                ],
                **(
                    {"requests": [_request(each) for each in asked[connection.name]]}
                    if connection.name in asked
                    else {}
                ),
                **({} if trials is None else {"verified": [_trial(each) for each in trials[connection.application]]}),
            }
            for connection, kept in found
        ],
    }


def _requests(recording: Recording, folder: Path) -> Iterator[tuple[str, Sequence[Request]]]:
    """The parts of each application's requests, of a run that was made here."""
    from polypath.twin import requests

    nodes = recording.plan["nodes"]
    for application in recording.plan["applications"]:
        if _asks(application):
            client, server = (
                folder / layout.capture(nodes[application[side]]["name"]) for side in ("client", "server")
            )
            if client.exists() and server.exists():
                for each in requests.requests(client, server, application["port"]):
                    yield application["name"], each.requests


def _show_requests(found: Sequence[Request]) -> None:
    """Where the time of requests went: the mean of all, and the slowest."""
    from polypath.twin.requests import NAMES, means

    slowest = max(found, key=lambda each: each.parts.total)
    rows = table("", "mean ms", "share", "slowest ms", numbers=frozenset(("mean ms", "share", "slowest ms")))
    total = sum(each.parts.total for each in found) / len(found)
    for name, mean in means(found):
        if mean > _LEAST * total:
            rows.add_row(
                NAMES[name], f"{mean * 1e3:.1f}", f"{mean / total:.1%}", f"{getattr(slowest.parts, name) * 1e3:.1f}"
            )
    rows.add_row("[bold]delay[/bold]", f"{total * 1e3:.1f}", "", f"{slowest.parts.total * 1e3:.1f}")
    out.print(f"{counted(len(found), 'request')}; the slowest began at {slowest.start_s:.4g} s")
    out.print(rows)
    late = [each.other_paths_s for each in found if each.other_paths_s > 0]
    if late:
        time = f"{sum(late) / len(late) * 1e3:.3g} ms"
        out.print(
            f"In {len(late)} of them what went over other paths had been there for {time} when the last bytes came."
        )
    out.print()


def _request(each: Request) -> dict[str, Any]:
    parts = {f"{name}_s": value for name, value in asdict(each.parts).items()}
    return {"start_s": each.start_s, "delay_s": each.parts.total, **parts, "path": each.path}


def _trial(each: Trial) -> dict[str, Any]:
    return {
        "cause": each.case.cause,
        "at": each.case.at,
        "said_bytes": each.case.bytes,
        "remedy": each.remedy,
        "gained_bytes": each.gained_bytes,
    }
