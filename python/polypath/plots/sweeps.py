"""The figures of a sweep: a curve per measure, the grid if all axes are of names, and distributions of delays.

Boxes put the places of a sweep together; those of several sweeps stand side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from matplotlib.figure import Figure

from polypath.measures import MEASURES, short
from polypath.plots import boxes, exposures, pooled
from polypath.plots.curve import Swept, draw_curves
from polypath.plots.files import write
from polypath.plots.grid import MOST_PANELS, Places, draw_grid, drawn_axes
from polypath.plots.profile import draw_profiles
from polypath.plots.style import Look, style
from polypath.results.axes import Axis
from polypath.results.settled import OLD, settled

GRID: Final = "grid-goodput"
DELAYS: Final = "cdf-delay"
COMPLETIONS: Final = "cdf-completion"
EXPOSURE: Final = "exposure-goodput"
BENEFIT: Final = "box-benefit"
CURVES: Final[Mapping[str, str]] = {f"curve-{short(measure)}": measure for measure in MEASURES}
BOXES: Final[Mapping[str, str]] = {f"box-{short(measure)}": measure for measure in MEASURES}
PROFILES: Final[Mapping[str, str]] = {f"profile-{short(measure)}": measure for measure in MEASURES}
KINDS: Final[Mapping[str, str]] = {
    **{name: f"{MEASURES[measure].title} over the first axis of numbers" for name, measure in CURVES.items()},
    GRID: "goodput over time at each place, where all axes are of names",
    DELAYS: "distribution of the requests' delays at each place, seeds and networks together",
    COMPLETIONS: "distribution of the completion times at each place, seeds and networks together",
    EXPOSURE: "what one path sees of the bytes over goodput, of runs with segments",
    BENEFIT: "experimental aggregation benefit of several paths over the best one",
    **{name: f"{MEASURES[measure].title} over all places, as boxes" for name, measure in BOXES.items()},
    **{
        name: f"{MEASURES[measure].title}: part of the drawn networks within a factor of the best"
        for name, measure in PROFILES.items()
    },
}
"""The figures of a sweep by name, with a description."""


def named(kind: str) -> str:
    """A figure's present name, also of one that is named after a measure's old name."""
    form, _, measure = kind.partition("-")
    return f"{form}-{settled(measure)}" if kind not in KINDS and measure in OLD else kind


SHARED: Final = (BENEFIT, *BOXES)
"""Those that several sweeps may share."""

USUAL: Final = tuple(name for name in KINDS if name not in (DELAYS, COMPLETIONS, EXPOSURE, *SHARED, *PROFILES))
"""Those that `polypath run --plot` draws. The others read every run of the sweep, or want many places."""


def needs(name: str) -> str:
    """What a sweep must have for a figure."""
    return {
        GRID: f"two axes or more, all of names, with at most {MOST_PANELS} places",
        DELAYS: f"an application that waits for answers, and 2 to {pooled.MOST_CURVES} places besides the seeds",
        COMPLETIONS: f"runs that finish, and 2 to {pooled.MOST_CURVES} places besides seeds and drawn networks",
        EXPOSURE: f"recorded segments, and one or two axes, the first with at most {exposures.MOST_CURVES} values",
        BENEFIT: "runs over a single path beside the same over several",
        **dict.fromkeys(CURVES, "an axis besides the seed, and a value other than 0"),
        **dict.fromkeys(PROFILES, "drawn networks, one other axis besides the seed, and a value at every place"),
        **dict.fromkeys(BOXES, f"a value, and several seeds or an axis with more than {boxes.MOST_BOXES} values"),
    }[name]


#: Gives the recordings of the places on some axes.
Loader = Callable[[Sequence[Axis]], Places]


def draw(name: str, result: Swept, places: Loader, look: Look | None = None) -> Figure | None:
    """A figure; None where the sweep has nothing for it. Raises KeyError for a name that is none."""
    if name == GRID:
        axes = drawn_axes(result.axes)
        return draw_grid(result.name, result.axes, places(axes), look) if axes else None
    if name == DELAYS:
        axes = pooled.drawn_axes(result.axes)
        return pooled.draw_delays(result.name, axes, places(axes), look) if axes else None
    if name == COMPLETIONS:
        return pooled.draw_completions(result.name, result.axes, result.points, look)
    if name == EXPOSURE:
        axes = exposures.drawn_axes(result.axes)
        return exposures.draw_exposures(result.name, axes, places(axes), look) if axes else None
    if name in PROFILES:
        return draw_profiles(result, PROFILES[name], look)
    if name in SHARED:
        return draw_shared(name, [result], look)
    return draw_curves(result, CURVES[name], look)


def draw_shared(name: str, results: Sequence[Swept], look: Look | None = None) -> Figure | None:
    """A figure of `SHARED` with several sweeps; None where they have nothing for it."""
    if name == BENEFIT:
        return boxes.draw_benefits(results, look)
    return boxes.draw_measure(results, BOXES[name], look)


def save_shared(
    results: Sequence[Swept], directory: Path, names: Sequence[str], form: str = "png", look: Look | None = None
) -> list[Path]:
    """Draws figures of several sweeps; the files. Raises OutputError."""
    saved = []
    for name in names:
        figure = draw_shared(name, results, look)
        if figure is not None:
            saved.append(directory / f"{name}.{form}")
            with style(look):
                write(figure, saved[-1])
    return saved


def save_all(
    result: Swept,
    places: Loader,
    directory: Path,
    names: Sequence[str] | None = None,
    form: str = "png",
    look: Look | None = None,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Path]:
    """Draws figures of a sweep, the usual ones unless `names` chooses; the files. Raises OutputError."""
    chosen = list(USUAL if names is None else names)
    saved = []
    for number, name in enumerate(chosen):
        progress(number, len(chosen))
        figure = draw(name, result, places, look)
        if figure is not None:
            path = directory / f"{name}.{form}"
            with style(look):
                write(figure, path)
            saved.append(path)
    return saved
