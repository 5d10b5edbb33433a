"""The legend of a narrow figure: below the panels, in as many columns as fit, in little of its height."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

#: Inches: below this width a legend beside the panels leaves them too little.
NARROW: Final = 5.0
#: Parts of the figure that it may take across and up; where it is higher, its text is smaller.
_ACROSS: Final = 0.96
_UP: Final = 0.3
_MOST_COLUMNS: Final = 6
_SIZES: Final = ("small", "x-small", "xx-small")
#: In font sizes.
_TIGHT: Final[dict[str, Any]] = {
    "handlelength": 1.4,
    "handletextpad": 0.5,
    "columnspacing": 1.0,
    "labelspacing": 0.3,
    "borderpad": 0.2,
}


def is_narrow(figure: Figure) -> bool:
    """Whether the legend goes below. A figure whose panels somebody else arranges keeps it beside them."""
    return float(figure.get_size_inches()[0]) < NARROW and isinstance(
        figure.get_layout_engine(), ConstrainedLayoutEngine
    )


def below(figure: Figure, heading: str | None = None) -> None:
    """Puts one legend of all panels below them, in place of those there are."""
    found: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    for legend in list(figure.legends):
        legend.remove()
    if found:
        _put(figure, list(found.values()), list(found), heading)


def _put(figure: Figure, handles: Sequence[Artist], labels: Sequence[str], heading: str | None) -> None:
    renderer = RendererAgg(1, 1, figure.dpi)  # type: ignore[no-untyped-call]
    width, height = (float(inches) * figure.dpi for inches in figure.get_size_inches())
    for size in _SIZES:
        for columns in range(min(len(handles), _MOST_COLUMNS), 0, -1):
            legend = figure.legend(
                handles,
                labels,
                title=heading,
                loc="outside lower center",
                ncols=columns,
                fontsize=size,
                title_fontsize=size,
                **_TIGHT,
            )
            box = legend.get_window_extent(renderer)
            if box.width <= _ACROSS * width:
                break
            if columns > 1 or size != _SIZES[-1]:
                legend.remove()
        if box.width <= _ACROSS * width and box.height <= _UP * height:
            return
        if size != _SIZES[-1] and legend in figure.legends:
            legend.remove()
