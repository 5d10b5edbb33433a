"""polypath what-if: changes that may help a connection, tried and ranked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from polypath.cli import complete, jobs, progress
from polypath.cli.console import out, table
from polypath.cli.errors import DONE, InputError
from polypath.cli.options import Jobs, Runs, Settings
from polypath.measures import MEASURES
from polypath.results.phrases import counted
from polypath.statistics.paired import pairs_needed
from polypath.what_if.candidates import subject
from polypath.what_if.intervals import Interval, intervals
from polypath.what_if.ranked import GOALS, Ranking, Row, Trials, rank, require_support, usual_goal


def what_if(
    target: Annotated[
        str, typer.Argument(metavar="LAB|SCENARIO.toml", show_default=False, autocompletion=complete.targets)
    ],
    goal: Annotated[
        str | None,
        typer.Option(
            metavar="GOAL",
            help=f"The goal: {', '.join(GOALS)}; default: that of the application.",
            show_default=False,
        ),
    ] = None,
    connection: Annotated[
        str | None, typer.Option(metavar="NAME", help="The application, if there are several.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Seeds for each setting, from 1 on.")] = 10,
    settings: Settings = None,
    runs: Runs = None,
    parallel: Jobs = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the ranking as JSON.")] = False,
) -> int:
    """Try changes that may help a connection, and rank them.

    It tries schedulers, path managers, congestion controls, buffers, and leaving out each path, one at a time and with
    the same seeds. Then it tries the best of each kind together. Values of a twin are drawn from their intervals for
    each seed.

    Examples: `polypath what-if twin.toml`, `polypath what-if aggregation --run mptcp --goal goodput --seeds 5`.
    """
    if goal is not None and goal not in GOALS:
        raise InputError(f"--goal {goal}: a goal is {', '.join(GOALS)}")
    job = jobs.only(jobs.of_target(target, runs or (), settings or (), None), "what-if is about one run")
    job.require_one()
    of = subject(job.scenario, connection)
    if goal is not None:
        require_support(goal, job.scenario, of)
    wanted = GOALS[goal or usual_goal(job.scenario, of)]
    trials = Trials(job.scenario, of, wanted, range(1, seeds + 1), _intervals(target), parallel)
    with progress.runs("what-if") as told:
        found = rank(trials, told)
    if as_json:
        out.verbatim(json.dumps(_data(of.name, found), indent=2) + "\n")
    else:
        _show(of.name, found, len(trials.known))
    return DONE


def _intervals(target: str) -> list[Interval]:
    path = Path(target)
    return intervals(path.read_text(encoding="utf-8")) if path.is_file() else []


def _show(name: str, found: Ranking, known: int) -> None:
    measure = MEASURES[found.goal.measure]
    unit = measure.heading
    over = counted(found.seeds, "seed") + (f", {known} values drawn from their intervals" if known else "")
    rows = table("", unit, "difference", "95 % interval", "", numbers=frozenset((unit, "difference")))
    for row in found.rows:
        rows.add_row(escape(row.candidate.name), *_figures(found, row))
    out.print(f"[bold]{escape(name)}[/bold]: {measure.title}, {over}; the best first")
    out.print(rows)
    needed = pairs_needed(len(found.rows) - 1)
    if needed > found.seeds:
        seeds = counted(found.seeds, "seed")
        out.print(f"With {seeds} no difference can be shown among so many: take --seeds {needed}.")
    for candidate, why in found.refused.items():
        out.print(f"not tried: {escape(candidate)}: {escape(why)}")


def _figures(found: Ranking, row: Row) -> tuple[str, str, str, str]:
    printed = MEASURES[found.goal.measure].printed
    mean = "" if row.mean is None else f"{row.mean / printed:.4g}"
    unfinished = f", {row.unfinished} unfinished" if row.unfinished else ""
    of = row.comparison
    if of is None:
        return mean, "", "", unfinished.removeprefix(", ")
    difference = "" if of.difference is None else f"{of.difference / printed:+.3g}"
    interval = "" if of.low is None or of.high is None else f"{of.low / printed:+.3g} to {of.high / printed:+.3g}"
    return mean, difference, interval, of.verdict + unfinished


def _data(name: str, found: Ranking) -> dict[str, Any]:
    return {
        "connection": name,
        "measure": found.goal.measure,
        "more_is_better": found.goal.more,
        "seeds": found.seeds,
        "ranking": [_row(row) for row in found.rows],
        "refused": dict(found.refused),
    }


def _row(row: Row) -> dict[str, Any]:
    of = row.comparison
    return {
        "name": row.candidate.name,
        "settings": list(row.candidate.settings),
        "mean": row.mean,
        "unfinished": row.unfinished,
        **({} if of is None else {"difference": of.difference, "low": of.low, "high": of.high, "verdict": of.verdict}),
    }
