"""Folders for the user's data that are no results (XDG Base Directory Specification)."""

from __future__ import annotations

import os
from pathlib import Path


def cache() -> Path:
    """The folder for what is built once."""
    return _base("XDG_CACHE_HOME", ".cache")


def state() -> Path:
    """The folder for what is remembered between commands."""
    return _base("XDG_STATE_HOME", ".local/state")


def _base(variable: str, otherwise: str) -> Path:
    given = os.environ.get(variable) or ""
    root = Path(given) if given.startswith("/") else Path.home() / otherwise
    return root / "polypath"
