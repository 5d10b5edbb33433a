"""A kind of plot, and the state of axes with several runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self
from weakref import WeakKeyDictionary

from matplotlib.axes import Axes

from polypath.plots import legends
from polypath.plots.files import Picture
from polypath.plots.style import colour, style
from polypath.results import MetricError, Recording, metrics

TIME: Final = "time (s)"

#: What of a recording one panel shows.
Scope = Literal["run", "connection", "subflow"]


@dataclass(frozen=True)
class Kind:
    """A named plot: `draw` puts it on axes, `shows` says whether a run has anything for it."""

    name: str
    description: str
    draw: Callable[..., Axes]
    #: Asked of each connection; of a kind of the whole run once, with None.
    shows: Callable[[Recording, Any], bool]
    of: Scope = "connection"
    #: What a run must have for it.
    needs: str = "a connection of TCP or QUIC that carried something"
    #: The label of its horizontal axis: panels that share it stand one above the other.
    across: str = TIME
    #: Whether several runs go on the same axes.
    overlays: bool = True
    #: Its share of a figure's width where panels stand side by side.
    width: float = 1.0
    #: The size in inches that suits a run, of a kind that stands alone in its figure.
    fitting: Callable[[Recording], tuple[float, float]] | None = None


@dataclass
class Canvas:
    """What is known of axes: the runs on them with their colours, and notes beside the title."""

    axes: Axes
    runs: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    #: Of each run its rates, for the end of the axis (`smoothing.Ceiling`).
    rates: list[object] = field(default_factory=list)
    #: Whether the vertical axis begins at 0 because `span` says so.
    begins_at_0: bool = False

    @classmethod
    def of(cls, axes: Axes) -> Self:
        found = _CANVASES.get(axes)
        if not isinstance(found, cls):
            found = _CANVASES[axes] = cls(axes)
        return found

    def run(self, label: str | None, tint: str | None) -> str | None:
        """The colour of a run with a label; None for a single run, which is coloured by path."""
        if label is None:
            return tint
        if label not in self.runs:
            self.runs[label] = tint or colour(len(self.runs))
        return self.runs[label]

    def note(self, text: str, *, instead: str | None = None) -> None:
        """Adds to the small print above the axes; replaces the note that begins with `instead`."""
        if instead is not None:
            self.notes = [each for each in self.notes if not each.startswith(instead)]
        if text and text not in self.notes:
            self.notes.append(text)
        self.axes.set_title("; ".join(self.notes), loc="right", fontsize="small", fontweight="normal", y=1.0)


_CANVASES: WeakKeyDictionary[Axes, Canvas] = WeakKeyDictionary()


@contextmanager
def drawing(ax: Axes | None) -> Iterator[Axes]:
    """The axes given, or those of a new figure in Polypath's style."""
    if ax is not None:
        yield ax
        return
    with style():
        yield Picture(figsize=(7, 3.2), layout="constrained").subplots()


def chosen(
    recording: Recording,
    given: str | metrics.Connection | None,
    shows: Callable[[Recording, metrics.Connection], bool],
) -> metrics.Connection:
    """The connection that is meant. Raises MetricError where it is not clear which, and where there is none."""
    if isinstance(given, metrics.Connection):
        return given
    if given is not None:
        return named(recording, given, shows)
    found = [each for each in metrics.connections(recording) if shows(recording, each)]
    if len(found) == 1:
        return found[0]
    name = recording.metadata.scenario
    if not found:
        raise MetricError(f"{name} has nothing that this plot shows")
    names = ", ".join(dict.fromkeys(each.name for each in found))
    raise MetricError(f"{name} has several connections; name one: {names}")


def named(
    recording: Recording, name: str, shows: Callable[[Recording, metrics.Connection], bool]
) -> metrics.Connection:
    """The connection of that name. Raises MetricError where there is none, and where it has nothing to show."""
    found = metrics.connection(recording, name)
    if not shows(recording, found):
        raise MetricError(f"{name} has nothing that this plot shows")
    return found


def put_legend(axes: Axes, wanted: bool) -> None:
    """The legend beside the axes, where it hides no data; of a narrow figure below them."""
    figure = axes.get_figure(root=True)
    if not wanted or not axes.get_legend_handles_labels()[0]:
        return
    if figure is not None and legends.is_narrow(figure):
        legends.below(figure)
    else:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)


def span(axes: Axes, of: metrics.Connection) -> None:
    """A time axis has all of the connection's time, from its start on, and what is drawn; values begin at 0."""
    canvas = Canvas.of(axes)
    if canvas.begins_at_0:  # a limit that was set would cut off what another run has above it
        axes.set_autoscaley_on(True)
    canvas.begins_at_0 = axes.get_autoscaley_on()
    axes.set_xmargin(0)
    axes.update_datalim([(time / metrics.SECOND, 0.0) for time in (of.start_ns, of.until_ns)])
    axes.autoscale_view()
    axes.set_ylim(bottom=0)


def title(recording: Recording) -> str:
    return recording.metadata.scenario + (" (interrupted)" if recording.metadata.interrupted else "")


def seconds(times_ns: Sequence[int]) -> list[float]:
    return [time / metrics.SECOND for time in times_ns]
