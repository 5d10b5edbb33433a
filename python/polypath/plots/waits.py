"""Head-of-line blocking: what waits at the receiver over time, and what it waited for (docs/recording.md)."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from polypath.plots.base import LEFT, arrange, colour, head, label, legend, transfers
from polypath.results import Recording, metrics

#: In the order of the documentation, each with a colour beyond those of two subflows.
CAUSES = ("late", "retransmitted", "reinjected", "missing")


def draw(recording: Recording) -> Figure | None:
    waited = [(each, metrics.blocking(recording, each)) for each in transfers(recording)]
    shown = [(each, found) for each, found in waited if found]
    if not shown:
        return None
    figure = Figure(figsize=(11, max(3.4, 2.6 * len(shown) + 0.6)))
    head(figure, recording)
    grid = figure.subplots(len(shown), 2, width_ratios=(3, 2), squeeze=False)
    for (over_time, causes), (connection, found) in zip(grid, shown, strict=True):
        _over_time(over_time, recording, connection)
        _causes(causes, recording, connection, found)
        over_time.set_title(connection.name, fontsize=10)
    for axes in grid[:, 0]:
        axes.sharex(grid[0, 0])
    grid[-1, 0].set_xlabel("time (s)")
    grid[-1, 1].set_xlabel("time something waited (s)")
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    names = [text for axes in grid[:, 1] for text in axes.get_yticklabels()]
    widest = max(text.get_window_extent(renderer).width for text in names) / figure.dpi
    arrange(figure, grid.tolist(), ((LEFT, 3), (widest + 0.45, 2)))
    return figure


def _over_time(axes: Axes, recording: Recording, connection: metrics.Connection) -> None:
    own = (pl.col("connection") == connection.id) & (pl.col("side") == connection.receiver)
    whole = recording.table("connections").filter(own).sort("time_ns")
    times, waiting = whole["time_ns"] / 1e9, whole["reassembly_bytes"] / 1e3
    axes.fill_between(times, waiting, step="post", color="#bbbbbb", label="between subflows")
    samples = recording.table("subflows").filter(own).sort("time_ns")
    for subflow in metrics.subflows(recording, connection):
        rows = samples.filter(pl.col("subflow") == subflow.id)
        behind = rows["out_of_order_bytes"] / 1e3
        axes.step(rows["time_ns"] / 1e9, behind, where="post", color=colour(subflow.id), label=f"on {label(subflow)}")
    axes.set_ylabel("waiting (kB)")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right", fontsize=8)


def _causes(axes: Axes, recording: Recording, connection: metrics.Connection, found: list[metrics.Blocking]) -> None:
    """Time by level and subflow, a stretch for each cause; that of waits at the levels does not add up."""
    names = {subflow.id: label(subflow) for subflow in metrics.subflows(recording, connection)}
    rows = list(dict.fromkeys((each.level, each.subflow) for each in found))
    before = [0.0] * len(rows)
    for index, cause in enumerate(CAUSES):
        times = {(each.level, each.subflow): each.time_ns / metrics.SECOND for each in found if each.cause == cause}
        seconds = [times.get(row, 0.0) for row in rows]
        if any(seconds):
            axes.barh(range(len(rows)), seconds, left=before, color=colour(index + 2), label=cause)
        before = [sum(pair) for pair in zip(before, seconds, strict=True)]
    axes.set_yticks(range(len(rows)), [_row(level, subflow, names) for level, subflow in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_ylabel("for what")
    axes.grid(visible=False, axis="y")
    legend(axes)


def _row(level: metrics.Level, subflow: int | None, names: dict[int, str]) -> str:
    if subflow is None:
        return "between subflows, nothing came"
    where = names.get(subflow, f"subflow {subflow}")
    return f"within {where}" if level == "subflow" else f"between subflows, came on {where}"
