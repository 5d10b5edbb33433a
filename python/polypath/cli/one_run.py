"""The Recording of a command's single run: stored, or run for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from polypath import engines
from polypath.cli import jobs, progress
from polypath.cli.errors import InputError
from polypath.engines import Options
from polypath.labs.own import folder_of
from polypath.results import Recording, layout
from polypath.scenario import Plan


def recording(
    target: str,
    settings: Sequence[str],
    seed: int | None,
    runs: Sequence[str],
    options: Callable[[Plan], Options],
    engine: str | None = None,
) -> Recording:
    """Reads a stored result, or runs a lab's run or a scenario, with options that suit its plan.

    Raises InputError where the target is not one run.
    """
    folder = Path(target)
    if folder.is_dir() and folder_of(folder) is None:
        inner = sorted(str(each.parent) for each in folder.glob(f"*/{layout.MANIFEST}"))
        if (folder / layout.MANIFEST).exists():
            inner = []
        if len(inner) > 1:
            raise InputError(f"{target} has the results of several runs; name one: {', '.join(inner)}")
        if settings or seed is not None or runs:
            raise InputError(f"{target} is a result; --set, --seed and --run are of a lab or a scenario")
        if engine:
            raise InputError(f"{target} is a result; --engine is of a lab or a scenario")
        return Recording.load(inner[0] if inner else target)
    todo = jobs.of_target(target, runs, settings, seed)
    if len(todo) > 1:
        raise InputError(f"choose one run with --run: {', '.join(job.name.rpartition('/')[2] for job in todo)}")
    (job,) = todo
    job.require_one()
    with progress.shown(job.name) as callback:
        return engines.get(engine or "sim").run(job.plan, options(job.plan), callback)
