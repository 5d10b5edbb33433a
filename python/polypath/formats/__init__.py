"""Other tools' files: read into scenarios, and written from results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TextIO

from polypath.formats import netanim
from polypath.results import Recording

EXPORTERS: Mapping[str, Callable[[Recording, Path, TextIO], int]] = {"netanim": netanim.write}
"""By name, what writes a run and its captures; each returns the number of packets written."""
