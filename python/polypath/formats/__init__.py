"""Other tools' files: read into scenarios, and written from results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TextIO

from polypath.results import Recording


def _netanim(recording: Recording, captures: Path, out: TextIO) -> int:
    from polypath.formats import netanim

    return netanim.write(recording, captures, out)


EXPORTERS: Mapping[str, Callable[[Recording, Path, TextIO], int]] = {"netanim": _netanim}
"""By name, what writes a run and its captures; each returns the number of packets written. Only what is asked for is
imported."""
