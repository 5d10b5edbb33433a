"""What rows are of: another program, or another kernel, gives others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from assurance.kept import digest

import polypath
from polypath import _core
from polypath.engines.linux.kernel import find

from .compared import GENERATOR


def _files() -> Iterator[Path]:
    yield GENERATOR
    yield Path(_core.__file__)
    for folder in (Path(polypath.__file__).parent / "engines", Path(__file__).parent):
        yield from sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".c", ".h"))


def program() -> str:
    """A digest of the simulator, the generator, the engines, this comparison and the kernel. Raises KernelError, and
    OSError where something is not built yet."""
    return digest(_files(), find().sha256)
