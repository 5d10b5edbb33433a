"""polypath compare --by: the values of one setting side by side, paired by seed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl
from rich.markup import escape

from polypath import registry
from polypath.cli import jobs, output, sweeps
from polypath.cli.console import err, out, table, warn
from polypath.cli.errors import InputError
from polypath.cli.numbers import ONE_VALUE, agreement, estimated, percent, rounded
from polypath.measures import MEASURES, short
from polypath.results import folder, layout
from polypath.results.axes import SEED
from polypath.results.files import write_table
from polypath.results.settled import settled
from polypath.scenario.vary import SEEDS, Axis
from polypath.scenario.vary import shown as shown_number
from polypath.statistics import across, along, paired
from polypath.statistics.points import measures_of
from polypath.sweeps import Result
from polypath.sweeps.point import UNASKED
from polypath.units import nearest

#: How many seeds there are where neither command nor scenario says.
SEEDS_LEFT_OUT: Final = 10
#: Of each value.
_MOST_PROPERTIES: Final = 3


def run(
    target: str,
    by: str,
    base: str | None,
    seeds: int | None,
    measures: Sequence[str],
    networks: Sequence[str],
    settings: Sequence[str],
    runs: Sequence[str],
    axes: Sequence[str],
    engine: str,
    directory: Path | None,
    parallel: int | None,
) -> int:
    """Runs every value with every seed, and prints the differences within seeds."""
    chosen = [measure(name) for name in measures]
    name = by.partition("=")[0].strip()
    if name in (SEED, SEEDS):
        raise InputError(f"--by {name}: seeds make the pairs; name a setting whose values are compared")
    every = [*axes, *_axes(target, by, seeds, settings, runs, axes)]
    todo = jobs.of_target(target, runs, settings, None, every, later=True)
    for job in todo:
        axis = _axis(job, name)
        paired.require_names(each.name for each in job.scenario.axes)
        _require_networks(job, axis, networks)
        if base is not None and base not in axis.labels:
            hint = nearest(base, axis.labels)
            raise InputError(
                f"--base: {name} has no value '{base}'; "
                + (f"did you mean '{hint}'?" if hint else f"it has {', '.join(axis.labels)}")
            )
        if len(axis.labels) < 2:
            raise InputError(f"--by {name}: one value is nothing to compare; name several, as in --by {name}=A,B")
    code = 0
    for one, result in sweeps.computed(todo, engine, UNASKED, directory, None, parallel):
        varied = _axis_name(result, name)
        against = base or next(axis.labels[0] for axis in result.axes if axis.name == varied)
        of = measures_of(result.points, one.points[0].plan.view["applications"], chosen)
        found = paired.over_pairs(result.points, result.axes, varied, against, of)
        seeds_run = next(len(axis.labels) for axis in result.axes if axis.name == SEED)
        labels = next(axis.labels for axis in result.axes if axis.name == varied)
        over = across.across(result.points, result.axes, varied, against, networks, of) if networks else None
        if over is None:
            _show(result.name, varied, against, found, labels, seeds_run)
        else:
            _show_across(result.name, varied, against, over)
            where = along.along(result.points, result.axes, varied, against, networks, of)
            _show_along(varied, where)
            if 1 < seeds_run < (fewest := paired.pairs_needed(1)):
                warn(f"{seeds_run} seeds can show no win or loss in a network; take --seeds {fewest} or more")
        code = max(code, sweeps.tell_of_failures(result))
        for wanted in chosen:
            if wanted not in found["measure"]:
                warn(f"{result.name}: no connection has a figure {short(wanted)}")
        sweeps.advise(result)
        if over is None:
            _tell_of_too_few_pairs(found, seeds_run)
        if one.directory is not None:
            with output.figures_last(one.directory, "comparison"):
                _save(
                    one.directory,
                    {layout.PAIRED: found} | ({} if over is None else {layout.ACROSS: over, layout.ALONG: where}),
                )
                if over is not None:
                    _draw_profiles(one.directory, result, varied, networks, over)
    if directory is not None:
        err.print(f"results in {directory}", markup=False)
    return code


def _require_networks(job: jobs.Job, by: Axis, networks: Sequence[str]) -> None:
    """Raises InputError for a network's axis that is none."""
    own = [each.name for each in job.scenario.axes if each is not by and each.name not in (SEED, SEEDS)]
    for network in networks:
        if network not in own:
            hint = nearest(network, own)
            raise InputError(
                f"--networks: {job.name} has no axis '{network}'; "
                + (f"did you mean '{hint}'?" if hint else f"it has {', '.join(own) or 'none but the seed'}")
            )


