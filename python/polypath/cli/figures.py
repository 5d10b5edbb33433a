"""The options of figures: kinds, format and appearance."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polypath.cli.errors import InputError
from polypath.results import layout
from polypath.units import TIME, UnitError, nearest

if TYPE_CHECKING:
    from polypath.plots import Look

Kinds = Annotated[
    str | None,
    typer.Option(
        "--kind",
        metavar="A,B+C,..",
        help="Figures to draw: rate, window, rtt, sequence, beginning, acks, waits, causes, delays, cdf, fct, "
        "slowdown, player, quality, topology; A+B combines them in one. For a sweep: curve-goodput, grid-goodput, "
        "cdf-delay and so on.",
    ),
]
Format = Annotated[str, typer.Option("--format", metavar="|".join(layout.FIGURES), help="Format of the figures.")]
Size = Annotated[str | None, typer.Option("--size", metavar="WxH", help="Size of a figure in inches, such as 3.5x2.4.")]
FontSize = Annotated[float | None, typer.Option("--font-size", min=1, max=100, help="Font size in points.")]
NoTitle = Annotated[bool, typer.Option("--no-title", help="Leave out the title, for a figure with a caption.")]
Style = Annotated[
    Path | None,
    typer.Option("--style", metavar="FILE.mplstyle", help="A style sheet of matplotlib, which overrides the style."),
]
Smooth = Annotated[
    str | None, typer.Option("--smooth", metavar="TIME", help="Averaging time of rates. Default: from the RTT.")
]

_MOST_INCHES = 100.0
_THREADS = "OPENBLAS_NUM_THREADS"


@dataclass(frozen=True)
class Drawing:
    """What is to be drawn, and how; without names, what is usual."""

    names: Sequence[str] | None = None
    form: str = "png"
    size: tuple[float, float] | None = None
    font_size: float | None = None
    titles: bool = True
    sheet: Path | None = None
    smooth_s: float | None = None

    @property
    def look(self) -> Look:
        from polypath.plots import Look

        return Look(self.size, self.font_size, self.titles, self.sheet)


def drawing(
    kinds: str | None,
    form: str,
    size: str | None = None,
    font_size: float | None = None,
    no_title: bool = False,
    sheet: Path | None = None,
    smooth: str | None = None,
) -> Drawing:
    """Options as they were given. Raises InputError, in one line, for what is none; OutputError for the style sheet."""
    form = form.lower()
    if form not in layout.FIGURES:
        raise InputError(f"--format {form}: there is {', '.join(layout.FIGURES)}")
    smooth_s = None
    if smooth is not None:
        try:
            smooth_s = TIME.parse(smooth, positive=True) / 1e9
        except UnitError as error:
            hint = f"; did you mean '{error.hint}'?" if error.hint else ""
            raise InputError(f"--smooth {smooth}: {error.message}{hint}") from error
    names = None if kinds is None else _names(kinds)
    made = Drawing(names, form, _size(size), font_size, not no_title, sheet, smooth_s)
    if sheet is not None:
        ready()
        from polypath.plots import style

        with style(made.look):
            pass
    return made


def ready() -> None:
    """Imports `polypath.plots`, and numpy before it with a single thread.

    OpenBLAS, which comes with numpy, starts one for each core, and these wait for work in a loop; figures have none.
    What was imported stays: the collector need not look through it for cycles.
    """
    if "polypath.plots" in sys.modules:
        return
    before = os.environ.get(_THREADS)
    os.environ[_THREADS] = before or "1"
    try:
        import numpy  # noqa: F401
    finally:
        if before is None:
            del os.environ[_THREADS]
    import_module("polypath.plots")
    gc.freeze()


def of_runs(wanted: Drawing) -> list[str] | None:
    """The figures of runs that are asked for; None: the usual ones."""
    from polypath.plots import REGISTRY

    return None if wanted.names is None else [each for each in wanted.names if each.split("+")[0] in REGISTRY]


def files_of_runs(wanted: Drawing) -> list[str]:
    """Their files, as patterns."""
    from polypath.plots import file_name

    names = of_runs(wanted)
    return [file_name(name, wanted.form) for name in (["*"] if names is None else names)]


def of_sweeps(wanted: Drawing) -> list[str] | None:
    """The figures of sweeps that are asked for; None: all that there is something for."""
    from polypath.plots import sweeps

    return None if wanted.names is None else [each for each in wanted.names if each in sweeps.KINDS]


def undrawn(name: str) -> str:
    """What is said of a figure that was asked for and has nothing to show."""
    from polypath import plots
    from polypath.plots import sweeps

    found = [sweeps.needs(name)] if name in sweeps.KINDS else [kind.needs for kind in plots.kinds(name)]
    return f"'{name}' has nothing to show and is not drawn; it needs {'; '.join(dict.fromkeys(found))}"


def _names(text: str) -> list[str]:
    ready()
    from polypath.plots import REGISTRY, sweeps

    names = [sweeps.named(each.strip()) for each in text.split(",")]
    for name in names:
        if name not in sweeps.KINDS:
            for part in name.split("+"):
                _require_known(part, (*REGISTRY, *sweeps.KINDS))
                if part in sweeps.KINDS:
                    raise InputError(f"--kind {name}: '{part}' is of a sweep and stands alone in its figure")
                if "+" in name and REGISTRY[part].fitting is not None:
                    raise InputError(f"--kind {name}: '{part}' stands alone in its figure")
    return list(dict.fromkeys(names))


def _require_known(name: str, known: Iterable[str]) -> None:
    if name not in known:
        hint = nearest(name, known)
        better = f"did you mean '{hint}'?" if hint else f"there is {', '.join(known)}"
        raise InputError(f"--kind: unknown kind '{name}'; {better}")


def _size(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        width, height = map(float, text.lower().split("x"))
        if 0 < width <= _MOST_INCHES and 0 < height <= _MOST_INCHES:
            return width, height
    except ValueError:
        pass
    raise InputError(f"--size {text}: write the width and the height in inches, such as 3.5x2.4")
