"""Time-sequence diagram: data sequence numbers as they are sent, coloured by subflow."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from polypath.plots.base import LEFT, arrange, colour, head, label, transfers
from polypath.results import Recording, metrics
from polypath.results.palette import PALETTE

#: Marker, its area in square points, and what the legend adds: what is sent again stands out.
_MARKS = {
    "data": (".", 4.0, ""),
    "retransmission": ("x", 18.0, ", retransmission"),
    "reinjection": ("+", 24.0, ", reinjection"),
}
#: Places along each axis at which points are told apart: two a pixel.
_CELLS = 1500
#: Part of the time that the enlarged panel shows.
_BEGINNING = 0.1


def draw(recording: Recording) -> Figure | None:
    segments = recording.table("segments").filter(pl.col("dsn").is_not_null() & (pl.col("payload_bytes") > 0))
    connections = [each for each in transfers(recording) if not _sent(segments, each).is_empty()]
    if not connections:
        return None
    figure = Figure(figsize=(12, 4.0 * len(connections) + 0.6))
    head(figure, recording)
    rows = figure.subplots(len(connections), 2, squeeze=False)
    for (whole, beginning), connection in zip(rows, connections, strict=True):
        sent = _sent(segments, connection)
        subflows = {subflow.id: subflow for subflow in metrics.subflows(recording, connection)}
        first, last = sent["time_ns"][0], sent["time_ns"][-1]
        height = "stream position (MB)" if connection.lane == "path" else "data sequence number (MB)"
        _draw(whole, sent, connection.name, height)
        early = sent.filter(pl.col("time_ns") <= first + (last - first) * _BEGINNING)
        _draw(beginning, early, f"{connection.name}: the first tenth", height)
        beginning.legend(
            handles=_handles(sent, subflows), loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0
        )
    arrange(figure, rows.tolist(), ((LEFT, 1), (LEFT, 1)))
    return figure


def _draw(axes: Axes, sent: pl.DataFrame, name: str, height: str) -> None:
    """Points in the order of sending, so that no subflow hides another."""
    tint = np.array([to_rgba(each) for each in PALETTE])
    sent = _distinct(sent)
    for kind, (mark, size, _) in _MARKS.items():
        own = sent.filter(pl.col("kind") == kind)
        if own.is_empty():
            continue
        tints = tint[own["subflow"].to_numpy() % len(PALETTE)]
        axes.scatter(
            own["time_ns"] / 1e9, own["dsn"] / 1e6, s=size, marker=mark, c=tints, linewidths=0.8, rasterized=True
        )
    axes.set_title(name, fontsize=10)
    axes.set(xlabel="time (s)", ylabel=height)


def _distinct(sent: pl.DataFrame) -> pl.DataFrame:
    """Of a subflow's points that lie closer together than the picture can show only the last."""
    cells = [
        ((pl.col(name) - pl.col(name).min()) * _CELLS / pl.max_horizontal(pl.col(name).max() - pl.col(name).min(), 1))
        .cast(pl.Int64)
        .alias(f"{name}_cell")
        for name in ("time_ns", "dsn")
    ]
    places = ("kind", "subflow", "time_ns_cell", "dsn_cell")
    return sent.with_columns(cells).unique(places, keep="last", maintain_order=True)


def _handles(sent: pl.DataFrame, subflows: Mapping[int, metrics.Subflow]) -> list[Line2D]:
    present = sent.select("kind", "subflow").unique()
    return [
        Line2D(
            [],
            [],
            color=colour(subflow),
            marker=mark,
            linestyle="",
            markersize=6,
            label=label(subflows[subflow]) + note,
        )
        for kind, (mark, _, note) in _MARKS.items()
        for subflow in present.filter(pl.col("kind") == kind)["subflow"].sort()
    ]


def _sent(segments: pl.DataFrame, connection: metrics.Connection) -> pl.DataFrame:
    own = segments.filter((pl.col("connection") == connection.id) & (pl.col("side") == connection.sender))
    return own.sort("time_ns", maintain_order=True)
