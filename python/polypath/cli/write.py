"""Text that a command makes: to a file or to standard output."""

from __future__ import annotations

from pathlib import Path

from polypath.cli.console import out
from polypath.results.files import write_text


def write(text: str, path: Path | None) -> None:
    if path is None:
        out.print(text, end="", markup=False, soft_wrap=True)
    else:
        write_text(path, text)
