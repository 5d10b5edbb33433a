"""Sweeps on the command line: one bar over all points, a table over seeds, curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import isinf
from pathlib import Path
from statistics import median
from typing import Any, Final

import polars as pl
from rich.markup import escape

from polypath import _core
from polypath.cli import figures, jobs, many, output, progress, signals
from polypath.cli.console import err, out, table, warn
from polypath.cli.errors import BAD_INPUT, DONE
from polypath.cli.figures import Drawing
from polypath.cli.numbers import ONE_VALUE, agreement, estimated, rounded
from polypath.engines import EngineError
from polypath.measures import MEASURES
from polypath.recorded import Record
from polypath.results import Recording, folder, layout
from polypath.results.axes import SEED, Axis
from polypath.results.folder import Folder
from polypath.results.recording import Written
from polypath.results.stored import StoredSweep
from polypath.sweeps import Result, Sweep
from polypath.sweeps import run as run_sweeps
from polypath.sweeps.grid import short_names

#: What the measures of flows that arrive begin with, and what their table is called.
_OF_FLOWS: Final = "flow_"
_MEAN_OF_FLOWS: Final = "flow_mean_s"
_TITLE_OF_FLOWS: Final = "completion times of flows, ms"
#: How many intervals that stayed wide are named.
_MOST_UNMET: Final = 5
#: The rows of a place with many connections.
_OF_MANY: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {"least": min, "median": median, "most": max}


def run(
    todo: Sequence[jobs.Job],
    engine: str,
    record: Record,
    directory: Path | None,
    wanted: Drawing | None,
    parallel: int | None,
    cluster: str | None = None,
) -> int:
    """Runs the sweeps, prints and draws them; BAD_INPUT where a point failed. Ctrl-C says how to go on."""
    code = DONE
    for one, result in computed(todo, engine, record, directory, wanted, parallel, cluster):
        show(result)
        code = max(code, tell_of_failures(result))
        advise(result)
        if one.directory is not None:
            with output.figures_last(one.directory):
                _draw(one, result, one.directory, wanted or Drawing())
    return code


def computed(
    todo: Sequence[jobs.Job],
    engine: str,
    record: Record,
    directory: Path | None,
    wanted: Drawing | None,
    parallel: int | None,
    cluster: str | None = None,
) -> list[tuple[Sweep, Result]]:
    """Runs the sweeps under one bar. Ctrl-C says how to go on."""
    sweeps = [
        Sweep(job.name, job.scenario, job.points, directory and directory / job.folder, job.inputs) for job in todo
    ]
    count = [0, 0]

    with progress.points(todo[0].name if len(todo) == 1 else f"{len(todo)} sweeps") as shown:

        def note(done: int, total: int) -> None:
            count[:] = done, total
            shown(done, total)

        try:
            with signals.unwrapped():
                results = run_sweeps(
                    sweeps,
                    jobs=parallel,
                    cluster=cluster,
                    engine=engine,
                    record=record,
                    figures=() if wanted is None else figures.files_of_runs(wanted),
                    save=output.save if wanted is None else partial(_drawn, wanted),
                    versions={"polypath": _core.version()},
                    progress=note,
                )
        except (KeyboardInterrupt, EngineError) as error:
            done, total = count
            if directory is not None and (done if isinstance(error, EngineError) else total):
                err.print(f"{done} of {total} points are done; the same command goes on from there", markup=False)
            raise
    return list(zip(sweeps, results, strict=True))


def tell_of_failures(result: Result) -> int:
    """Prints why points have no result, and returns BAD_INPUT if there are such points."""
    for point, message in result.failures:
        err.print(f"polypath: {result.name} at {point.title}: {message}", markup=False)
    return BAD_INPUT if result.failures else DONE


def advise(result: Result) -> None:
    """Warns where several seeds give one result, and where more were not enough."""
    for message in result.unmet[:_MOST_UNMET]:
        warn(f"{result.name}: {message}")
    if (left := len(result.unmet) - _MOST_UNMET) > 0:
        warn(f"{result.name}: {left} more intervals are wider than asked for; the table has them")
    several = result.statistics.filter(pl.col("n") > 1)
    alike = several["method"] == "deterministic"
    if alike.any() and (alike | (several["unfinished"] == several["n"])).all():
        warn(
            f"{result.name}: the {several.item(0, 'n')} seeds change nothing, so one is as good; for runs that differ, "
            "give an application a random start ('start_jitter = \"50 ms\"') or a link random loss or jitter"
        )


def show(result: Result | StoredSweep) -> None:
    """Prints a sweep: a row per place and connection, with the interval of the mean if there are seeds. Many
    connections are shown as the least, the median and the greatest. Flows that arrive have a table of their own.
    """
    statistics = result.statistics
    of_flows = pl.col("measure").str.starts_with(_OF_FLOWS)
    flows = statistics.filter(of_flows)
    measures = [name for name in MEASURES if name in statistics["measure"] and _says_something(statistics, name)]
    others = statistics.filter(~of_flows)
    if not others.is_empty() or flows.is_empty():
        _show(result, others, [name for name in measures if not name.startswith(_OF_FLOWS)], result.name)
    if not flows.is_empty():
        if not others.is_empty():
            out.print()
        _show(result, flows, [name for name in measures if name.startswith(_OF_FLOWS)], _TITLE_OF_FLOWS)
    if others["connection"].n_unique() <= many.ROWS:
        _explain(statistics.filter(pl.col("measure").is_in(measures)))


def _show(result: Result | StoredSweep, statistics: pl.DataFrame, measures: Sequence[str], title: str) -> None:
    axes = [axis for axis in result.axes if axis.name != SEED]
    several = bool((statistics["n"] > 1).any())
    count = statistics["connection"].n_unique()
    many_connections = count > many.ROWS
    headings = {axis.name: short for axis, short in zip(axes, short_names([axis.name for axis in axes]), strict=True)}
    is_of_flows = any(name.startswith(_OF_FLOWS) for name in measures)
    words = {name: MEASURES[name].heading.removeprefix("flow ") for name in measures}
    if is_of_flows:
        words = {name: word.removesuffix(" ms") if name != _MEAN_OF_FLOWS else "mean" for name, word in words.items()}
    of_what = "flows" if is_of_flows else "connection"
    shown = table(
        *headings.values(),
        *(["of connections"] if many_connections else [of_what] if count > 1 or is_of_flows else []),
        *words.values(),
        *(["seeds"] if several else []),
        numbers=frozenset(
            ("seeds", *words.values(), *(headings[axis.name] for axis in axes if axis.numbers is not None))
        ),
        title=title,
    )
    of = _of_many if many_connections else partial(_of_each, named=count > 1 or is_of_flows)
    rows = [[*cells, *([runs] if several else [])] for cells, runs in of(statistics, list(headings), measures)]
    for place in _without_result(result, list(headings)):
        rows.append([*map(escape, place), *([""] if count > 1 else []), "no result"])
    for row in _in_order(rows, axes):
        shown.add_row(*row)
    out.print(shown)
    if many_connections:
        out.print(f"of the means of {count} connections; the files have each of them", style="dim")


def _in_order(rows: Sequence[Sequence[str]], axes: Sequence[Axis]) -> Sequence[Sequence[str]]:
    """The rows, which begin with their places, in the order of the axes, whichever of their seeds have a result."""
    order = [{escape(label): number for number, label in enumerate(axis.labels)} for axis in axes]
    return sorted(
        rows, key=lambda row: [found.get(label, len(found)) for found, label in zip(order, row, strict=False)]
    )


def _without_result(result: Result | StoredSweep, axes: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The places of which no seed has a result: it failed, or has not run."""
    if not axes:
        return
    if isinstance(result, StoredSweep):
        lacking: Iterable[Mapping[str, str]] = (values for values, _ in result.without)
    else:
        lacking = (point.values for point, _ in result.failures)
    shown = set(result.statistics.select(axes).iter_rows())
    places = dict.fromkeys(tuple(values[name] for name in axes) for values in lacking)
    yield from (place for place in places if place not in shown)