def measure(name: str) -> str:
    """The column of a measure, which may be named without its unit. Raises InputError."""
    name = settled(name)
    known = {short(each): each for each in MEASURES}
    if name in known or name in MEASURES:
        return known.get(name, name)
    hint = nearest(name, known)
    raise InputError(
        f"--measure: unknown measure '{name}'; "
        + (f"did you mean '{hint}'?" if hint else f"there is {', '.join(known)}")
    )


def _axes(
    target: str, by: str, seeds: int | None, settings: Sequence[str], runs: Sequence[str], axes: Sequence[str]
) -> list[str]:
    """What the scenario does not vary yet: the setting compared, and the seeds.

    Raises InputError where each value would have seeds of its own.
    """
    todo = jobs.of_target(target, runs, settings, None, axes, later=True, dry=True)
    if seeds is None and any(job.scenario.adaptive is not None for job in todo):
        raise InputError(
            "the scenario takes seeds until intervals are narrow; a comparison needs --seeds N for all values"
        )
    own = [axis.name for job in todo for axis in job.scenario.axes]
    found = []
    if "=" in by:
        found.append(by)
    elif by not in own:
        found.append(f"{by}={','.join(_every(by))}")
    if seeds is not None or SEED not in own:
        found.append(f"{SEEDS}={SEEDS_LEFT_OUT if seeds is None else seeds}")
    return found


def _every(path: str) -> list[str]:
    """All that a setting can be, where that is an algorithm. Raises InputError."""
    for kind in registry.KINDS:
        if path.rpartition(".")[2].replace("_", "-") == kind:
            return list(registry.entries(kind))
    raise InputError(f"--by {path}: the scenario does not vary it; name the values, as in --by '{path}=A,B'")


def _axis(job: jobs.Job, name: str) -> Axis:
    found = [axis for axis in job.scenario.axes if axis.name == name or name in axis.paths]
    if not found:
        raise InputError(f"--by {name}: {job.name} does not vary it")
    return found[0]


def _axis_name(result: Result, name: str) -> str:
    names = [axis.name for axis in result.axes]
    return name if name in names else next(each for each in names if name in each.split(", "))


def _show(name: str, by: str, base: str, found: pl.DataFrame, labels: Sequence[str], seeds: int) -> None:
    heading = by.split(",")[0].rpartition(".")[2]
    out.print(f"[bold]{escape(name)}[/bold]: {escape(by)}, each against {escape(base)}, paired by seed")
    if found.is_empty():
        out.print(f"nothing to compare with: no run of {escape(base)} has a figure", style="dim")
        return
    fewer = bool((found["pairs"] < seeds).any())
    places = found.columns[: found.columns.index("connection")]
    for key, group in found.group_by([*places, "connection", "measure"], maintain_order=True):
        *place, connection, measure = map(str, key)
        where = "".join(f", {axis}={value}" for axis, value in zip(places, place, strict=True))
        known = MEASURES[measure]
        unit = f", {known.unit.shown}" if known.unit.shown else ""
        title = f"{connection}{where}: {known.title}{unit}"
        columns = (heading, *(["pairs"] if fewer else []), "figure", "difference", "p", "")
        shown = table(*columns, numbers=frozenset({"pairs", "p"}), title=title)
        for row in group.iter_rows(named=True):
            shown.add_row(escape(row[by]), *([str(row["pairs"])] if fewer else []), *told(row).values())
        for label in dict.fromkeys(labels):
            if label not in group[by]:
                shown.add_row(escape(label), *(["0"] if fewer else []), "no figure")
        out.print()
        out.print(shown)
    _explain(found)
    if fewer:
        out.print(f"pairs: of {seeds} seeds those of which both runs are there and have the figure", style="dim")


def told(row: Mapping[str, Any]) -> dict[str, str]:
    """A row of paired.parquet as it is printed: figure, difference, p and verdict, in the measure's printed unit."""
    printed = MEASURES[row["measure"]].printed
    difference, p, verdict = _compared(row, printed)
    return {"figure": _figure(row, printed), "difference": difference, "p": p, "verdict": verdict}


