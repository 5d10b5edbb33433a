"""What campaigns keep: rows in a file, in a folder of the program that made them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

_Row = TypeVar("_Row")


def rows(path: Path, load: Callable[[str], _Row]) -> list[_Row]:
    """What is there already; a line that was cut is left out."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [load(line) for line in lines if line.endswith("\n")]


def digest(files: Iterable[Path], beside: str = "") -> str:
    """A name for what rows are of: another content of one of the files, or another text, gives another one. Raises
    OSError."""
    total = hashlib.sha256(beside.encode())
    for path in files:
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:12]
