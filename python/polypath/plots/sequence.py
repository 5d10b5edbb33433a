"""Time-sequence diagram: data sequence numbers as they are sent, coloured by subflow."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from polypath.plots.base import colour, label, legend, panels, transfers
from polypath.results import Recording, metrics

#: How what is sent again stands out from what is sent first.
_MARKS = {
    "data": (".", 3.0, ""),
    "retransmission": ("x", 18.0, ", retransmission"),
    "reinjection": ("+", 24.0, ", reinjection"),
}


def draw(recording: Recording) -> Figure | None:
    segments = recording.table("segments").filter(pl.col("dsn").is_not_null() & (pl.col("payload_bytes") > 0))
    connections = [each for each in transfers(recording) if not _sent(segments, each).is_empty()]
    if not connections:
        return None
    figure, axes = panels(recording, len(connections), 4.0)
    for each, connection in zip(axes, connections, strict=True):
        sent = _sent(segments, connection)
        for index, subflow in enumerate(metrics.subflows(recording, connection)):
            for kind, (mark, size, note) in _MARKS.items():
                own = sent.filter((pl.col("subflow") == subflow.id) & (pl.col("kind") == kind))
                if own.is_empty():
                    continue
                each.scatter(
                    own["time_ns"] / 1e9,
                    own["dsn"] / 1e6,
                    s=size,
                    marker=mark,
                    color=colour(index),
                    linewidths=0.8,
                    rasterized=True,
                    label=label(subflow) + note,
                )
        each.set_title(connection.name, fontsize=10)
        each.set_ylabel("data sequence number (MB)")
        legend(each, 3.0)
    return figure


def _sent(segments: pl.DataFrame, connection: metrics.Connection) -> pl.DataFrame:
    return segments.filter((pl.col("connection") == connection.id) & (pl.col("side") == connection.sender))