def _figure(row: Mapping[str, Any], size: float) -> str:
    """The figure of a single label: the mean, or the median if some runs did not finish."""
    if row["unfinished"]:
        done = f"{row['pairs'] - row['unfinished']} of {row['pairs']} done"
        return done if row["median"] is None else f"{rounded(row['median'] / size)}, {done}"
    if row["value_low"] is None:
        return rounded(row["mean"] / size) + agreement(row["value_method"], row["pairs"])
    return estimated(row["mean"] / size, row["value_low"] / size, row["value_high"] / size)


def _compared(row: Mapping[str, Any], size: float) -> tuple[str, str, str]:
    if row["difference"] is None:
        return "", "", ""
    difference, low, high = (None if row[each] is None else row[each] / size for each in ("difference", "low", "high"))
    if low is None or high is None:
        text = _signed(difference)
    else:
        text = f"{_signed(difference, high - low)} ({_signed(low, high - low)} to {_signed(high, high - low)})"
    p = "" if row["p_holm"] is None else _p(row["p_holm"])
    return text, p, _verdict(row)


def _verdict(row: Mapping[str, Any]) -> str:
    match row["verdict"]:
        case "deterministic":
            return f"deterministic: {row['pairs']} runs agree"
        case "equal in every pair":
            return f"equal in all {row['pairs']} pairs"
        case "higher" | "lower" as way:
            if row["base_mean"] and row["mean"] is not None:
                return f"{way!s}, {percent(row['difference'] / row['base_mean'])}"
            return str(way)
        case other:
            return str(other)


def _signed(value: float | None, uncertainty: float = 0.0) -> str:
    assert value is not None
    return ("+" if value > 0 else "") + rounded(value, uncertainty)


def _p(value: float) -> str:
    """Two digits, or as many as leave it on its side of the level."""
    if value < 0.001:
        return "< 0.001"
    digits = 2
    while (float(f"{value:.{digits}g}") < paired.LEVEL) != (value < paired.LEVEL):
        digits += 1
    return f"{value:.{digits}g}"


def _explain(found: pl.DataFrame) -> None:
    tested = found["p_holm"].is_not_null().sum()
    out.print()
    if tested:
        tests = sorted(set(found["test"]) - {"none"})
        methods = sorted(set(found["method"]) - {"none"})
        interval = f" (95 % interval: {', '.join(methods)})" if methods else ""
        out.print(
            f"difference: mean over pairs{interval}; p: {', '.join(tests)} test, corrected "
            f"for {tested} comparison{'s' if tested > 1 else ''} (Holm); below {paired.LEVEL:g} a difference is shown",
            style="dim",
        )
    if (found["unfinished"] > 0).any():
        out.print(
            "done: runs that finished, had their requests answered and their video shown. The others count as worse "
            "than any (censored): the difference is then the median, ∞ where that depends on one of them",
            style="dim",
        )
    if "deterministic" in set(found["verdict"]):
        out.print("=: the runs of all seeds agree; nothing to test, the difference is exact", style="dim")
    if "constant" in set(found["value_method"]):
        out.print(ONE_VALUE, style="dim")


def _tell_of_too_few_pairs(found: pl.DataFrame, seeds: int) -> None:
    tested = found.filter(pl.col("p").is_not_null())
    if tested.is_empty():
        return
    pairs, needed = min(tested["pairs"].to_list()), paired.pairs_needed(tested.height)
    if pairs < needed:
        warn(
            f"{pairs} pairs can show no difference among {tested.height} comparisons, whatever the figures; take "
            f"--seeds {needed + seeds - pairs} or more, or fewer values or measures (--measure)"
        )


def _save(directory: Path, tables: Mapping[str, pl.DataFrame]) -> None:
    with folder.claim(directory, folder.SWEEP) as held:
        staged = held.stage()
        for name, found in tables.items():
            write_table(staged / name, found)
        held.commit(keep=True)