def _of_each(
    statistics: pl.DataFrame, axes: list[str], measures: Sequence[str], named: bool
) -> Iterator[tuple[list[str], str]]:
    """A row for each place and connection, which is `named` where there are several: its cells, and how many runs it is
    of."""
    for key, group in statistics.group_by([*axes, "connection"], maintain_order=True):
        by_measure = {row["measure"]: row for row in group.iter_rows(named=True)}
        cells = [escape(str(part)) for part in (key if named else key[:-1])]
        cells += [_estimate(by_measure.get(name), MEASURES[name].printed) for name in measures]
        yield cells, _runs(group)


def _of_many(statistics: pl.DataFrame, axes: list[str], measures: Sequence[str]) -> Iterator[tuple[list[str], str]]:
    """Rows for each place: the least, the median and the most of its connections. What did not finish is at the
    end that is worse."""
    places = statistics.group_by(axes, maintain_order=True) if axes else [((), statistics)]
    for key, place in places:
        found = {name: _means(place, name) for name in measures}
        for word, chosen in _OF_MANY.items():
            cells = [*(escape(str(part)) for part in key), word]
            for name in measures:
                values = found[name]
                value = chosen(values) if values else None
                unfinished = f"{sum(map(isinf, values))} of {len(values)} not done"
                cells.append("" if value is None else unfinished if isinf(value) else _number(name, value))
            yield cells, _runs(place)


