"""The view of the most exposed path of a connection against the goodput, over the points of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Final

from matplotlib.figure import Figure

from polypath.plots.base import put_legend
from polypath.plots.files import Picture
from polypath.plots.style import Look, colour, style
from polypath.results import Recording, exposure, metrics
from polypath.results.axes import SEED, Axis

_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*")
#: Curves that are told apart by colour and marker.
MOST_CURVES: Final = len(_MARKERS)
_WIDTH, _HEIGHT = 7.0, 4.2
#: Part of the goodputs' range, and percent, within which labels are one.
_BESIDE, _NEAR = 0.05, 2.0

#: Of each place its label on every axis, the seed's included, and the recording there.
Places = Mapping[tuple[str, ...], Recording]


def drawn_axes(axes: Sequence[Axis]) -> list[Axis]:
    """All axes; none where there are more than two besides the seed, or too many curves to tell apart."""
    varied = [axis for axis in axes if axis.name != SEED and len(axis.labels) > 1]
    return list(axes) if 1 <= len(varied) <= 2 and len(varied[0].labels) <= MOST_CURVES else []


def draw_exposures(name: str, axes: Sequence[Axis], places: Places, look: Look | None = None) -> Figure | None:
    """A curve for each label of the first axis, a point for each of the second; None without recorded segments."""
    look = look or Look()
    figures = {place: found for place, run in places.items() if (found := of_run(run)) is not None}
    varied = [number for number, axis in enumerate(axes) if axis.name != SEED and len(axis.labels) > 1]
    if not figures or not drawn_axes(axes):
        return None
    with style(look):
        figure = Picture(figsize=look.size or (_WIDTH, _HEIGHT), layout="constrained")
        if look.titles:
            figure.suptitle(name, x=0.01, ha="left")
        panel = figure.subplots()
        first, *second = varied
        named: list[tuple[str, float, float]] = []
        for rank, label in enumerate(axes[first].labels):
            xs, ys, names = [], [], []
            for inner in product(*(axes[number].labels for number in second)):
                at = [
                    found
                    for place, found in figures.items()
                    if place[first] == label and tuple(place[number] for number in second) == inner
                ]
                if at:
                    xs.append(fmean(rate for rate, _ in at))
                    ys.append(100 * fmean(share for _, share in at))
                    names.append("".join(inner))
            panel.plot(xs, ys, marker=_MARKERS[rank], color=colour(rank), label=label)
            named += zip(names, xs, ys, strict=True)
        for each in _labels(named):
            panel.annotate(each.text, (each.x, each.y), (4, 4), textcoords="offset points", fontsize="small")
        told = f"; numbers: {axes[second[0]].name}" if second else ""
        panel.set(xlabel=f"goodput (Mbps){told}", ylabel="seen by the most exposed path (%)")
        panel.set_ylim(0, 104)
        put_legend(panel, True)
        return figure


@dataclass(frozen=True)
class _Label:
    x: float
    y: float
    names: list[str]

    @property
    def text(self) -> str:
        numbers = [int(name) for name in self.names if name.isdecimal()]
        if len(numbers) == len(self.names) > 2 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
            return f"{numbers[0]}\N{EN DASH}{numbers[-1]}"
        return ", ".join(self.names)


def _labels(named: Sequence[tuple[str, float, float]]) -> list[_Label]:
    """The names of points; those that lie on each other have one label with the names of all."""
    rates = [x for _, x, _ in named]
    beside = _BESIDE * (max(rates) - min(rates))
    labels: list[_Label] = []
    for name, x, y in named:
        near = next((each for each in labels if abs(each.x - x) <= beside and abs(each.y - y) < _NEAR), None)
        if near is None:
            labels.append(_Label(x, y, [name]))
        elif name not in near.names:
            near.names.append(name)
    return labels


def of_run(recording: Recording) -> tuple[float, float] | None:
    """Goodput in Mbps and the greatest share of its bytes that one path sees, of the connection that carried most.

    None where no segments were recorded.
    """
    if not recording.table("segments").height:
        return None
    shares: dict[int, float] = {}
    known = {each.id: each for each in metrics.connections(recording) if each.id is not None}
    for each in exposure.exposure(recording):
        if each.tap.kind == "path" and each.stream.side == known[each.stream.connection].sender:
            shares[each.stream.connection] = max(each.share, shares.get(each.stream.connection, 0.0))
    if not shares:
        return None
    chosen = max(shares, key=lambda number: known[number].bytes)
    rate = metrics.goodput(recording, known[chosen])
    return None if rate is None else (rate / 1e6, shares[chosen])
