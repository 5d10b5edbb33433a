"""What rows are of: another program, or another kernel, gives others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from assurance.kept import digest

import polypath
from polypath import _core
from polypath.engines.linux.kernel import find


def _files(campaign: Path) -> Iterator[Path]:
    yield Path(_core.__file__)
    for folder in (Path(polypath.__file__).parent / "engines", campaign):
        yield from sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".c", ".h"))


def program(campaign: Path, *others: Path) -> str:
    """A digest of the simulator, the engines, the kernel, a campaign's folder and other files of its own. Raises
    KernelError, and OSError where something is not built yet."""
    return digest([*others, *_files(campaign)], find().sha256)
