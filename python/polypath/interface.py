"""What a person calls from Python: run, sweep, compare, load, from_pcap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from polypath import labs
from polypath.engines import EngineError, Progress, get, into, require_known
from polypath.measures import MEASURES, short
from polypath.progress import of_run
from polypath.recorded import Record
from polypath.results import MetricError, OutputError, Recording, folder, stored
from polypath.results.axes import SEED
from polypath.results.errors import UnknownName
from polypath.results.recording import Written
from polypath.results.settled import settled
from polypath.results.stored import StoredSweep
from polypath.running import named, of_plan
from polypath.running import run as run_into
from polypath.scenario import Plan, Scenario, ScenarioError
from polypath.statistics import paired
from polypath.statistics.across import across as over_networks
from polypath.statistics.along import along as along_properties
from polypath.statistics.points import measures_of
from polypath.sweeps import Progress as PointProgress
from polypath.sweeps import Result, Sweep, points
from polypath.sweeps import run as run_sweeps

Target = Scenario | str | Path
"""A scenario, the path of its file, or a lab, by name or by its folder: "aggregation/mptcp" is its run `mptcp`."""


def run(
    target: Target | Plan,
    *,
    seed: int | None = None,
    engine: str = "sim",
    record: Record | None = None,
    directory: Path | str | None = None,
    qlogs: Path | str | bool = False,
    out: Path | str | None = None,
    progress: Progress | None = None,
    **recorded: Any,
) -> Recording:
    """Runs a scenario, given as an object, as the path of its file or as the name of a lab's run.

    `run["iperf"]` is then the connection of application `iperf`, with its figures as attributes.
    `run.plot.rate()` draws.

    With `out`, the folder is written that `polypath run --out` writes, captures and qlogs in it. It must be new,
    empty or an earlier result. Without `out`, `directory` takes the captures, and `qlogs` names a new or empty folder.

    `seed` replaces the scenario's own. `record` says what is recorded beside the tables that each run has; its fields
    are keywords, too. `captures` are taken at "hosts" or on "links". `segments` records a row for each segment, which
    time-sequence figures need. `account` records why connections were not faster; by default it is kept with `out`,
    unless there are more than a hundred connections. `progress` is called with the simulated time and the latest end of
    the run, in ns; by default a notebook shows a bar.

    Raises ScenarioError for a scenario that has no plan, or a plan with a seed beside it; EngineError where the engine
    cannot run it; OutputError where `out` cannot be written.
    """
    wanted = replace(record or Record(), qlogs=bool(qlogs) or (record is not None and record.qlogs), **recorded)
    require_known(wanted)
    if wanted.captures != "none" and directory is None and out is None:
        raise EngineError(f"captures of {wanted.captures} need a directory to go to")
    inputs: Sequence[Path] = ()
    if isinstance(target, Plan):
        if seed is not None:
            raise ScenarioError("a plan has its seed: give this one to the scenario, as scenario.plan(SEED)")
        name, scenario, plan = str(target.view["name"]), None, target
    else:
        name, scenario, inputs = found(target)
        plan = scenario.plan(seed)
        scenario = of_plan(scenario, plan)
    with of_run(name) as bar:
        shown = progress or bar
        if out is not None:
            with folder.claim(Path(out), folder.RUN, inputs) as held:
                return run_into(name, plan, scenario, get(engine), wanted, held, shown)
        if wanted.qlogs and isinstance(qlogs, bool):
            raise EngineError("qlogs need a folder to go to: give out=, or the folder as qlogs=")
        options = replace(
            into(wanted, plan, None),
            captures=wanted.captures,
            directory=None if directory is None else Path(directory),
            qlogs=None if isinstance(qlogs, bool) else Path(qlogs),
        )
        return named(get(engine).run(plan, options, shown), name, scenario)


def sweep(
    target: Target,
    vary: Mapping[str, Any] | None = None,
    *,
    seeds: int | Sequence[int] | None = None,
    engine: str = "sim",
    jobs: int | None = None,
    cluster: str | None = None,
    out: Path | str | None = None,
    progress: PointProgress | None = None,
) -> Result:
    """Runs every combination of values, `vary={"defaults.scheduler": ["default", "blest"]}`, beside the scenario's own
    `[vary]`. `seeds` is a number of seeds, or the seeds themselves.

    The result has `points`, a polars DataFrame with a row for each connection of each run; `statistics`, the same over
    seeds; `failures`. To iterate over it gives its runs: `run.values`, `run.seed`, `run["iperf"].goodput_mbps`.

    Points run on `jobs` cores, all if left out, or on the workers of `cluster`; the result is the same. With `out` each
    point is a folder there, and a sweep that was interrupted continues. `progress` is called with the numbers of points
    done and to do.

    Raises ScenarioError where nothing varies or a point has no plan, EngineError, OutputError.
    """
    name, scenario, inputs = found(target)
    axes = dict(vary or {})
    if seeds is not None:
        axes |= {"seeds": seeds} if isinstance(seeds, int) else {SEED: list(seeds)}
    varied = scenario.varied(axes) if axes else scenario
    if not varied.vary:
        raise ScenarioError(f"{name} varies nothing: give axes as {{path: values}}, or seeds=")
    (result,) = run_sweeps(
        [Sweep(name, varied, points(varied), None if out is None else Path(out), inputs)],
        jobs=jobs,
        cluster=cluster,
        engine=engine,
        save=None if out is None else _save,
        progress=progress,
    )
    return result


def compare(
    result: Result | StoredSweep,
    by: str | None = None,
    *,
    base: str | None = None,
    measure: str | Sequence[str] | None = None,
) -> pl.DataFrame:
    """The values of axis `by`, each against `base`, as differences within seeds (docs/statistics.md).

    A row for each connection, measure and value, at each place of the other axes: `mean` and `base_mean`, `difference`
    with `low` and `high`, the bounds of its 95 % interval, `p_holm`, the p-value corrected for the table, and a
    `verdict`. `by` may be left out where one axis varies besides the seed; `base` is the first value if left out.
    `measure` is one or several of "goodput", "completion", "delay_median" and so on; left out, those that tell most of
    each application.

    Raises MetricError for an axis, a value or a measure that is none.
    """
    by, base, of = _chosen(result, by, base, measure)
    return paired.over_pairs(result.points, result.axes, by, base, of)


def across(
    result: Result | StoredSweep,
    by: str,
    networks: str | Sequence[str],
    *,
    base: str | None = None,
    measure: str | Sequence[str] | None = None,
) -> pl.DataFrame:
    """The values of axis `by` over many networks, which the axes `networks` span (docs/statistics.md).

    A row for each connection, measure and value. `ratio` to the base is the geometric mean over networks; `low` and
    `high` bound its 95 % interval over networks. `wins`, `ties` and `losses` count the networks in which the value is
    shown to be better, not shown to differ, or shown to be worse. `rank` is its mean rank; `unfinished` counts the
    networks in which a run did not finish. `base` and `measure` as in `compare`. Raises MetricError.
    """
    by, base, of = _chosen(result, by, base, measure)
    blocks = [networks] if isinstance(networks, str) else networks
    return over_networks(result.points, result.axes, by, base, blocks, of)


def along(
    result: Result | StoredSweep,
    by: str,
    networks: str | Sequence[str],
    *,
    base: str | None = None,
    measure: str | Sequence[str] | None = None,
) -> pl.DataFrame:
    """How the ratios of `across` change with the properties of the networks (docs/statistics.md).

    A row for each connection, measure, value and property. It has Spearman's `correlation` of the property with the
    ratio, and its p-value `p_holm`, corrected for the table. The ratio is given below and above the median. Properties
    are the numbers of the axes, the settings of drawn ones, and ratios of those that end in the same word.
    """
    by, base, of = _chosen(result, by, base, measure)
    blocks = [networks] if isinstance(networks, str) else networks
    return along_properties(result.points, result.axes, by, base, blocks, of)


def load(directory: Path | str) -> Recording | StoredSweep:
    """A result folder: of a run, or of a sweep. Raises OutputError where there is none."""
    path = Path(directory)
    if not path.is_dir():
        raise OutputError(f"{path} is no folder of results")
    for folder_, kind in stored.found(path):
        if folder_ == path:
            return Recording.load(path) if kind is folder.RUN else StoredSweep.read(path)
    raise OutputError(f"{path} holds neither a run nor a sweep; name the folder of one")


def from_pcap(*files: Path | str, interval_ns: int | None = None, segments: bool = False) -> Recording:
    """What captures of real traffic tell, as the Recording of a run.

    Several files may be of the same traffic at different places. `interval_ns` is the time between samples, 100 ms if
    left out; with `segments` there is a row for each segment. What is damaged or missing in the files is listed in
    `recording.plan["capture"]["notes"]`. Raises CaptureError.
    """
    from polypath import capture

    interval = capture.INTERVAL_NS if interval_ns is None else interval_ns
    return capture.trace(files, interval_ns=interval, segments=segments).recording


def found(target: Target) -> tuple[str, Scenario, Sequence[Path]]:
    """The name of a run, its scenario, and the files that it was read from."""
    if isinstance(target, Scenario):
        return target.name, target, target.scripts()
    path = Path(target)
    lab, run_name = _lab(path if isinstance(target, Path) else target)
    if lab is None:
        if path.suffix == ".toml" or (isinstance(target, Path) and not path.is_dir()):
            scenario = Scenario.load(path)
            return scenario.name, scenario, [path, *scenario.scripts()]
        lab = labs.get(target.partition("/")[0] if isinstance(target, str) and not path.is_dir() else target)
    if len(lab.runs) == 1:
        run_name, name = run_name or lab.runs[0].name, lab.name
    elif run_name:
        name = f"{lab.name}/{run_name}"
    else:
        listed = ", ".join(f"{target}/{each.name}" for each in lab.runs)
        raise ScenarioError(f"lab '{lab.name}' has several runs; name one of {listed}")
    made = lab.scenario(run_name)
    return name, made, [*lab.inputs, *made.scripts()] if lab.own else ()


def _lab(target: str | Path) -> tuple[labs.Lab | None, str]:
    """A lab, if it is one, and the run of it that is named behind a slash; empty: none is."""
    if (lab := labs.find(target)) is not None:
        return lab, ""
    folder, _, run = str(target).rpartition("/")
    return (labs.find(folder), run) if folder and not run.endswith(".toml") else (None, "")


def _chosen(
    result: Result | StoredSweep, by: str | None, base: str | None, measure: str | Sequence[str] | None
) -> tuple[str, str, dict[str, Sequence[str]]]:
    """The axis that is compared, its base, and the measures of each application."""
    names = [axis.name for axis in result.axes if axis.name != SEED]
    if by is None:
        if len(names) != 1:
            raise MetricError(f"name the axis to compare with by=: {', '.join(names) or 'only the seed varies'}")
        by = names[0]
    if by not in names:
        raise UnknownName.of("axis", by, names)
    (axis,) = (axis for axis in result.axes if axis.name == by)
    if base is None:
        base = axis.labels[0]
    if base not in axis.labels:
        raise UnknownName.of(f"value of {by}", base, axis.labels)
    chosen = [_measure(each) for each in ([measure] if isinstance(measure, str) else measure or ())]
    return by, base, measures_of(result.points, result.applications, chosen)


def _measure(name: str) -> str:
    name, known = settled(name), {short(each): each for each in MEASURES}
    if name in MEASURES:
        return name
    if name not in known:
        raise UnknownName.of("measure", name, known)
    return known[name]


def _save(recording: Recording, scenario: Written | None, held: folder.Folder, staged: Path) -> None:
    named(recording, recording.metadata.scenario, scenario).commit(held, staged)
