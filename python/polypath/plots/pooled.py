"""The delays of all requests at each place of a sweep, with all seeds together, as distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from polypath.plots.base import put_legend
from polypath.plots.files import Picture
from polypath.plots.requests import DELAY, distribution, shows
from polypath.plots.style import Look, colour, style
from polypath.results import Recording, metrics
from polypath.results.points import SEED, Axis

#: Curves that are told apart by colour.
MOST_CURVES: Final = 8
_WIDTH, _HEIGHT = 7.0, 3.2

#: Of each place its label on every axis, the seed's included, and the recording there.
Places = Mapping[tuple[str, ...], Recording]


def drawn_axes(axes: Sequence[Axis]) -> list[Axis]:
    """All axes, for recordings of every seed; none where there are too many curves to tell apart."""
    curves = 1
    for axis in axes:
        curves *= 1 if axis.name == SEED else len(axis.labels)
    return list(axes) if 1 < curves <= MOST_CURVES else []


def draw_delays(name: str, axes: Sequence[Axis], places: Places, look: Look | None = None) -> Figure | None:
    """A panel for each application that asks, a curve for each place; None where nothing asks."""
    look = look or Look()
    names = list(dict.fromkeys(of.name for run in places.values() for of in metrics.connections(run) if shows(run, of)))
    if not names or not drawn_axes(axes):
        return None
    with style(look):
        figure = Picture(figsize=look.size or (_WIDTH, _HEIGHT * len(names)), layout="constrained")
        if look.titles:
            figure.suptitle(name, x=0.01, ha="left")
        for panel, application in zip(figure.subplots(len(names), squeeze=False)[:, 0], names, strict=True):
            _draw(panel, application, axes, places)
            panel.set_title(application if len(names) > 1 else "")
            put_legend(panel, panel is figure.axes[0])
        return figure


def _draw(panel: Axes, application: str, axes: Sequence[Axis], places: Places) -> None:
    seeds = next((place for place, axis in enumerate(axes) if axis.name == SEED), None)
    varied = [place for place, axis in enumerate(axes) if place != seeds and len(axis.labels) > 1]
    counts = set()
    curves: dict[metrics.Delays, list[str]] = {}
    for labels in product(*(axes[place].labels for place in varied)):
        runs = [run for key, run in places.items() if tuple(key[place] for place in varied) == labels]
        if not runs:
            continue
        delays = [
            delay
            for run in runs
            for of in metrics.connections(run)
            if of.name == application and shows(run, of)
            for delay in metrics.delays(run, of)
        ]
        counts.add((len(runs), len(delays)))
        curves.setdefault(metrics.Delays.of(delays), []).append(", ".join(labels))
    for number, (known, same) in enumerate(curves.items()):
        none = "none answered" if known.sent else "none sent"
        distribution(panel, known, color=colour(number), label=" = ".join(same), none=none)
    panel.set(xlabel=DELAY, ylabel="part of the requests")
    panel.set_ylim(0, 1.02)
    panel.set_title(_told(counts), loc="right", fontsize="small", fontweight="normal")


def _told(counts: set[tuple[int, int]]) -> str:
    """How much each curve is of."""
    seeds, requests = zip(*counts, strict=True)
    return f"{_reach(requests)} requests each" + (f", of {_reach(seeds)} seeds" if max(seeds) > 1 else "")


def _reach(numbers: Sequence[int]) -> str:
    return " to ".join(f"{each:,}" for each in dict.fromkeys((min(numbers), max(numbers))))