def _show_across(name: str, by: str, base: str, found: pl.DataFrame) -> None:
    heading = by.split(",")[0].rpartition(".")[2]
    networks = max(found["networks"].to_list(), default=0)
    out.print(f"[bold]{escape(name)}[/bold]: {escape(by)} over {networks} networks, each against {escape(base)}")
    for (connection, measure), group in found.group_by("connection", "measure", maintain_order=True):
        known = MEASURES[str(measure)]
        better = "more is better" if known.more_is_better else "less is better"
        columns = (heading, "ratio", "wins", "ties", "losses", "rank", "unfinished")
        shown = table(*columns, numbers=frozenset(columns[2:]))
        for row in group.iter_rows(named=True):
            ratio = "" if row["ratio"] is None else f"{row['ratio']:.3f}"
            interval = "" if row["low"] is None else f" ({row['low']:.3f} to {row['high']:.3f})"
            counts = ["" if row[each] is None else str(row[each]) for each in ("wins", "ties", "losses")]
            shown.add_row(escape(row["value"]), ratio + interval, *counts, f"{row['rank']:.2f}", str(row["unfinished"]))
        out.print()
        out.print(f"[bold]{escape(f'{connection}: {known.title}, {better}')}[/bold]", soft_wrap=True)
        out.print(shown)
        if (p_ranks := group.item(0, "p_ranks")) is not None:
            told = _p(p_ranks)
            equals = "" if told.startswith("<") else "= "
            out.print(f"all values rank alike: p {equals}{told} (Friedman)", style="dim")
    if (found["ratios"] < found["networks"]).any():
        out.print(
            "unfinished: networks in which a run did not finish; they have no ratio, nor has a figure of 0", style="dim"
        )
    out.print(
        "ratio: geometric mean over networks (95 % interval over networks: bootstrap); wins, ties, losses: networks in "
        "which the value is shown to be better, not shown to differ, or worse (each at 5 %, not corrected); "
        "rank: 1 is the best",
        style="dim",
    )


def _show_along(by: str, found: pl.DataFrame) -> None:
    """For each value, the properties that its ratio is shown to depend on, the closest first."""
    shown_rows = found.filter(pl.col("p_holm") < paired.LEVEL)
    if found.is_empty():
        return
    if shown_rows.is_empty():
        out.print()
        out.print("no property of the networks is shown to decide where a value is better", style="dim")
        return
    heading = by.split(",")[0].rpartition(".")[2]
    columns = (heading, "property", "correlation", "median", "ratio below", "ratio above")
    for (connection, measure), group in shown_rows.group_by("connection", "measure", maintain_order=True):
        title = f"{connection}: {MEASURES[str(measure)].title}, by the networks' properties"
        shown = table(*columns, numbers=frozenset(columns[2:]))
        closest = group.with_columns(pl.col("correlation").abs().alias("_close"))
        for _, own in closest.group_by("value", maintain_order=True):
            for row in own.sort("_close", descending=True).head(_MOST_PROPERTIES).iter_rows(named=True):
                middle = shown_number(row["median"], row["unit"])
                ratios = ["" if row[each] is None else f"{row[each]:.3f}" for each in ("ratio_below", "ratio_above")]
                names = escape(row["value"]), escape(row["property"])
                shown.add_row(*names, f"{row['correlation']:+.2f}", middle, *ratios)
        out.print()
        out.print(f"[bold]{escape(title)}[/bold]", soft_wrap=True)
        out.print(shown)
    out.print(
        "correlation: of the ranks of property and ratio (Spearman); ratio below, above: geometric means of the "
        "networks on either side of the property's median. Only what is shown at 5 %, corrected for all properties",
        style="dim",
    )


def _plain(name: str) -> str:
    """A connection's name without characters that a shell takes apart: "files, up to 100 kB" is files-up-to-100-kB."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name)


def _draw_profiles(directory: Path, result: Result, by: str, networks: Sequence[str], found: pl.DataFrame) -> None:
    """A performance profile for each connection and measure."""
    from matplotlib.figure import Figure

    from polypath import plots

    with folder.claim(directory, folder.SWEEP) as held:
        staged = held.stage() / layout.PLOTS
        staged.mkdir(parents=True, exist_ok=True)
        for connection, measure in found.select("connection", "measure").unique(maintain_order=True).rows():
            with plots.style():
                figure = plots.profile(result, by, networks, measure, connection=connection).figure
                assert isinstance(figure, Figure)
                plots.write(figure, staged / f"profile-{_plain(connection)}-{short(measure)}.png")
        held.commit(keep=True)
