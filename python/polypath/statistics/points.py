"""The points of a sweep as one long table: the place of each, and the figures of its connections.

points.parquet has a row per connection of each point. docs/sweeps.md describes the columns:

- One column per axis has the label, as the scenario writes it. If the labels are numbers or quantities, a second column
  has them with the unit in its name, such as "defaults.receive_buffer_bytes".
- connection, transport, bytes and subflows are as in summary.json; so are the columns of measures
  (`polypath.measures.MEASURES`).
- application is its kind, as the scenario writes it: "bulk", "video".
- finished says whether the application completed its work; null if its work has no end.
- requests and unanswered are the requests sent, and those without an answer; null for applications that send none.
- delay_median_s, delay_p95_s and delay_p99_s are of all requests. One without an answer is longer than any. Each
  needs enough requests (`metrics.FEWEST`), and is null if it falls on an unanswered one.
- Flows that arrive have no rows of their own. Their group has a row for all of them, and one for each class of sizes.
  Its connection is "short" or "short, up to 100 kB", and its application is "flows".
- flows and flows_unfinished are their numbers.
- flow_mean_s, flow_median_s, flow_p95_s and flow_p99_s are of their completion times, flow_times_s[] has each. A
  percentile needs enough flows (`metrics.FEWEST`), and is null if it falls on an unfinished one.
- Figures of the whole run, such as cost, are the same for each of its connections.
- interface[], subflow_share[] and subflow_goodput_mbps[] are per subflow, by id.
- links_mbps is the capacity of the links of its subflows together, and rtt_s the longest propagation RTT among them.
- rule_of_thumb_bytes is 2 x sum of the rates x longest RTT (`polypath.results.paths`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from polypath.measures import MEASURES, Measure
from polypath.measures.measure import Of
from polypath.plan.routing import Routing, address_of
from polypath.registry import traffic
from polypath.results import paths
from polypath.results.axes import Axis

if TYPE_CHECKING:
    from polypath.plan.data import PlanData
    from polypath.plan.types import Application

FLOWS: Final = "flows"
"""What the column `application` has for a group of flows that arrive."""

_DELAYS: Final = ("delay_median_s", "delay_p95_s", "delay_p99_s", "unanswered")
_SEEN: Final[Mapping[str, tuple[str, ...]]] = {
    kind: tuple(name for name, each in MEASURES.items() if each.of == kind) for kind in ("video", "page")
}
"""What a person at the other end notices, by kind of application."""


def telling(application: Application) -> list[str]:
    """The measures that say something of an application: what is seen of it, when it was done, how much it moved."""
    work = application["work"]
    if seen := _SEEN.get(work["kind"]):
        return list(seen)
    if (delays := traffic(work["kind"]).delays) != "none":
        once = work["kind"] == "fetch" and work["count"] == 1
        counted = work.get("count") is not None and delays != "echoes"
        return [*(["completion_s"] if counted else []), *([] if once else _DELAYS)]
    return ["completion_s"] if work.get("size_bytes") is not None else ["goodput_mbps"]


def measures_of(
    points: pl.DataFrame, applications: Iterable[Application], chosen: Sequence[str] = ()
) -> dict[str, Sequence[str]]:
    """The measures to compare of each connection of a sweep: those chosen, or those that say something of it."""
    by_name = {each["name"]: each for each in applications}
    found: dict[str, Sequence[str]] = {}
    for (name, kind), group in points.group_by("connection", "application", maintain_order=True):
        if chosen:
            found[str(name)] = chosen
        else:
            of_all = ("flow_mean_s", "flow_p95_s", "flow_p99_s") if kind == FLOWS else telling(by_name[str(name)])
            found[str(name)] = [measure for measure in of_all if supported(MEASURES[measure], group)]
    return found


def supported(measure: Measure, points: pl.DataFrame) -> bool:
    """Whether some of a connection's points have enough of what a measure is of."""
    return measure.needs is None or bool((points[measure.needs[0]] >= measure.needs[1]).any())


#: Of columns of figures, by unit; the others are numbers with a fraction.
_WHOLE: Final[Mapping[str, Any]] = {"bytes": pl.UInt64, "requests": pl.UInt32}


def _columns(*of: Of) -> dict[str, Any]:
    return {name: _WHOLE.get(each.unit.data, pl.Float64) for name, each in MEASURES.items() if each.of in of}


