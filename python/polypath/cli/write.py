"""Text that a command makes: to a file or to standard output."""

from __future__ import annotations

import sys
from pathlib import Path

from polypath.results.files import write_text


def write(text: str, path: Path | None) -> None:
    if path is None:
        sys.stdout.write(text)
    else:
        write_text(path, text)
