"""Waiting for processes, and finding those of a run's folder."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def wait(condition: Callable[[], T]) -> T:
    """The condition's first true value; AssertionError after 20 s."""
    for _ in range(400):
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError("in vain")


def inside(folder: Path) -> list[str]:
    """Processes whose working directory is the folder, or was until it was removed."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str((process / "cwd").readlink()).removesuffix(" (deleted)") == str(folder):
                found.append(process.name)
        except OSError:
            continue
    return found
