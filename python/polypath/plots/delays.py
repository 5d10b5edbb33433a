"""Delay of each request: over time, and distributed."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from polypath.plots.base import colour, title
from polypath.results import Recording, metrics


def draw(recording: Recording) -> Figure | None:
    requests = recording.table("requests").sort("application", "index")
    if requests.is_empty():
        return None
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    figure.suptitle(title(recording), x=0.01, ha="left", fontweight="bold")
    over_time, distribution = figure.subplots(1, 2, width_ratios=(2, 1))
    asking = [each for each in metrics.connections(recording) if each.application in requests["application"]]
    messages = all(metrics.sends_messages(recording, each) for each in asking)
    for index, connection in enumerate(asking):
        own = requests.filter(pl.col("application") == connection.application)
        answered = own.filter(pl.col("delay_ns").is_not_null())
        lost = own.filter(pl.col("delay_ns").is_null())
        tint = colour(index)
        times, delays = answered["sent_ns"] / 1e9, answered["delay_ns"] / 1e6
        over_time.plot(times, delays, marker="o", markersize=3, linewidth=0.7, color=tint)
        if not lost.is_empty():
            base = [0.0] * lost.height
            name = f"{connection.name}, {'lost' if messages else 'unanswered'}"
            over_time.scatter(lost["sent_ns"] / 1e9, base, marker="x", color=tint, label=name, clip_on=False)
        if not answered.is_empty():
            # of all requests: the curve ends below 1 where some have no answer
            shares = [(number + 1) / own.height for number in range(answered.height)]
            ordered = delays.sort().to_list()
            distribution.step([ordered[0], *ordered], [0.0, *shares], where="post", color=tint, label=connection.name)
    over_time.set(xlabel="time of sending (s)", ylabel="delay (ms)")
    over_time.set_ylim(bottom=0)
    distribution.set(xlabel="delay (ms)", ylabel=f"part of the {'messages' if messages else 'requests'}")
    handles = [axes.get_legend_handles_labels() for axes in (distribution, over_time)]
    figure.legend(
        [handle for each in handles for handle in each[0]],
        [name for each in handles for name in each[1]],
        loc="outside right upper",
    )
    return figure
