"""A large network: nodes in the places of an overview, links as thin lines, labels beside rows of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import hypot
from typing import TYPE_CHECKING, Any, Final

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from polypath.plan.overview import Arrangement, Note, arranged
from polypath.plan.overview.network import Place, nearest
from polypath.plan.places import parallel
from polypath.plots.style import colour

if TYPE_CHECKING:
    from polypath.plan.data import PlanData

#: Points: of a mark, the least and the most; of words. A host's mark is smaller than a switch's.
_LEAST, _MOST = 1.2, 8.0
_HOST: Final = 0.7
#: Of the way to the nearest of its kind what a mark takes.
_SHARE: Final = 0.7
_WORDS: Final = 7.5
#: Inches: around words, a character, a line.
_EDGE: Final = 0.12
_CHARACTER: Final = 0.062
_LINE: Final = 0.135
#: How far the marks of a stack stand apart, of their size.
_BEHIND: Final = 0.35
#: Points of a curved link.
_STEPS: Final = 12
_LINK: Final = "#555555"
#: Links from which lines get thinner and lighter.
_FEW: Final = 150
_SIDES: Final[Mapping[str, Any]] = {"left": "left", "middle": "center", "right": "right"}

#: By kind of node its mark and the number of its colour.
Shapes = Mapping[str, tuple[str, int]]


def draw(axes: Axes, plan: PlanData, shapes: Shapes) -> None:
    """Draws a plan's network; a unit of the axes is an inch of a figure of the size that `size` gives."""
    made = arranged(plan)
    (left, right), (bottom, top) = _bounds(made)
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    scale = _scale(axes, right - left, top - bottom)
    straight, curved = list(_lines(made, plan)), list(_curves(made))
    part = min(1.0, (_FEW / (len(straight) + len(curved) or 1)) ** 0.5)
    for lines, alpha in ((straight, 0.8 * part), (curved, 0.5 * part)):
        drawn = LineCollection(lines, colors=_LINK, linewidths=(0.3 + 0.5 * part) * scale, alpha=alpha, zorder=1)
        axes.add_collection(drawn, autolim=False)
    for kind, (shape, tint) in shapes.items():
        own = [made.places[number] for number in made.places if plan["nodes"][number]["kind"] == kind]
        _marks(axes, own, shape, [scale * each for each in _points(own, kind == "host")], colour(tint))
    shape, tint = shapes["host"]
    stacks = [stack.place for stack in made.stacks]
    points = _points(stacks, True)
    for back in (2, 1, 0):
        behind = [back * _BEHIND * each / 72 for each in points]
        places = [(x + by, y + by) for (x, y), by in zip(stacks, behind, strict=True)]
        _marks(axes, places, shape, [scale * each for each in points], colour(tint))
    for note in (*made.notes, *_counts(made)):
        axes.text(*note.place, note.text, fontsize=_WORDS * scale, ha=_SIDES[note.side], va="center", zorder=4)


def _scale(axes: Axes, wide: float, high: float) -> float:
    """How much smaller or larger than meant the axes are."""
    figure = axes.figure
    width, height = figure.get_size_inches() if isinstance(figure, Figure) else (wide, high)
    if len(figure.axes) > 1:
        width, height = width * axes.get_position().width, height * axes.get_position().height
    return float(min(width / wide, height / high))


def size(plan: PlanData) -> tuple[float, float]:
    """Inches."""
    (left, right), (bottom, top) = _bounds(arranged(plan))
    return right - left, top - bottom


def _bounds(made: Arrangement) -> tuple[tuple[float, float], tuple[float, float]]:
    """What marks and words span."""
    (left, bottom), (right, top) = made.corners
    xs, ys = [left - made.room, right + made.room], [bottom - made.room, top + made.room]
    for note in made.notes:
        lines = note.text.split("\n")
        wide, high = _CHARACTER * max(map(len, lines)), _LINE * len(lines)
        begin = note.place[0] - {"left": 0.0, "middle": wide / 2, "right": wide}[note.side]
        xs += [begin - _EDGE, begin + wide + _EDGE]
        ys += [note.place[1] - high / 2 - _EDGE, note.place[1] + high / 2 + _EDGE]
    return (min(xs), max(xs)), (min(ys), max(ys))


def _marks(axes: Axes, places: list[Place], shape: str, points: list[float], tint: str) -> None:
    if places:
        xs, ys = zip(*places, strict=True)
        areas, edges = [each**2 for each in points], [min(0.6, 0.1 * each) for each in points]
        axes.scatter(xs, ys, s=areas, marker=shape, color=tint, edgecolors="white", linewidths=edges, zorder=3)


def _points(places: list[Place], hosts: bool) -> list[float]:
    """The size of each mark: none touches another of its kind."""
    least = nearest(places, _MOST / _SHARE / 72)
    return [max(_LEAST, _SHARE * 72 * each) * (_HOST if hosts else 1.0) for each in least]


def _lines(made: Arrangement, plan: PlanData) -> Iterator[list[Place]]:
    """A line for each pair of nodes with links between them, but those that swing out."""
    for stack in made.stacks:
        yield [made.places[stack.at], stack.place]
    for pair in parallel(plan["links"]):
        if pair not in made.bends and all(node in made.places for node in pair):
            yield [made.places[node] for node in pair]


def _curves(made: Arrangement) -> Iterator[list[Place]]:
    for (a, b), bend in made.bends.items():
        yield _curve(made.places[a], made.places[b], bend)


def _curve(a: Place, b: Place, bend: float) -> list[Place]:
    length = hypot(b[0] - a[0], b[1] - a[1]) or 1.0
    across = (a[1] - b[1]) / length * 2 * bend, (b[0] - a[0]) / length * 2 * bend
    found = []
    for step in range(_STEPS + 1):
        part = step / _STEPS
        off = part * (1 - part) * 2
        found.append((a[0] + (b[0] - a[0]) * part + across[0] * off, a[1] + (b[1] - a[1]) * part + across[1] * off))
    return found


def _counts(made: Arrangement) -> Iterator[Note]:
    """How many hosts a stack stands for, where there is room for it."""
    across = sorted(stack.place[0] for stack in made.stacks)
    for stack in made.stacks:
        text = f"×{stack.count}"
        room = min((abs(other - stack.place[0]) for other in across if other != stack.place[0]), default=1.0)
        if room > _CHARACTER * len(text):
            yield Note((stack.place[0], stack.place[1] - 0.13), text, "middle")
