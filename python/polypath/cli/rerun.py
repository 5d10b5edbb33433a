"""polypath rerun: what a bundle holds, run again and compared hash by hash."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.markup import escape

from polypath import _core, bundles
from polypath.bundles import again, layout
from polypath.bundles.again import Outcome, Pair
from polypath.bundles.results import Result
from polypath.cli import complete, progress
from polypath.cli.console import err, out, printable, table, warn
from polypath.cli.errors import DONE, MISSED, InputError
from polypath.cli.options import Jobs
from polypath.cli.write import require_new
from polypath.engines import owned
from polypath.results import OutputError
from polypath.results.files import write_text
from polypath.sweeps import executor
from polypath.sweeps.point import Failure

#: Rows of the table; rerun.json has all.
_MOST_ROWS: Final = 40
_MOST_NAMES: Final = 4
#: Characters of a hash that are shown.
_SHORT: Final = 12
#: What several of a kind of hash are called.
_NOUNS: Final = {"plan": "plans", "scenario": "scenarios", "recording": "recordings"}
#: Of the folder in which the bundle is until it is known to be whole.
_PARTIAL: Final = ".polypath-rerun-"


def rerun(
    bundle: Annotated[
        Path,
        typer.Argument(
            metavar="BUNDLE.zip",
            help="A file that `polypath bundle` wrote.",
            show_default=False,
            autocompletion=complete.bundles,
        ),
    ],
    directory: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="A new folder. Default: the bundle's name with -rerun behind it."),
    ] = None,
    parallel: Jobs = None,
    trust: Annotated[bool, typer.Option("--trust", help="Run the code in the bundle without asking.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the content of rerun.json instead of tables.")] = False,
) -> int:
    """Run what a bundle holds again, and say hash by hash what came out the same.

    The bundle is unpacked into a new folder, which gets the new results, too. Python files and commands in it run with
    your rights, so a terminal asks first, and elsewhere `--trust` is needed.

    Exit code 1 means that something differs, or could not be run.

    Examples: `polypath rerun paper.zip`, `polypath rerun paper.zip --out review --jobs 8 --trust`.
    """
    place = directory or Path(f"{bundle.stem}-rerun")
    require_new(place)
    index = _unpacked(bundle, place, trust)
    results = again.of_index(index, place / layout.UNPACKED)
    made = place / layout.AGAIN
    outcomes = {each.name: _begun(each) for each in results}
    todo = [each for each in results if not outcomes[each.name].reason]
    for result in todo:
        again.begin(result, made)
    _run(todo, outcomes, made, parallel)
    for result in todo:
        if not outcomes[result.name].reason:
            again.finish(result, outcomes[result.name], made, place / layout.UNPACKED)
    found = {
        "bundle": bundle.name,
        "polypath": _core.version(),
        "same": all(each.same for each in outcomes.values()),
        "results": list(again.data(list(outcomes.values()))),
    }
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    write_text(place / layout.OUTCOME, text)
    if as_json:
        out.verbatim(text)
    else:
        _show(list(outcomes.values()))
    err.print(f"results in {place}", markup=False)
    return DONE if found["same"] else MISSED


def _unpacked(bundle: Path, place: Path, trust: bool) -> Mapping[str, Any]:
    """The bundle in its folder, once it is known to be whole and its code may run. Raises InputError and others."""
    parent = place.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    owned.clear(parent, _PARTIAL)
    with owned.made(parent, _PARTIAL) as partial:
        inner = partial / "made"
        (inner / layout.UNPACKED).mkdir(parents=True)
        index = bundles.unpack(bundle, inner / layout.UNPACKED)
        try:
            results = again.of_index(index, inner / layout.UNPACKED)
            _tell_of_versions(bundle, results)
            _require_trust(bundle, list(_code(results)), trust)
        except (OutputError, bundles.BundleError) as error:
            raise InputError(f"{bundle}: {str(error).replace(f'{inner / layout.UNPACKED}/', '')}") from error
        inner.replace(place)
    return index


def _tell_of_versions(bundle: Path, results: Sequence[Result]) -> None:
    made = {run.manifest.versions.get("polypath", "unknown") for each in results for run in each.runs}
    if others := sorted(made - {_core.version()}):
        warn(f"{bundle} was made by Polypath {', '.join(others)}, and this is {_core.version()}: results may differ")


def _code(results: Sequence[Result]) -> Iterator[str]:
    """What the runs of a bundle execute, each file and command once."""
    seen = set()
    for result in results:
        if again.why_not(result)[0]:
            continue
        for run in result.runs:
            for name, text in again.code_of(run).items():
                if (name, text) not in seen:
                    seen.add((name, text))
                    yield f"{result.name}: {name}"


def _require_trust(bundle: Path, found: Sequence[str], trust: bool) -> None:
    """Says which code a rerun executes. Raises InputError where nobody says that it may."""
    if not found:
        return
    more = [f"{len(found) - _MOST_NAMES} more"] if len(found) > _MOST_NAMES else []
    line = f"{bundle} runs code with your rights: {', '.join([*found[:_MOST_NAMES], *more])}"
    if trust:
        err.print(f"polypath: {printable(line)}", markup=False)
    elif sys.stdin.isatty() and sys.stderr.isatty():
        err.print(f"polypath: {printable(line)}", markup=False)
        if not typer.confirm("run it?", default=False, err=True):
            raise InputError("nothing was run")
    else:
        raise InputError(f"{line}; read it, then give --trust")


def _begun(result: Result) -> Outcome:
    reason, excused = again.why_not(result)
    return Outcome(result.name, reason, excused)


def _run(results: Sequence[Result], outcomes: Mapping[str, Outcome], made: Path, parallel: int | None) -> None:
    """Runs everything, and notes what came of it."""
    tasks = [(result, task) for result in results for task in again.tasks(result, made)]
    chosen = executor.local(parallel, len(tasks))
    with (
        progress.points("rerun", "runs") as shown,
        closing(chosen.map(again.run, [task for _, task in tasks])) as found,
    ):
        for done, (number, came) in enumerate(found, start=1):
            result, task = tasks[number]
            outcome = outcomes[result.name]
            if isinstance(came, again.Again):
                outcome.note(task.run.name, came)
            else:
                reason = came if isinstance(came, Failure) else str(came)
                outcome.note_failure(task.run.name, task.run.manifest.recording_sha256, str(reason))
            shown(done, len(tasks))


def _show(outcomes: Sequence[Outcome]) -> None:
    """A row for each run, only those that differ where there are too many, and what came of tables."""
    runs = [(outcome, name, pairs) for outcome in outcomes for name, pairs in sorted(outcome.runs.items())]
    different = [run for run in runs if not all(pair.same for pair in run[2].values())]
    listed = runs if len(runs) <= _MOST_ROWS else different[:_MOST_ROWS]
    shown = table("run", "recording", *again.PARTS)
    for outcome, name, pairs in listed:
        shown.add_row(
            escape(_place(outcome, name)),
            _hash(pairs["recording"]),
            *(_verdict(pairs.get(part)) for part in again.PARTS),
        )
    if listed:
        out.print(shown)
    if len(different) > len(listed):
        out.print(f"and {len(different) - len(listed)} more that differ; {layout.OUTCOME} has them")
    for outcome, name, pairs in listed:
        for part, pair in pairs.items():
            if pair.reason:
                out.print(f"{_place(outcome, name)}: no {part}: {pair.reason}", markup=False)
    for outcome in outcomes:
        for name, pair in outcome.tables.items():
            if not pair.same:
                out.print(f"{outcome.name}: table {name} differs", markup=False)
        if outcome.reason:
            out.print(f"{outcome.name}: not run, {outcome.reason}", markup=False)
    _count(outcomes)


def _place(outcome: Outcome, run: str) -> str:
    return outcome.name if run == "." else f"{outcome.name}/{run}"


def _hash(pair: Pair) -> str:
    """The one of the bundle, and that of the rerun where it is another."""
    before = pair.before[:_SHORT]
    return before if pair.same else f"{before} → {pair.after[:_SHORT] if pair.after else 'none'}"


def _verdict(pair: Pair | None) -> str:
    if pair is None:
        return ""
    return "[green]same[/green]" if pair.same else "[bold red]DIFFERS[/bold red]"


def _count(outcomes: Sequence[Outcome]) -> None:
    """How many of each kind of hash are the same."""
    runs = [pairs for outcome in outcomes for pairs in outcome.runs.values()]
    kinds = {part: [pairs[part].same for pairs in runs if part in pairs] for part in again.PARTS}
    kinds["tables"] = [pair.same for outcome in outcomes for pair in outcome.tables.values()]
    told = [f"{sum(same)} of {len(same)} {_NOUNS.get(part, part)}" for part, same in kinds.items() if same]
    if told:
        out.print(f"the same: {', '.join(told)}", markup=False)
