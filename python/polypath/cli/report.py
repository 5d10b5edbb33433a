"""polypath report: runs as one interactive page."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Annotated, Any
from urllib.parse import quote

import typer

from polypath import _core, engines, labs
from polypath.cli import jobs, output, paired, progress, sweeps
from polypath.cli.check import causes, is_stale
from polypath.cli.console import err, warn
from polypath.cli.errors import DONE, INTERRUPTED, InputError
from polypath.cli.live import Origin, presets
from polypath.cli.options import Runs, Seed, Settings
from polypath.engines import Options
from polypath.labs import Lab
from polypath.labs.expectations import Row, Sample, evaluate
from polypath.labs.own import folder_of
from polypath.playground import live as with_simulator
from polypath.playground import require_built
from polypath.report import FINE_RUNS, Judged, Labelled, LabOf, Page, SweepOf, build, html, is_unchanged
from polypath.results import OutputError, Recording, account, folder, layout, reading, stored
from polypath.results.axes import SEED
from polypath.results.files import write_text
from polypath.results.names import of_folders, of_place, told_apart
from polypath.sweeps import Sweep
from polypath.sweeps import run as run_sweeps

#: Runs of a sweep with charts on a page; points beyond are linked, and judged with the others.
MOST_RUNS = 200


@dataclass(frozen=True)
class _Found:
    """A run or a sweep that the page shows, of a sweep the first `runs`; `place` is its folder, and `link` that as the
    page names it, unless it is gone when the page is read."""

    name: str
    runs: Sequence[Labelled]
    place: Path | None = None
    index: Mapping[str, Any] | None = None
    link: str | None = None
    #: The command's exit code for it.
    code: int = DONE
    #: What it is called on the page.
    title: str = ""
    #: Where each of the runs comes from.
    origins: Sequence[Origin] = ()

    @property
    def interrupted(self) -> bool:
        return any(run.recording.metadata.interrupted for run in self.runs)

    @property
    def whole(self) -> bool:
        """Whether every point has a result."""
        return self.index is None or len(_done(self.index)) == len(self.index["points"])

    def plans(self) -> Iterator[tuple[Mapping[str, str], str]]:
        """The labels of all points with a result, and the hashes of their plans."""
        if self.index is None:
            yield from ((run.values, run.recording.metadata.plan_sha256) for run in self.runs)
        else:
            yield from ((point["values"], point["plan_sha256"]) for point in _done(self.index))

    def recorded(self) -> Recording | Sequence[Sample]:
        """All that was recorded, at points without charts, too."""
        if self.index is None or self.place is None:
            return self.runs[0].recording
        rest = _done(self.index)[len(self.runs) :]
        return [
            *(Sample(run.values, run.recording) for run in self.runs),
            *(Sample(point["values"], Recording.load(self.place / point["folder"])) for point in rest),
        ]


def report(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR|LAB|SCENARIO.toml..", help="Results of `run --out`, or labs and scenarios to run now."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The page. Default: report.html in the result's folder, otherwise NAME-report.html here.",
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    settings: Settings = None,
    seed: Seed = None,
    runs: Runs = None,
    live: Annotated[
        bool, typer.Option("--live", help="Put the simulator into the page, so that its runs can be changed there.")
    ] = False,
    of_labs: Annotated[
        list[str] | None,
        typer.Option("--lab", metavar="DIR", help="A lab of one's own that stored results are of, to judge them by."),
    ] = None,
) -> int:
    """Write runs as one interactive page of HTML, which needs no network.

    The page shows the network over time, rates, windows, RTTs, queues, requests, causes of lost time, and a lab's
    expectations. It shows segments if they are recorded (`run --plot`). Several results are side by side. With
    `--live`, a reader changes links, transports and events of a run, and the page simulates it.

    Examples: `polypath report results --open`, `polypath report before after --out both.html`,
    `polypath report aggregation --run mptcp`.
    """
    if live:
        require_built()
    for target in targets:
        _refuse_part(Path(target))
    folders = [Path(target) for target in targets if _is_result(target)]
    if (settings or seed is not None or runs) and len(folders) == len(targets):
        raise InputError("--set, --seed and --run are of labs and scenarios that are run now; these are results")
    known = _Known([labs.get(each) for each in of_labs or ()])
    into = _place(targets, folders, out)
    _require_free(into)
    found: list[_Found] = []
    with TemporaryDirectory(prefix="polypath-report-") as scratch:
        for target in targets:
            if _is_result(target):
                found += _in(Path(target), into.parent, known)
            else:
                known.add(labs.find(target))
                for one in _run(target, runs or (), settings or (), seed, Path(scratch)):
                    found.append(one)
                    if one.interrupted:
                        return INTERRUPTED
        page = _page(found, targets, known)
        text = _live(page, found) if live else html(build(page))
    _write(into, text)
    err.print(f"report in {into}", markup=False)
    if show and not webbrowser.open(into.resolve().as_uri()):
        warn(f"no browser was found; open {into}")
    return max(one.code for one in found)


def _live(page: Page, found: Sequence[_Found]) -> str:
    wanted = presets(page.runs, [origin for one in found for origin in one.origins])
    with progress.points("report", "runs") as told:
        return with_simulator(build(page), wanted, lambda done: told(done, len(wanted)))


class _Known:
    """Labs by name: those of one's own that the command names, then those of the package."""

    def __init__(self, own: Sequence[Lab]) -> None:
        self._own = {lab.name: lab for lab in own}

    def add(self, lab: Lab | None) -> None:
        if lab is not None and lab.own:
            self._own[lab.name] = lab

    def of(self, run: str) -> Lab | None:
        """The lab whose run this is, "LAB/RUN"; None: it is none's."""
        name = run.partition("/")[0]
        return self._own.get(name) or (labs.get(name) if name in labs.names() else None)


