"""Figures of one or several runs: kinds of plots as panels, arranged and titled.

Kinds that share their horizontal axis stand one above the other, others side by side; each connection has panels of its
own. Several runs go on the same axes, with their names in the legend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from polypath.plots import arrangement
from polypath.plots.base import Kind, title
from polypath.plots.changes import mark
from polypath.plots.files import Picture
from polypath.plots.smoothing import interval_s
from polypath.plots.style import FONT, Look
from polypath.results import MetricError, Recording, metrics
from polypath.results.changes import changes

#: Panels of a figure; connections beyond are not drawn, which it says.
MOST_PANELS: Final = 24
_WIDTH, _WIDE, _HEIGHT, _LEAST_HEIGHT = 9.0, 12.0, 2.1, 3.2

Runs = Mapping[str, Recording]


@dataclass(frozen=True)
class _Panel:
    """A place in the grid, and what goes there."""

    kind: Kind
    row: int
    column: int
    connection: str | None = None
    #: Of kinds by subflow.
    subflow: int | None = None
    #: Written above it.
    heading: str = ""


def draw(runs: Runs, kinds: Sequence[Kind], look: Look, *, smooth_s: float | None = None) -> Figure | None:
    """A figure of `kinds`, drawn within `style(look)`; None where no run has anything to show in it.

    Raises MetricError for kinds that cannot be together, or several runs of a kind that has one run only.
    """
    _require_together(runs, kinds)
    panels = _panels(runs, kinds)
    if not panels:
        return None
    rows, columns = (1 + max(getattr(panel, what) for panel in panels) for what in ("row", "column"))
    shown_rows = max(1, min(rows, MOST_PANELS // columns))
    figure = Picture(figsize=look.size or _size(runs, kinds, shown_rows, columns, look))
    grid: list[list[Axes | None]] = [[None] * columns for _ in range(shown_rows)]
    for panel in panels:
        if panel.row < shown_rows:
            axes = figure.add_subplot(shown_rows, columns, panel.row * columns + panel.column + 1)
            grid[panel.row][panel.column] = axes
            _fill(axes, panel, runs, grid, smooth_s)
            if panel.heading:
                axes.set_title(panel.heading, y=1.0)
    _share(grid, panels)
    heading = _heading(runs) if look.titles else ""
    if heading:
        figure.suptitle(heading)
    left_out = f"{shown_rows} of {rows} rows of panels" if shown_rows < rows else ""
    fitted = kinds[0].fitting is not None
    arrangement.arrange(figure, grid, [_weight(panels, each) for each in range(columns)], left_out, fitted=fitted)
    return figure


def _require_together(runs: Runs, kinds: Sequence[Kind]) -> None:
    for kind in kinds:
        if len(runs) > 1 and not kind.overlays:
            raise MetricError(f"'{kind.name}' shows one run; {len(runs)} runs do not go on the same axes")
        if len(kinds) > 1 and kind.fitting is not None:
            raise MetricError(f"'{kind.name}' stands alone in its figure")


def _panels(runs: Runs, kinds: Sequence[Kind]) -> list[_Panel]:
    stacked = len({kind.across for kind in kinds}) == 1
    connections = {name: metrics.connections(run) for name, run in runs.items()}
    subjects: list[tuple[str | None, list[tuple[Kind, int | None]]]] = []
    whole = [kind for kind in kinds if kind.of == "run" and any(kind.shows(run, None) for run in runs.values())]
    if whole:
        subjects.append((None, [(kind, None) for kind in whole]))
    names = dict.fromkeys(each.name for own in connections.values() for each in own)
    for name in names:
        own = []
        for kind in kinds:
            for run in runs:
                of = _one(connections[run], name)
                if kind.of != "run" and of is not None and kind.shows(runs[run], of):
                    lanes: Sequence[int | None] = (None,)
                    if kind.of == "subflow":
                        lanes = [each.id for each in metrics.subflows(runs[run], of)]
                    own += [(kind, lane) for lane in lanes]
                    break
        if own:
            subjects.append((name, own))
    made: list[_Panel] = []
    row = 0
    for subject, own in subjects:
        place = {kind.name: column for column, kind in enumerate(dict.fromkeys(kind for kind, _ in own))}
        depth: dict[str, int] = {}
        for kind, lane in own:
            column = 0 if stacked else place[kind.name]
            below = len([panel for panel in made if panel.row >= row]) if stacked else depth.get(kind.name, 0)
            depth[kind.name] = below + 1
            first = subject is not None and below == 0 and column == 0
            made.append(_Panel(kind, row + below, column, subject, lane, subject if first and subject else ""))
        row = 1 + max(panel.row for panel in made)
    if len(subjects) == 1 and len(names) == 1:  # the one connection needs no name
        made = [replace(panel, heading="") for panel in made]
    return made


def _one(found: Sequence[metrics.Connection], name: str) -> metrics.Connection | None:
    return next((each for each in found if each.name == name), None)


def _fill(axes: Axes, panel: _Panel, runs: Runs, grid: Sequence[Sequence[Axes | None]], smooth_s: float | None) -> None:
    kind, several = panel.kind, len(runs) > 1
    options: dict[str, Any] = {} if kind.fitting is not None else {"legend": False}
    if panel.subflow is not None:
        options["subflow"] = panel.subflow
    drawn: list[tuple[str, Recording, metrics.Connection | None]] = []
    for name, run in runs.items():
        if kind.of == "run":
            if kind.shows(run, None):
                drawn.append((name, run, None))
            continue
        of = _one(metrics.connections(run), panel.connection or "")
        if of is not None and kind.shows(run, of):
            drawn.append((name, run, of))
    if kind.name == "rate":
        own = [interval_s(run, of) for _, run, of in drawn if of is not None]
        options["smooth_s"] = smooth_s if smooth_s is not None else max(own)
    above = panel.row > 0 and grid[panel.row - 1][panel.column] is not None
    told = [changes(run) for _, run, _ in drawn]
    common = several and all(each == told[0] for each in told)
    if _marks_events(kind):
        options["events"] = not common and ("lines" if above else True)
    for name, run, of in drawn:
        if of is not None:
            options["connection"] = of
        if several:
            options["label"] = name
        kind.draw(run, axes, **options)
    if _marks_events(kind) and common:
        mark(axes, told[0], words=not above)


def _marks_events(kind: Kind) -> bool:
    return "events" in kind.draw.__annotations__


def _share(grid: Sequence[Sequence[Axes | None]], panels: Sequence[_Panel]) -> None:
    """Panels of a column that have the same axis across are at the same scale, and it is written once."""
    for column in range(len(grid[0])):
        own = [
            (grid[panel.row][column], panel)
            for panel in panels
            if panel.column == column and panel.row < len(grid) and grid[panel.row][column] is not None
        ]
        times = [axes for axes, panel in own if axes is not None and panel.kind.across and panel.kind.of != "run"]
        if len({panel.kind.across for _, panel in own}) != 1 or len(times) < 2:
            continue
        left, right = min(axes.get_xlim()[0] for axes in times), max(axes.get_xlim()[1] for axes in times)
        for axes in times:
            axes.set_xlim(left, right)
        for axes in times[:-1]:
            axes.set_xlabel("")
            axes.tick_params(labelbottom=False)


def _weight(panels: Sequence[_Panel], column: int) -> float:
    return max(panel.kind.width for panel in panels if panel.column == column)


def _size(runs: Runs, kinds: Sequence[Kind], rows: int, columns: int, look: Look) -> tuple[float, float]:
    grown = look.points / FONT
    if kinds[0].fitting is not None:
        width, height = kinds[0].fitting(next(iter(runs.values())))
        return max(5.0, width) * grown, max(2.0, height) * grown + (0.5 * grown if look.titles else 0.0)
    wide = _WIDTH if columns == 1 else _WIDE
    tall = _HEIGHT * rows if columns == 1 else 1.5 * _HEIGHT * rows
    return wide, max(_LEAST_HEIGHT, tall + 1.0)


def _heading(runs: Runs) -> str:
    """What the runs have in common of their names."""
    titles = [title(run) for run in runs.values()]
    if len(set(titles)) == 1:
        return titles[0]
    labs = {each.partition("/")[0] for each in titles}
    return labs.pop() if len(labs) == 1 else ""
