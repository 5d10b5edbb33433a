"""The display of scenarios, recordings and sweeps in a notebook: a small table and a figure.

Figures are pictures of their own (data URIs): in one page, parts of an SVG would find those of another by their names.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from typing import Final

from matplotlib.figure import Figure

from polypath import _core, plots
from polypath.measures import MEASURES, REGISTRY, Measure
from polypath.measures.measure import PART
from polypath.plots import Look
from polypath.report import Labelled, Page, build
from polypath.report import html as page_html
from polypath.results import MetricError, Recording, metrics
from polypath.results.axes import SEED
from polypath.results.report_page import Report
from polypath.scenario import Plan, Scenario
from polypath.scenario.picture import describe_topology
from polypath.sweeps import Result, Sweep

#: Rows that are shown of a table.
_MOST_ROWS: Final = 20
#: From here on a number is written without decimals.
_WHOLE: Final = 1000
#: What is shown of a subflow.
_OF_SUBFLOWS: Final = tuple(REGISTRY[name] for name in ("subflow_goodput", "subflow_share", "resent"))
_LOOK: Final = Look(size=(7.0, 2.6), font_size=9, titles=False)
_CELL: Final = "text-align:left;padding:0.1em 0.8em 0.1em 0"


def report(recording: Recording) -> Report:
    """The report page of one run (docs/report.md)."""
    name = recording.metadata.scenario
    return Report(page_html(build(Page(name, _core.version(), [Labelled(name, recording)], [], []))))


def of_recording(recording: Recording) -> str:
    """Its connections and subflows, and the rate over time."""
    rows: list[tuple[str, ...]] = []
    for of in metrics.connections(recording):
        goodput = metrics.goodput(recording, of)
        rate = "" if goodput is None else f"{goodput / 1e6:.4g}"
        rows.append((of.name, of.transport, rate, "", ""))
        for lane in plots.lanes(recording, of) if of.id is not None else ():
            own = (_cell(each, each.value(recording, of, lane.subflow)) for each in _OF_SUBFLOWS)
            rows.append((f"\u2003{lane.label}", "", *own))
    metadata = recording.metadata
    what = f"seed {metadata.seed}, engine {metadata.engine}, {metadata.end_ns / metrics.SECOND:g} s simulated"
    ended = ", interrupted" if metadata.interrupted else ""
    table = _table(("connection", "transport", *(each.heading for each in _OF_SUBFLOWS)), rows)
    with plots.style(_LOOK):
        figure = plots.figure(recording, "rate", _LOOK)
        return _titled(metadata.scenario, what + ended) + table + _picture(figure)


def _cell(measure: Measure, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.{measure.digits}%}" if measure.unit is PART else f"{value:.4g}"


def of_result(result: Result) -> str:
    """The means over seeds with their intervals, and the goodput as a curve."""
    axes = [axis.name for axis in result.axes if axis.name != SEED]
    shown = [name for name in MEASURES if name in plots.measures(result)][:4] or ["goodput_mbps"]
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for row in result.statistics.iter_rows(named=True):
        place = (*(str(row[name]) for name in axes), row["connection"])
        rows.setdefault(place, {})[row["measure"]] = _estimate(row["mean"], row["low"], row["high"])
    titles = [f"{MEASURES[name].title} ({MEASURES[name].unit.data})" for name in shown]
    cells = [(*place, *(found.get(name, "") for name in shown)) for place, found in rows.items()]
    what = f"{result.points.height} rows, {len(result.failures)} points failed"
    with plots.style(_LOOK):
        try:
            figure = plots.curve(result).figure
        except MetricError:
            figure = None
        table = _table((*axes, "connection", *titles), cells)
        return _titled(result.name, what) + table + _picture(figure if isinstance(figure, Figure) else None)


def of_scenario(scenario: Scenario) -> str:
    """Its network in text, its applications, and the axes that it varies."""
    view = _plan(scenario).view
    nodes = view["nodes"]
    rows: list[tuple[str, ...]] = [
        (
            each["name"],
            each["work"]["kind"],
            each["transport"],
            f"{nodes[each['client']]['name']} \u2192 {nodes[each['server']]['name']}",
            f"{each['start_ns'] / metrics.SECOND:g} s",
        )
        for each in view["applications"]
    ]
    rows += [
        (
            each["name"],
            "command",
            each["transport"],
            nodes[each["host"]]["name"],
            f"{each['start_ns'] / metrics.SECOND:g} s",
        )
        for each in view.get("programs", ())
    ]
    varied = [
        (axis.name, ", ".join(axis.labels[:10]) + (", .." if len(axis.labels) > 10 else "")) for axis in scenario.axes
    ]
    return "".join(
        (
            _titled(scenario.name, scenario.description or ""),
            f"<pre>{html.escape(describe_topology(scenario))}</pre>",
            _table(("application", "kind", "transport", "from, to", "start"), rows),
            _table(("axis", "values"), varied) if varied else "",
        )
    )


def of_sweep(sweep: Sweep) -> str:
    """Its points by their labels."""
    names = list(sweep.points[0].values) if sweep.points else []
    rows = [tuple(point.values[name] for name in names) for point in sweep.points]
    where = "" if sweep.directory is None else f", in {sweep.directory}"
    return _titled(sweep.name, f"{len(rows)} points{where}") + (_table(names, rows) if names else "")


def _plan(scenario: Scenario) -> Plan:
    """The plan; for a scenario that varies settings, the plan of its first point."""
    return (scenario.at([axis.values[0] for axis in scenario.axes]) if scenario.axes else scenario).plan()


def _estimate(mean: float | None, low: float | None, high: float | None) -> str:
    if mean is None:
        return "unfinished"
    if low is None or high is None:
        return _number(mean)
    return f"{_number(mean)} ({_number(low)} to {_number(high)})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= _WHOLE else f"{value:.4g}"


def _titled(name: str, what: str) -> str:
    return f"<p><b>{html.escape(name)}</b> {html.escape(what)}</p>"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th style="{_CELL}">{html.escape(each)}</th>' for each in headings)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{html.escape(cell)}</td>' for cell in row) + "</tr>"
        for row in rows[:_MOST_ROWS]
    )
    rest = f"<p>{_MOST_ROWS} of {len(rows)} rows</p>" if len(rows) > _MOST_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _picture(figure: Figure | None) -> str:
    """An SVG; nothing where there is no figure."""
    if figure is None:
        return ""
    text = io.BytesIO()
    plots.write(figure, text, "svg")
    data = base64.b64encode(text.getvalue()).decode("ascii")
    return f'<img alt="" src="data:image/svg+xml;base64,{data}">'