COLUMNS: Final[Mapping[str, Any]] = {
    "connection": pl.String,
    "application": pl.String,
    "transport": pl.String,
    "goodput_mbps": pl.Float64,
    "completion_s": pl.Float64,
    "bytes": pl.UInt64,
    "subflows": pl.UInt32,
    "retransmitted_bytes": pl.UInt64,
    "reinjected_bytes": pl.UInt64,
    "reassembly_max_bytes": pl.UInt64,
    "finished": pl.Boolean,
    "requests": pl.UInt32,
    "unanswered": pl.UInt32,
    **_columns("requests"),
    "flows": pl.UInt32,
    "flows_unfinished": pl.UInt32,
    **_columns("flows"),
    "flow_times_s": pl.List(pl.Float64),
    **_columns("connection", "video", "page", "run"),
    "interface": pl.List(pl.String),
    "subflow_share": pl.List(pl.Float64),
    "subflow_goodput_mbps": pl.List(pl.Float64),
    "links_mbps": pl.Float64,
    "rtt_s": pl.Float64,
    "rule_of_thumb_bytes": pl.Float64,
}


def rows(summary: Mapping[str, Any], plan: PlanData) -> list[dict[str, Any]]:
    """A row for each connection of a run, without its place, from the run's summary and plan."""
    applications = {each["name"]: each for each in plan["applications"]}
    routing = Routing(plan)
    paid = _paid(summary)
    return [
        {**_row(connection, application), **paid, **_by_the_plan(connection, plan, application, routing)}
        for connection in summary["connections"]
        for application in [applications[connection["name"]]]
    ]


def _paid(summary: Mapping[str, Any]) -> dict[str, Any]:
    return _kept(summary, {}, "run")


def of_point(summary: Mapping[str, Any], plan: PlanData) -> list[dict[str, Any]]:
    """The rows of a sweep's point: as `rows`, but flows that arrive have those of their group."""
    arrived = {each["name"]: each for each in plan["applications"] if arrives(each)}
    if not arrived:
        return rows(summary, plan)
    others = [each for each in summary["connections"] if each["name"] not in arrived]
    transports = {each["group"]: each["transport"] for each in arrived.values()}
    groups = [each for each in summary.get("groups", ()) if each["name"] in transports]
    paid = _paid(summary)
    flows = [{**_of_group(each, transports[each["name"]]), **paid} for each in groups]
    return rows({**summary, "connections": others}, plan) + flows


def arrives(application: Application) -> bool:
    """Whether it is one of many flows that began at random, whose sizes and number another seed draws again."""
    group, _, number = str(application["name"]).rpartition("-")
    return group == application.get("group") and number.isdecimal()


def _of_group(group: Mapping[str, Any], transport: str) -> dict[str, Any]:
    name, flows = group["name"], group["flows"]
    return {
        **dict.fromkeys(COLUMNS),
        "connection": name if group["sizes"] == "all" else f"{name}, {group['sizes']}",
        "application": FLOWS,
        "transport": transport,
        "flows": flows,
        "flows_unfinished": group["unfinished"],
        **_kept(group, {"flows": flows}, "flows"),
        "flow_times_s": group["times_s"],
        "interface": [],
        "subflow_share": [],
        "subflow_goodput_mbps": [],
    }


def _kept(said: Mapping[str, Any], counts: Mapping[str, int], *of: Of) -> dict[str, Any]:
    """The columns of these figures from the summary of what they are of; None of what there is too little of."""
    return {
        name: _at(said, each.kept) if each.has_enough(counts) else None
        for name, each in MEASURES.items()
        if each.of in of
    }


def _at(said: Any, place: Sequence[str]) -> Any:
    """A figure at its place in a summary; of several subflows the sum of those that are counted."""
    for number, key in enumerate(place):
        if isinstance(said, list):
            return _sum(_at(each, place[number:]) for each in said)
        said = said.get(key)
        if said is None:
            return None
    return said


