"""Output of a command to a file or to standard output."""

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


def require_new(target: Path) -> None:
    """Raises InputError where something has the name of the file to be written."""
    if target.exists() or target.is_symlink():
        raise InputError(f"{target} exists; name another file, or remove it")


def write(text: str, path: Path | None) -> None:
    """To a new file, or to one that holds the same already. Raises InputError, OutputError."""
    if path is None:
        out.verbatim(text)
    elif not (path.is_file() and path.read_bytes() == text.encode()):
        require_new(path)
        write_text(path, text)
