"""A page's data: runs, sweeps, labs. Text from people is unescaped; the page shows it as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from polypath.labs.expectations import Row
from polypath.measures import MEASURES
from polypath.measures.summary import summary
from polypath.report import columns, listing, network, series
from polypath.results import Recording, account, causes, metrics, notes, other_tables, reasons, uplinks
from polypath.results.axes import SEED
from polypath.results.changes import changes
from polypath.results.metrics import Connection, Subflow
from polypath.results.names import told_apart
from polypath.results.palette import PALETTE

FORMAT: Final = 1
#: Connections of a run that have charts, and events that are listed.
MOST_CONNECTIONS: Final = 40
MOST_EVENTS: Final = 4000
#: Runs of a page that have charts of full resolution.
FINE_RUNS: Final = 12


@dataclass(frozen=True)
class Labelled:
    """A run on the page."""

    name: str
    recording: Recording
    lab: str | None = None
    #: Where its folder is, from the page; None: not saved.
    folder: str | None = None
    #: Of a sweep's point its label on each axis.
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Judged:
    """An expectation, and what was made of it: ok, known, stale or miss."""

    row: Row
    verdict: str
    cause: str


@dataclass(frozen=True)
class LabOf:
    """What a lab asks, and what is expected of it."""

    name: str
    title: str
    question: str
    source: str
    judged: Sequence[Judged]
    #: What a reader must know of the expectations.
    note: str = ""


@dataclass(frozen=True)
class SweepOf:
    """A sweep: its index, its table over seeds, and the number on the page of each point's run (None: not there)."""

    name: str
    index: Mapping[str, Any]
    statistics: Sequence[Mapping[str, Any]]
    runs: Sequence[int | None]
    #: Where its folder is, from the page.
    folder: str | None = None
    #: Differences within seeds as they are printed, if it was compared: connection, measure, base, place (the label on
    #: each axis but the seed), figure, difference, p, verdict.
    compared: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Page:
    """What a page shows."""

    title: str
    version: str
    runs: Sequence[Labelled]
    labs: Sequence[LabOf] = ()
    sweeps: Sequence[SweepOf] = ()


