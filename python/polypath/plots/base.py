"""What a plot is, and the style that all of them share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from polypath.results import Recording, metrics

#: Okabe and Ito's palette ("Color Universal Design", 2008), which the colour-blind can tell apart; yellow left out.
PALETTE: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

_STYLE: Final = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.8,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "figure.dpi": 100,
    "savefig.dpi": 150,
    "svg.hashsalt": "polypath",
}


@dataclass(frozen=True)
class Plot:
    """A named figure of a Recording; `draw` gives None where the run has nothing to show in it."""

    name: str
    description: str
    draw: Callable[[Recording], Figure | None]


@contextmanager
def style() -> Iterator[None]:
    with mpl.rc_context(_STYLE):  # type: ignore[arg-type]
        yield


def colour(index: int) -> str:
    return PALETTE[index % len(PALETTE)]


def panels(recording: Recording, count: int, height: float = 2.6) -> tuple[Figure, Sequence[Axes]]:
    """A figure of `count` axes one above the other over a common time axis, titled with the scenario's name."""
    figure = Figure(figsize=(9, max(3.4, height * count + 0.6)), layout="constrained")
    axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    figure.suptitle(title(recording), x=0.01, ha="left", fontweight="bold")
    axes[-1].set_xlabel("time (s)")
    return figure, list(axes)


def title(recording: Recording) -> str:
    return recording.metadata.scenario + (" (interrupted)" if recording.metadata.interrupted else "")


def legend(axes: Axes) -> None:
    """The legend beside the axes, where it hides no data."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)


def transfers(recording: Recording) -> list[metrics.Connection]:
    """The connections that have subflows."""
    return [each for each in metrics.connections(recording) if each.id is not None]


def label(subflow: metrics.Subflow) -> str:
    note = ", backup" if subflow.backup else ""
    return f"subflow {subflow.id} ({subflow.interface}{note})"
