"""The style of figures: fonts, sizes, and colours that colour-blind people can tell apart."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.colors import to_hex, to_rgb

from polypath.results import MetricError, OutputError
from polypath.results.palette import PALETTE

#: Points, and below which width in inches the smaller size is taken.
FONT: Final = 10.0
_SMALL_FONT: Final = 8.0
_SMALL: Final = 5.0

_STYLE: Final[dict[str, Any]] = {
    "font.family": "DejaVu Sans",
    "font.size": FONT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.8,
    "axes.titlesize": "medium",
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "figure.titlesize": "large",
    "figure.titleweight": "bold",
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "legend.fontsize": "medium",
    "figure.dpi": 100,
    "savefig.dpi": 150,
    # a dollar in a name is no formula
    "text.parse_math": False,
    # the same bytes each time, and fonts that publishers take (TrueType)
    "svg.hashsalt": "polypath",
    "pdf.fonttype": 42,
}
#: Lines that are in proportion to the default font size.
_SCALED: Final = ("lines.linewidth", "grid.linewidth", "axes.linewidth", "xtick.major.width", "ytick.major.width")


@dataclass(frozen=True)
class Look:
    """What can be chosen of a figure's look, whatever it shows."""

    #: Width and height in inches; None: as its panels need.
    size: tuple[float, float] | None = None
    #: Points; None: 10, in figures narrower than 5 inches 8.
    font_size: float | None = None
    #: Whether the figure has its title, and panels that need none have theirs.
    titles: bool = True
    #: A matplotlib style sheet, which comes before all of this but `size` and `font_size`.
    sheet: Path | None = None

    def __post_init__(self) -> None:
        """Raises MetricError for a size that no figure has."""
        for inches in self.size or ():
            if not 0 < inches < math.inf:
                raise MetricError(f"a figure is wider and higher than 0 inches, not {inches:g}")
        if self.font_size is not None and not 0 < self.font_size < math.inf:
            raise MetricError(f"text has more than 0 points, not {self.font_size:g}")

    @property
    def points(self) -> float:
        """The font size."""
        if self.font_size is not None:
            return self.font_size
        return _SMALL_FONT if self.size is not None and self.size[0] < _SMALL else FONT


#: The look in whose style matplotlib draws at the moment.
_ACTIVE: ContextVar[Look | None] = ContextVar("look", default=None)
_COLOURS: ContextVar[Sequence[str]] = ContextVar("colours", default=PALETTE)


@contextmanager
def style(look: Look | None = None) -> Iterator[None]:
    """Within it matplotlib draws as Polypath does. Raises OutputError for a style sheet that is none."""
    look = look or Look()
    if _ACTIVE.get() == look:
        yield
        return
    sheet = {} if look.sheet is None else _read(look.sheet)
    defaults: dict[str, Any] = dict(mpl.rcParamsDefault)  # type: ignore[arg-type]
    widths = {name: _STYLE.get(name, defaults[name]) * look.points / FONT for name in _SCALED}
    size = {"font.size": look.points} if look.font_size is not None or "font.size" not in sheet else {}
    colours, active = _COLOURS.set(_cycle(sheet)), _ACTIVE.set(look)
    try:
        with mpl.rc_context(_STYLE | widths | sheet | size), any_glyph():  # type: ignore[arg-type]
            yield
    finally:
        _COLOURS.reset(colours)
        _ACTIVE.reset(active)


@contextmanager
def any_glyph() -> Iterator[None]:
    """A context in which a character that the font lacks is a box in the figure, without a warning per character."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .*missing from font", category=UserWarning)
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support", category=UserWarning)
        yield


def _cycle(sheet: dict[str, Any]) -> Sequence[str]:
    """The colours of a style sheet's `axes.prop_cycle`; ours where it has none."""
    cycle = sheet.get("axes.prop_cycle")
    return PALETTE if cycle is None else cycle.by_key().get("color", PALETTE)


def _read(sheet: Path) -> dict[str, Any]:
    """matplotlib only logs what it does not know in a style sheet."""
    told = _Told()
    logger = logging.getLogger("matplotlib")
    before = logger.propagate
    logger.addHandler(told)
    logger.propagate = False
    try:
        found = mpl.rc_params_from_file(sheet, use_default_template=False)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error).splitlines()[0]
        raise OutputError(f"style sheet {sheet}: {reason}") from error
    finally:
        logger.removeHandler(told)
        logger.propagate = before
    for record in told.records:
        given = record.args if isinstance(record.args, dict) else {}
        key = str(given.get("key", "")).strip()
        near = get_close_matches(key, [str(each) for each in mpl.rcParams], 1) if key else []
        what = f"unknown key '{key}'" if key else " ".join(record.getMessage().split())
        raise OutputError(f"style sheet {sheet}: {what}" + (f"; did you mean '{near[0]}'?" if near else ""))
    return dict(found)  # type: ignore[arg-type]


class _Told(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def colour(index: int) -> str:
    """The colour of a number: of the palette, or of the style sheet's `axes.prop_cycle` where it has one."""
    palette = _COLOURS.get()
    return palette[index % len(palette)]


def rounded(value: float) -> str:
    """Three digits of a number, and all those before its point: 1.23, 1230."""
    return f"{float(f'{value:.3g}'):g}"


def listed(name: str) -> str:
    """A name as a legend takes it: matplotlib leaves out what begins with `_`."""
    return f" {name}" if name.startswith("_") else name


def shade(base: str, number: int, count: int) -> str:
    """The colour of one of `count` things of a common colour, from dark to light."""
    if count == 1:
        return base
    reach = min(1.0, 0.4 + 0.15 * (count - 1))
    place = (2 * number / (count - 1) - 1) * reach
    towards, part = (0.0, -0.5 * place) if place < 0 else (1.0, 0.65 * place)
    red, green, blue = (each + (towards - each) * part for each in to_rgb(base))
    return to_hex((red, green, blue))
