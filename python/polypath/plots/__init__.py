"""The plots by name, each from a Recording."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from polypath.plots import delays, rate, sequence, topology, waits, window
from polypath.plots.base import Plot, style
from polypath.results import Recording
from polypath.results.files import replacing

REGISTRY: Mapping[str, Plot] = {
    plot.name: plot
    for plot in (
        Plot("rate", "rate of each subflow, stacked", rate.draw),
        Plot("window", "congestion window and RTT of each subflow", window.draw),
        Plot("sequence", "data sequence numbers over time, by subflow", sequence.draw),
        Plot("waits", "what waits at the receiver, and what it waited for", waits.draw),
        Plot("delays", "delay of each request", delays.draw),
        Plot("topology", "the network", topology.draw),
    )
}


def save_all(recording: Recording, directory: Path) -> list[Path]:
    """Draws every plot that the run has data for, as PNG; the files. Raises OutputError."""
    return [path for name in REGISTRY if (path := save(name, recording, directory / f"{name}.png")) is not None]


def save(name: str, recording: Recording, path: Path) -> Path | None:
    """Draws one plot as PNG; None where the run has no data for it. Raises KeyError for an unknown plot."""
    with style():
        figure = REGISTRY[name].draw(recording)
        if figure is None:
            return None
        with replacing(path) as temporary:
            # what has been arranged fits; finding its edges would draw it again
            edges = None if figure.get_layout_engine() is None else "tight"
            figure.savefig(temporary, format="png", bbox_inches=edges, metadata={"Software": "polypath"})
    return path
