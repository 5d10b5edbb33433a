"""What a plot is, and the style that all of them share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from polypath.results import Recording, metrics
from polypath.results.palette import PALETTE

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


#: Inches: around a figure, above and below its axes, between rows; from the left edge to the label of axes, from axes
#: down to their label, and left of axes with numbers.
_EDGE: Final = 0.15
_TOP: Final = 0.65
_BOTTOM: Final = 0.55
_BETWEEN: Final = 0.35
_LABEL: Final = 0.32
_BELOW: Final = 0.33
LEFT: Final = 0.9


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
    figure = Figure(figsize=(9, max(3.4, height * count + 0.6)))
    axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    head(figure, recording)
    axes[-1].set_xlabel("time (s)")
    return figure, list(axes)


def head(figure: Figure, recording: Recording) -> None:
    """The title, in a corner."""
    inches = figure.get_size_inches()
    figure.suptitle(title(recording), x=_EDGE / inches[0], y=1 - _EDGE / inches[1], ha="left", fontweight="bold")


def arrange(
    figure: Figure, rows: Sequence[Sequence[Axes]], columns: Sequence[tuple[float, float]] = ((LEFT, 1),)
) -> None:
    """Places axes in rows; `columns` are the inches that labels take on their left, and their parts of the width.

    The legends beside the last column are measured, and nothing else: matplotlib's own layouts draw a figure three
    times to find out what these few sizes say.
    """
    width, height = figure.get_size_inches()
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    legends = [each for row in rows if (each := row[-1].get_legend()) is not None and each.get_in_layout()]
    beside = max((each.get_window_extent(renderer).width / figure.dpi for each in legends), default=0.0)
    room = width - sum(left for left, _ in columns) - _EDGE * len(columns) - beside
    tall = (height - _TOP - _BOTTOM - _BETWEEN * (len(rows) - 1)) / len(rows)
    for number, row in enumerate(rows):
        x, y = 0.0, height - _TOP - tall - number * (tall + _BETWEEN)
        for axes, (left, part) in zip(row, columns, strict=True):
            wide = room * part / sum(part for _, part in columns)
            axes.set_position(((x + left) / width, y / height, wide / width, tall / height))
            # else matplotlib measures every number on the axes to find places for title and labels
            axes.set_title(axes.get_title(loc=mpl.rcParams["axes.titlelocation"]), fontsize=10, y=1.0)
            axes.yaxis.set_label_coords((_LABEL - left) / wide, 0.5)
            axes.xaxis.set_label_coords(0.5, -_BELOW / tall)
            x += left + wide + _EDGE


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
    return subflow.label