def _by_the_plan(
    connection: Mapping[str, Any], plan: PlanData, application: Application, routing: Routing
) -> dict[str, float | None]:
    found = routing.of_subflows(
        (address_of(subflow["source"]), address_of(subflow["destination"]))
        for subflow in connection["subflows"]
        if subflow["established_s"] is not None
    )
    rate = paths.rate_bps(plan, found, reverse=paths.is_reverse(application))
    rtt = max((path.rtt_s for path in found), default=None)
    return {
        "links_mbps": None if rate is None else rate / 1e6,
        "rtt_s": rtt,
        "rule_of_thumb_bytes": None if rate is None or rtt is None else paths.rule_of_thumb_bytes(rate, rtt),
    }


def _row(connection: Mapping[str, Any], application: Application) -> dict[str, Any]:
    subflows = connection["subflows"]
    kind = application["work"]["kind"]
    requests, asks = connection["requests"], traffic(kind).delays != "none"
    counted = requests["count"] if asks else None
    figures = _kept(connection, {"requests": requests["count"]}, "connection", "requests", "video", "page")
    return {
        **dict.fromkeys(COLUMNS),
        "connection": connection["name"],
        "application": kind,
        "transport": connection["transport"],
        "bytes": connection["bytes"],
        "subflows": sum(subflow["established_s"] is not None for subflow in subflows),
        "finished": connection["finished"],
        **figures,
        "requests": counted,
        "unanswered": requests["unanswered"] if asks else None,
        "interface": [subflow["interface"] for subflow in subflows],
        "subflow_share": [subflow["share"] for subflow in subflows],
        "subflow_goodput_mbps": [subflow["goodput_mbps"] for subflow in subflows],
    }


def _sum(values: Iterable[int | None]) -> int | None:
    """None where an engine does not count."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def table(axes: Sequence[Axis], found: Iterable[tuple[Mapping[str, str], Sequence[Mapping[str, Any]]]]) -> pl.DataFrame:
    """The table of the points given, each with its place and its rows."""
    collected, places = Rows(), []
    for number, (values, own) in enumerate(found):
        places.append(values)
        collected.put(number, own)
    return collected.table(axes, places, range(len(places)))


class Rows:
    """The rows of points by number, most of them as columns: a sweep of 100,000 points has as many at least."""

    _AT_ONCE: Final = 1024

    def __init__(self) -> None:
        self._new: list[dict[str, Any]] = []
        self._frames: list[pl.DataFrame] = []

    def put(self, number: int, rows: Iterable[Mapping[str, Any]]) -> None:
        """Those of a point, once."""
        self._new += [{_NUMBER: number, **row} for row in rows]
        if len(self._new) >= self._AT_ONCE:
            self._pack()

    def table(self, axes: Sequence[Axis], places: Sequence[Mapping[str, str]], numbers: Sequence[int]) -> pl.DataFrame:
        """The table of these points, in this order: where each lies, and its number here."""
        self._pack()
        own = pl.concat(self._frames) if self._frames else pl.DataFrame(schema={_NUMBER: pl.UInt32, **COLUMNS})
        self._frames = [own]
        order = pl.DataFrame(
            {_NUMBER: pl.Series(numbers, dtype=pl.UInt32), _PLACE: pl.Series(range(len(numbers)), dtype=pl.UInt32)}
        )
        rows = own.with_row_index(_INDEX).join(order, on=_NUMBER, how="inner").sort(_PLACE, _INDEX)
        return pl.DataFrame([*_axis_columns(axes, places, rows[_PLACE]), *rows.select(*COLUMNS).get_columns()])

    def _pack(self) -> None:
        if self._new:
            self._frames.append(pl.DataFrame(self._new, schema={_NUMBER: pl.UInt32, **COLUMNS}))
            self._new = []


_NUMBER: Final = " number"
_PLACE: Final = " place"
_INDEX: Final = " index"


def _axis_columns(axes: Sequence[Axis], places: Sequence[Mapping[str, str]], rows: pl.Series) -> list[pl.Series]:
    """Each axis's labels and numbers, for the rows of these places."""
    found = []
    for axis in axes:
        labels = [values[axis.name] for values in places]
        found.append(pl.Series(axis.name, labels, dtype=pl.String).gather(rows))
        if axis.numeric is not None and axis.numbers is not None:
            of = dict(zip(reversed(axis.labels), reversed(axis.numbers), strict=True))
            found.append(pl.Series(axis.numeric, [of[label] for label in labels], dtype=pl.Float64).gather(rows))
    return found