def _means(place: pl.DataFrame, measure: str) -> list[float]:
    own = place.filter(pl.col("measure") == measure)
    return [MEASURES[measure].beyond if row["unfinished"] else row["mean"] for row in own.iter_rows(named=True)]


def _runs(statistics: pl.DataFrame) -> str:
    """How many runs these figures are of; from the fewest to the most where some runs lack a figure."""
    return " to ".join(map(str, dict.fromkeys((statistics["n"].min(), statistics["n"].max()))))


def _number(measure: str, value: float) -> str:
    return rounded(value / MEASURES[measure].printed)


def _explain(statistics: pl.DataFrame) -> None:
    """What the signs in the table mean."""
    methods = set(statistics["method"])
    if intervals := sorted(methods - {"none", "deterministic", "constant"}):
        what = "± half of the 95 % confidence interval of the mean, (.. to ..) the interval where it is not symmetric"
        out.print(f"{what} ({', '.join(intervals)})", style="dim")
    if "deterministic" in methods:
        out.print("= deterministic: the runs of all seeds agree", style="dim")
    if "constant" in methods:
        out.print(ONE_VALUE, style="dim")
    if (statistics["unfinished"] > 0).any():
        out.print(
            "done: runs that finished, had their requests answered and their video shown; a figure before it is the "
            "median, with the others counted as the worst",
            style="dim",
        )


def _says_something(statistics: pl.DataFrame, measure: str) -> bool:
    """Whether a measure has values other than zero, or is the only figure of a connection. Otherwise it is left out,
    such as bytes that are zero everywhere.
    """
    own = statistics.filter(pl.col("measure") == measure)
    if (own["mean"] != 0).any() or (own["unfinished"] > 0).any():
        return True
    told = statistics.filter((pl.col("measure") != measure) & (pl.col("unit") != "bytes"))
    return (own["unit"] != "bytes").all() and not set(own["connection"]) <= set(told["connection"])


def _estimate(row: Mapping[str, Any] | None, size: float) -> str:
    if row is None:
        return ""
    if row["unfinished"]:
        return _unfinished(row, size)
    mean = row["mean"] / size
    if row["low"] is None:
        return rounded(mean) + agreement(row["method"], row["n"])
    return estimated(mean, row["low"] / size, row["high"] / size)


def _unfinished(row: Mapping[str, Any], size: float) -> str:
    of = f"{row['n'] - row['unfinished']} of {row['n']} done"
    return of if row["median"] is None else f"{rounded(row['median'] / size)}, {of}"


def _drawn(wanted: Drawing, recording: Recording, scenario: Written | None, held: Folder, staged: Path) -> None:
    """A point with its figures."""
    output.save(recording, scenario, held, staged)
    output.draw(recording, held, wanted)


def _draw(one: Sweep, result: Result, directory: Path, wanted: Drawing) -> None:
    figures.ready()
    from polypath.plots import sweeps

    failed = {point.folder for point, _ in result.failures}
    kept = [(point.values, directory / point.folder) for point in result.places if point.folder not in failed]
    drawn = StoredSweep(result.name, result.axes, result.points, result.statistics, kept)
    with folder.claim(directory, folder.SWEEP) as held, progress.points("figures", "figures") as shown:
        staged = held.stage() / layout.PLOTS
        names = figures.of_sweeps(wanted)
        saved = sweeps.save_all(drawn, drawn.load, staged, names, wanted.form, wanted.look, progress=shown)
        held.commit(keep=True)
    lacking = [name for name in names or () if staged / f"{name}.{wanted.form}" not in saved]
    for name in [*lacking, *_drawn_at_no_point(wanted, [place for _, place in kept])]:
        warn(f"{result.name}: {figures.undrawn(name)}")


def _drawn_at_no_point(wanted: Drawing, places: Sequence[Path]) -> Iterator[str]:
    """The figures of runs asked for that no point has."""
    from polypath.plots import file_name

    for name in (figures.of_runs(wanted) or ()) if places else ():
        file = Path(layout.PLOTS) / file_name(name, wanted.form)
        if not any((place / file).exists() for place in places):
            yield name
