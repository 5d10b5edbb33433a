"""Figures as files: the same bytes each time, in formats for papers."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, BinaryIO, Final

from matplotlib.figure import Figure

from polypath.plots.png import Canvas
from polypath.plots.style import any_glyph, style
from polypath.results import UnknownName
from polypath.results.files import replacing

#: The formats of figures, and what each file says of itself: neither date nor version, which would change the bytes.
FORMATS: Final[dict[str, dict[str, Any]]] = {
    "png": {"Software": "polypath"},
    "svg": {"Creator": "polypath", "Date": None},
    "pdf": {"Creator": "polypath", "Producer": None, "CreationDate": None},
}


def write(figure: Figure, target: Path | str | BinaryIO, form: str | None = None) -> None:
    """Writes a figure, to a file in the format of its suffix. Raises OutputError, UnknownName for another format."""
    if not isinstance(target, (Path, str)):
        _save(figure, target, form or "png")
        return
    path = Path(target)
    with replacing(path) as temporary:
        _save(figure, temporary, form or path.suffix.removeprefix("."))


def _save(figure: Figure, target: Path | BinaryIO, form: str) -> None:
    if form not in FORMATS:
        raise UnknownName.of("format of figures", form, FORMATS)
    metadata = FORMATS[form]
    # what has been arranged fits; finding its edges would draw it again
    edges = None if figure.get_layout_engine() is None else "tight"
    if form == "png":
        Canvas(figure)  # becomes the figure's own
    with any_glyph():
        figure.savefig(target, format=form, bbox_inches=edges, metadata=metadata)


class Picture(Figure):
    """A figure that a notebook shows without pyplot."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        with style():
            _save(self, content, "png")
        return content.getvalue()