def _refuse_part(path: Path) -> None:
    """Raises InputError for a file of a result, which a shell's `results/*` names beside its runs."""
    if path.is_file() and path.suffix != ".toml":
        for kind in (folder.RUN, folder.SWEEP):
            if path.name in (folder.files(path.parent, kind) or ()):
                raise InputError(f"{path} is a file of a result; name its folder, {path.parent}")


def _is_result(target: str) -> bool:
    """Whether it is a folder to be read; a lab's name is the lab unless a folder of that name holds results."""
    path = Path(target)
    if not path.is_dir() or folder_of(path) is not None:
        return False
    return target not in labs.names() or any(stored.found(path))


def _place(targets: Sequence[str], folders: Sequence[Path], out: Path | None) -> Path:
    if out is not None:
        if out.is_dir():
            raise InputError(f"--out {out} is a folder; name a file")
        return out
    if len(targets) == 1:
        name = Path(targets[0]).stem
        return folders[0] / layout.REPORT if folders else Path(f"{name}-{layout.REPORT}")
    return Path(layout.REPORT)


def _require_free(path: Path) -> None:
    """Raises InputError if the file exists and is not an unchanged report page."""
    if path.is_symlink() or (path.exists() and not is_unchanged(path)):
        raise InputError(f"{path} exists and is not an unchanged report; name another file with --out, or remove it")


def _write(path: Path, text: str) -> None:
    """A page in a result's folder becomes part of the result."""
    if path.name == layout.REPORT:
        for kind in (folder.RUN, folder.SWEEP):
            if folder.files(path.parent, kind) is not None:
                with folder.claim(path.parent, kind) as held:
                    write_text(held.stage() / layout.REPORT, text)
                    held.commit(keep=True)
                return
    write_text(path, text)


def _in(directory: Path, page: Path, known: _Known) -> list[_Found]:
    """The runs and sweeps in a folder. Raises OutputError where there is none."""
    markers = list(stored.found(directory))
    if not markers:
        raise OutputError(f"no results in {directory}; name a folder that `polypath run --out` wrote")
    found = []
    for path, kind in markers:
        if kind is folder.RUN:
            recording = Recording.load(path)
            run = Labelled(recording.metadata.scenario, recording, folder=_link(path, page))
            found.append(_Found(run.name, [run], path, link=run.folder, origins=[Origin(str(path))]))
        else:
            found.append(_sweep(path, _link(path, page)))
    return _in_order(found, known)


def _in_order(found: list[_Found], known: _Known) -> list[_Found]:
    """Runs of one lab in the lab's order."""
    lab = known.of(found[0].name)
    if lab is None or {one.name.partition("/")[0] for one in found} != {lab.name}:
        return found
    order = {run.name: number for number, run in enumerate(lab.runs)}
    return sorted(found, key=lambda one: order.get(one.name.partition("/")[2], len(order)))