def build(page: Page) -> dict[str, Any]:
    """The page as data for JSON."""
    paths: dict[str, int] = {}
    coarse = len(page.runs) > FINE_RUNS
    short = told_apart([run.name for run in page.runs])
    return {
        "format": FORMAT,
        "title": page.title,
        "version": page.version,
        "palette": list(PALETTE),
        "labs": [_lab(each) for each in page.labs],
        "runs": [
            _run(each, name, paths, coarse, listing.MOST // len(page.runs))
            for each, name in zip(page.runs, short, strict=True)
        ],
        "sweeps": [_sweep(each) for each in page.sweeps],
    }


def _lab(lab: LabOf) -> dict[str, Any]:
    return {
        "name": lab.name,
        "title": lab.title,
        "question": lab.question,
        "source": lab.source,
        "note": lab.note,
        "expectations": [
            {
                "name": each.row.name,
                "published": each.row.published,
                "bound": each.row.bound,
                "measured": each.row.measured,
                "verdict": each.verdict,
                "cause": each.cause,
            }
            for each in lab.judged
        ],
    }


def _run(run: Labelled, short: str, paths: dict[str, int], coarse: bool, segments: int) -> dict[str, Any]:
    """`segments`: how many it has one by one, with their headers, at most."""
    recording, made = run.recording, run.recording.metadata
    figures = summary(recording)
    connections = metrics.connections(recording)
    shown = {id(each) for each in sorted(connections, key=lambda each: -each.bytes)[:MOST_CONNECTIONS]}
    data: dict[str, Any] = {"connections": {}, "links": metrics.link_courses(recording)}
    described = []
    for path in uplinks.order(recording):
        paths.setdefault(path, len(paths))
    for number, each in enumerate(connections):
        lanes = metrics.subflows(recording, each)
        del figures["connections"][number]["goodput_series"]
        figures["connections"][number]["requests"].pop("delay_s")
        if id(each) in shown:
            charts = series.of_connection(recording, each, coarse)
            listed = None if coarse else listing.of_connection(recording, each, segments // len(shown))
            data["connections"][f"{number}"] = charts if listed is None else {**charts, "segments": listed}
        noted = list(notes.of(recording, each, lanes))
        described.append({"notes": noted, **_connection(recording, each, lanes, paths, charted=id(each) in shown)})
    if (queues := metrics.queues(recording, coarse=coarse)) is not None:
        data["queues"] = queues
    events = _events(recording)
    return {
        "name": run.name,
        "short": short,
        "scenario": made.scenario,
        "lab": run.lab,
        "folder": run.folder,
        "values": dict(run.values),
        "seed": made.seed,
        "engine": made.engine,
        "end_s": made.end_ns / 1e9,
        "interrupted": made.interrupted,
        "plan_sha256": made.plan_sha256,
        "recording_sha256": made.recording_sha256,
        "versions": dict(made.versions),
        "summary": figures,
        "connections": described,
        "further": [asdict(each) for each in other_tables.tables(recording)],
        "network": network.drawn(recording, paths),
        "changes": network.changes(recording),
        "marks": [{"t": each.time_s, "text": each.text} for each in changes(recording)],
        "events": events[:MOST_EVENTS],
        "events_of": len(events),
        "data": columns.deflated(data),
    }


def _connection(
    recording: Recording, of: Connection, lanes: Sequence[Subflow], paths: dict[str, int], *, charted: bool
) -> dict[str, Any]:
    """`path` is the number of the path among all of the page, which has a colour; `shade` counts on it."""
    on: dict[str, int] = {}
    subflows = []
    for lane in lanes:
        path = uplinks.name(recording.plan, of, lane.interface)
        shade = on.get(path, 0)
        on[path] = shade + 1
        subflows.append(
            {"id": lane.id, "label": lane.label, "path": paths.setdefault(path, len(paths)), "shade": shade}
        )
    return {
        "id": of.id,
        "lane": of.lane,
        "receiver": of.receiver,
        "charted": charted,
        "subflows": subflows,
        "account": _account(recording, of) if charted else None,
        "causes": [
            {
                "kind": each.kind,
                "time_s": each.time_ns / 1e9,
                "sentence": each.sentence,
                "at_s": None if each.at_ns is None else each.at_ns / 1e9,
            }
            for each in causes.of_connection(recording, of)
        ]
        if charted
        else [],
    }


def _account(recording: Recording, of: Connection) -> dict[str, Any] | None:
    kept = account.of_connection(recording, of)
    if kept is None:
        return None
    return {
        "capacity_bytes": kept.capacity_bytes,
        "delivered_bytes": kept.delivered_bytes,
        "duration_s": (kept.until_ns - kept.since_ns) / 1e9,
        "charges": [
            {
                "title": reasons.title(each),
                "path": each.path,
                "bytes": each.bytes,
                "sentence": reasons.sentence(each),
                "at_s": each.worst_ns / 1e9,
            }
            for each in kept.charges
        ],
    }


def _events(recording: Recording) -> list[dict[str, Any]]:
    columns = ("time_ns", "kind", "host", "connection", "subflow", "link", "value", "detail")
    return [
        {
            "t": time / 1e9,
            "kind": kind,
            "host": host,
            "connection": connection,
            "subflow": subflow,
            "link": link,
            "value": value,
            "detail": detail,
        }
        for time, kind, host, connection, subflow, link, value, detail in recording.table("events")
        .select(columns)
        .iter_rows()
    ]


def _sweep(sweep: SweepOf) -> dict[str, Any]:
    axes = [axis for axis in sweep.index["axes"] if axis["name"] != SEED]
    return {
        "name": sweep.name,
        "folder": sweep.folder,
        "axes": [{"name": axis["name"], "labels": axis["labels"], "numbers": axis["numbers"]} for axis in axes],
        "measures": [
            {"name": name, "title": each.title, "heading": each.heading, "printed": each.printed}
            for name, each in MEASURES.items()
            if any(row["measure"] == name and (row["mean"] or row["unfinished"]) for row in sweep.statistics)
        ],
        "statistics": [
            {
                "place": [row[axis["name"]] for axis in axes],
                **{
                    key: row[key]
                    for key in ("connection", "measure", "n", "unfinished", "mean", "median", "low", "high")
                },
                "method": row["method"],
            }
            for row in sweep.statistics
        ],
        "compared": [dict(each) for each in sweep.compared],
        "points": [
            {
                "place": [point["values"][axis["name"]] for axis in axes],
                "seed": point["seed"],
                "folder": point["folder"],
                "state": point["state"],
                "failure": point.get("failure"),
                "run": run,
            }
            for point, run in zip(sweep.index["points"], sweep.runs, strict=True)
        ],
    }
