"""What is handed in: files, or folders with a file of a known name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Submission:
    """Something handed in: what it is called, and its file, which need not exist."""

    name: str
    file: Path


def found(paths: Sequence[Path], file: str) -> list[Submission]:
    """Submissions by name. `file` is what the file of a folder is called; names that are there twice are the paths."""
    given = list(dict.fromkeys(paths))
    short = [path.name if path.is_dir() else path.stem for path in given]
    twice = {name for name, count in Counter(short).items() if count > 1}
    made = [
        Submission(str(path) if name in twice or not name else name, path / file if path.is_dir() else path)
        for path, name in zip(given, short, strict=True)
    ]
    return sorted(made, key=lambda each: each.name)
