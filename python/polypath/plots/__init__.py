"""The plots: each draws a Recording into axes, and is in the registry by its name.

A plot makes a figure, or draws into existing axes:

    axes = polypath.plots.rate(recording)               # a figure of its own: axes.figure
    polypath.plots.rate(recording, ax=axes)             # into axes that are there
    polypath.plots.rate(other, ax=axes, label="other")  # as one line for the run, so that runs share axes
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

# Without a handler what matplotlib logs as it is imported goes to the terminal: that its own folder cannot be written.
logging.getLogger("matplotlib").addHandler(logging.NullHandler())

# ruff: noqa: E402
from matplotlib.figure import Figure

from polypath.plots import figure as figures
from polypath.plots import network, playing, rates, requests, sequences, transfers, waiting, windows
from polypath.plots.base import Kind
from polypath.plots.curve import curve, draw_curves, measures
from polypath.plots.files import FORMATS, write
from polypath.plots.lanes import lanes
from polypath.plots.network import topology
from polypath.plots.playing import player, quality
from polypath.plots.profile import profile
from polypath.plots.rates import rate
from polypath.plots.requests import cdf, delays
from polypath.plots.sequences import acks, beginning, sequence
from polypath.plots.style import Look, listed, style
from polypath.plots.transfers import fct, slowdown
from polypath.plots.waiting import causes, waits
from polypath.plots.windows import rtt, window
from polypath.results import Recording, UnknownName

#: Every kind of figure of a run by name.
REGISTRY: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for module in (rates, windows, sequences, waiting, requests, transfers, playing, network)
    for kind in module.KINDS
}

#: The figures that `polypath run --plot` draws: kinds, or several joined by `+` in one figure.
USUAL: Final = (
    "rate",
    "window+rtt",
    "sequence+beginning",
    "waits+causes",
    "delays+cdf",
    "fct+slowdown",
    "player+quality",
    "topology",
)


def shared() -> list[str]:
    """Those of the usual figures that draw several runs on the same axes."""
    joined = ["+".join(part for part in name.split("+") if REGISTRY[part].overlays) for name in USUAL]
    return [name for name in joined if name]


def kinds(name: str) -> list[Kind]:
    """The kinds of a figure, `rate` or `window+rtt`. Raises UnknownName."""
    found = name.split("+")
    for each in found:
        if each not in REGISTRY:
            raise UnknownName.of("kind of figure", each, REGISTRY)
    return [REGISTRY[each] for each in found]


def figure(
    recordings: Recording | Mapping[str, Recording],
    name: str,
    look: Look | None = None,
    *,
    smooth_s: float | None = None,
) -> Figure | None:
    """A figure of a kind, or of several joined by `+`, with a panel for each connection.

    Several recordings, by the name that the legend gives them, go on the same axes. None where there is nothing to
    show. Raises UnknownName for a kind, MetricError for kinds that cannot be joined or have one run only.
    """
    with style(look):
        return figures.draw(_named(recordings), kinds(name), look or Look(), smooth_s=smooth_s)


def _named(recordings: Recording | Mapping[str, Recording]) -> Mapping[str, Recording]:
    return (
        {"": recordings}
        if isinstance(recordings, Recording)
        else {listed(name): run for name, run in recordings.items()}
    )


def file_name(name: str, form: str) -> str:
    """The file of a figure."""
    return f"{name.replace('+', '-')}.{form}"


def save_all(
    recordings: Recording | Mapping[str, Recording],
    directory: Path,
    names: Sequence[str] = USUAL,
    form: str = "png",
    look: Look | None = None,
    *,
    smooth_s: float | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Path]:
    """Draws every figure that there is data for; the files. Raises OutputError and what `figure` raises."""
    made = []
    with style(look):
        for number, name in enumerate(names):
            progress(number, len(names))
            made.append(save(name, recordings, directory / file_name(name, form), look, smooth_s=smooth_s))
    return [path for path in made if path is not None]


def save(
    name: str,
    recordings: Recording | Mapping[str, Recording],
    path: Path,
    look: Look | None = None,
    *,
    smooth_s: float | None = None,
) -> Path | None:
    """Draws one figure, in the format of the file's suffix; None where there is nothing to show."""
    with style(look):
        drawn = figures.draw(_named(recordings), kinds(name), look or Look(), smooth_s=smooth_s)
        if drawn is None:
            return None
        write(drawn, path)
    return path


__all__ = [
    "FORMATS",
    "REGISTRY",
    "USUAL",
    "Kind",
    "Look",
    "acks",
    "beginning",
    "causes",
    "cdf",
    "curve",
    "delays",
    "draw_curves",
    "fct",
    "figure",
    "lanes",
    "measures",
    "player",
    "profile",
    "quality",
    "rate",
    "rtt",
    "save",
    "save_all",
    "sequence",
    "slowdown",
    "style",
    "topology",
    "waits",
    "window",
    "write",
]
