"""Congestion window and RTT of each subflow over time."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from polypath.plots.base import arrange, colour, label, legend, panels, transfers
from polypath.results import Recording, metrics


def draw(recording: Recording) -> Figure | None:
    samples = recording.table("subflows").sort("time_ns")
    connections = [
        each
        for each in transfers(recording)
        if not samples.filter((pl.col("connection") == each.id) & (pl.col("side") == each.sender)).is_empty()
    ]
    if not connections:
        return None
    figure, axes = panels(recording, 2 * len(connections), 2.0)
    for row, connection in enumerate(connections):
        windows, delays = axes[2 * row], axes[2 * row + 1]
        for subflow in metrics.subflows(recording, connection):
            own = samples.filter(
                (pl.col("connection") == connection.id)
                & (pl.col("side") == connection.sender)
                & (pl.col("subflow") == subflow.id)
            )
            tint, name = colour(subflow.id), label(subflow)
            windows.step(own["time_ns"] / 1e9, own["cwnd_packets"], where="post", color=tint, label=name)
            measured = own.filter(pl.col("srtt_us") > 0)
            delays.plot(measured["time_ns"] / 1e9, measured["srtt_us"] / 1e3, color=tint, label=name)
        windows.set_title(connection.name, fontsize=10)
        windows.set_ylabel("cwnd (packets)")
        delays.set_ylabel("smoothed RTT (ms)")
        windows.set_ylim(bottom=0)
        delays.set_ylim(bottom=0)
        legend(windows)
    arrange(figure, [[each] for each in axes])
    return figure