def _sweep(path: Path, link: str | None) -> _Found:
    """A stored sweep."""
    try:
        index = reading.data(folder.located(path, layout.INDEX))
        points = _done(index)
        places = {each["folder"]: stored.point(path, each["folder"]) for each in index["points"]}
        name = str(index["name"])
    except OutputError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OutputError(f"no sweep in {path}: {layout.INDEX} cannot be read") from error
    runs: list[Labelled] = []
    for point in points[:MOST_RUNS]:
        recording = Recording.load(places[point["folder"]])
        title = of_place(point["values"])
        own = None if link is None else f"{link}{quote(point['folder'])}/"
        runs.append(Labelled(f"{name} ({title})", recording, folder=own, values=point["values"]))
    origins = [Origin(str(path), settings=_settings(run.values)) for run in runs]
    return _Found(name, runs, path, index, link, origins=origins)


def _settings(values: Mapping[str, str]) -> list[str]:
    """What `--set` takes for a point of a sweep."""
    return [f"{path}={label}" for axis, label in values.items() for path in axis.split(", ")]


def _done(index: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The points of a sweep that have a result."""
    return [point for point in index["points"] if point["state"] == "done"]


def _link(path: Path, page: Path) -> str:
    """A folder as a page in another one names it."""
    return quote(Path(os.path.relpath(path.resolve(), page.resolve())).as_posix()) + "/"


def _run(
    target: str, chosen: Sequence[str], settings: Sequence[str], seed: int | None, scratch: Path
) -> Iterator[_Found]:
    """Runs a lab's or a scenario's runs, with their segments, and its sweeps, into folders below `scratch`."""
    for job in jobs.of_target(target, chosen, settings, seed):
        one = None if job.folder == "." else job.folder
        given = [*settings, *([] if seed is None else [f"seed={seed}"])]
        if job.varies:
            swept = _swept(job, Path(mkdtemp(dir=scratch)))
            origins = [Origin(target, one, [*settings, *_settings(run.values)]) for run in swept.runs]
            yield replace(swept, origins=origins)
            continue
        with progress.shown(job.name) as callback:
            recording = engines.get("sim").run(
                job.plan, Options(segments=True, account=account.is_read(job.plan.view)), callback
            )
        recording = replace(recording, metadata=replace(recording.metadata, scenario=job.name))
        yield _Found(job.name, [Labelled(job.name, recording)], origins=[Origin(target, one, given)])


def _swept(job: jobs.Job, place: Path) -> _Found:
    """Runs a sweep; with segments where the page shows them. Raises InputError where every point fails."""
    wanted = Sweep(job.name, job.scenario, job.points, place, job.inputs)
    with progress.points(job.name) as callback:
        (result,) = run_sweeps(
            [wanted],
            figures=("*",) if len(job.points) <= FINE_RUNS else (),
            save=output.save,
            versions={"polypath": _core.version()},
            progress=callback,
        )
    code = sweeps.tell_of_failures(result)
    if len(result.failures) == len(result.places):
        raise InputError(f"{job.name}: no point has a result")
    sweeps.advise(result)
    return replace(_sweep(place, None), code=code)


def _page(found: Sequence[_Found], targets: Sequence[str], known: _Known) -> Page:
    found = _titled(found)
    runs: list[Labelled] = []
    tables = []
    shown: dict[str, Lab] = {}
    for one in found:
        of = known.of(one.name)
        lab = None if of is None else of.name
        if of is not None:
            shown[of.name] = of
        first = len(runs)
        runs += [replace(run, name=one.title + run.name.removeprefix(one.name), lab=lab) for run in one.runs]
        if one.index is not None and one.place is not None:
            tables.append(_table(one, one.place, one.index, first))
    described = [
        _described(lab, [one for one in found if one.name.partition("/")[0] == name]) for name, lab in shown.items()
    ]
    title = described[0].title if len(described) == 1 else ", ".join(dict.fromkeys(Path(each).name for each in targets))
    if not described:
        names = [one.name for one in found]
        title = _common(names) or (names[0] if len(names) == 1 else title)
    return Page(title, _core.version(), runs, described, tables)


def _titled(found: Sequence[_Found]) -> list[_Found]:
    """With what each is called: by its folder where names do not tell them apart."""
    if len({one.name for one in found}) == len(found):
        return [replace(one, title=one.name) for one in found]
    folders = iter(of_folders([one.place for one in found if one.place is not None and one.link is not None]))
    return [replace(one, title=one.name if one.link is None else next(folders)) for one in found]


def _common(names: Sequence[str]) -> str:
    """What runs have in common of their names, such as the sweep that they are points of; empty: nothing."""
    short = told_apart(names)
    return names[0].partition(" (")[0].partition("/")[0] if short != list(names) else ""


def _table(one: _Found, place: Path, index: Mapping[str, Any], first: int) -> SweepOf:
    """A sweep whose runs have the numbers from `first` on."""
    try:
        statistics = reading.table(folder.located(place, layout.STATISTICS)).to_dicts()
    except FileNotFoundError:
        statistics = []  # the sweep was interrupted before its end
    axes = [axis["name"] for axis in index["axes"] if axis["name"] != SEED]
    numbers: list[int | None] = []
    number = first
    for point in index["points"]:
        there = point["state"] == "done" and number < first + len(one.runs)
        numbers.append(number if there else None)
        number += there
    return SweepOf(one.title, index, statistics, numbers, one.link, _compared(place, axes))


def _compared(place: Path, axes: Sequence[str]) -> list[dict[str, Any]]:
    """What `compare --by` found, as it prints it; nothing of a sweep that was not compared."""
    if layout.PAIRED not in (folder.files(place, folder.SWEEP) or {}):
        return []
    try:
        found = reading.table(folder.located(place, layout.PAIRED))
    except FileNotFoundError:
        return []
    return [
        {
            "connection": row["connection"],
            "measure": row["measure"],
            "base": row["base"],
            "place": {axis: row[axis] for axis in axes if axis in row},
            **paired.told(row),
        }
        for row in found.iter_rows(named=True)
    ]


def _described(lab: Lab, found: Sequence[_Found]) -> LabOf:
    """A lab with those of its expectations whose runs are there, with all of their points."""
    several = len(lab.runs) > 1
    there: dict[str, _Found] = {}
    again: list[str] = []
    own = {run.name for run in lab.runs}
    for one in found:
        name = one.name.partition("/")[2] if several else lab.runs[0].name
        if name in own and there.setdefault(name, one) is not one:
            again.append(one.title)
    needed = [{each.run, (each.relative_to or {}).get("run", each.run)} for each in lab.expectations]
    wanted = {name for names in needed if names <= there.keys() for name in names}
    recorded = {name: one.recorded() for name, one in there.items() if name in wanted and one.whole}
    rows = [
        evaluate(expectation, recorded)
        for expectation, names in zip(lab.expectations, needed, strict=True)
        if names <= recorded.keys()
    ]
    known = causes(lab)
    judged = [Judged(row, _verdict(lab, row, known), known.get(row.name, "")) for row in rows]
    left = sum(not names <= there.keys() for names in needed)
    partial = len(needed) - left - len(rows)
    notes = []
    if changed := _changed(lab, found):
        notes.append(f"Not run as the lab has it: {', '.join(changed)}. The bounds are those of the lab as it is.")
    if again:
        notes.append(f"Of several results of one run the first is measured, and not {', '.join(again)}.")
    if left:
        notes.append(f"{left} of {len(needed)} expectations are of runs that are not here.")
    if partial:
        notes.append(f"{partial} of {len(needed)} are of sweeps some of whose points have no result.")
    return LabOf(lab.name, lab.title, lab.question, lab.origin, judged, " ".join(notes))


def _verdict(lab: Lab, row: Row, known: Mapping[str, str]) -> str:
    if row.ok:
        return "stale" if is_stale(lab, row) else "ok"
    return "known" if known.get(row.name) else "miss"


def _changed(lab: Lab, found: Sequence[_Found]) -> list[str]:
    """The runs whose plans are not the lab's own."""
    plans = {
        (job.name, tuple(point.values.items())): point.plan_sha256
        for job in jobs.of_lab(lab, (), (), None)
        for point in job.points
    }
    return [
        one.title
        for one in found
        if any(plans.get((one.name, tuple(values.items()))) != plan for values, plan in one.plans())
    ]
