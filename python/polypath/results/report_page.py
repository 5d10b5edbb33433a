"""A report page in a notebook."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from polypath.results.files import write_text

#: Pixels of the page's frame.
_HEIGHT: Final = 640


@dataclass(frozen=True)
class Report:
    """A run's report page: shown in a notebook, or saved as a file that needs no network."""

    text: str

    def save(self, path: Path | str) -> None:
        """Writes the page. Raises OutputError."""
        write_text(Path(path), self.text)

    def _repr_html_(self) -> str:
        source = html.escape(self.text, quote=True)
        return f'<iframe srcdoc="{source}" style="width:100%;height:{_HEIGHT}px;border:1px solid #ccc"></iframe>'
