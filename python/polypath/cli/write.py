"""Text that a command makes: to a file or to standard output."""

from __future__ import annotations

from pathlib import Path

from polypath.cli.console import out
from polypath.cli.errors import InputError
from polypath.results.files import write_text


def require_not_read(target: Path, *inputs: Path) -> None:
    """Raises InputError where the file to be written is one that is read, under whatever name."""
    for path in inputs:
        try:
            same = target.samefile(path)
        except OSError:
            continue
        if same:
            raise InputError(f"{target} is an input of this command; name another file")


def write(text: str, path: Path | None) -> None:
    if path is None:
        out.print(text, end="", markup=False, soft_wrap=True)
    else:
        write_text(path, text)
