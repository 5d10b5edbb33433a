"""A native module that replaces the package's own, with additional algorithms (docs/extend.md)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

from polypath.errors import PolypathError

#: Names the file.
VARIABLE: Final = "POLYPATH_CORE"

_MODULE: Final = "polypath._core"


class ExtensionError(PolypathError, ImportError):
    """The file is no native module of this package."""


class _Loader(ExtensionFileLoader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        try:
            return super().create_module(spec)
        except ImportError as error:
            raise ExtensionError(f"{VARIABLE}: {error}") from error


class _Finder:
    def __init__(self, file: str) -> None:
        # sweeps and clusters work in other folders
        self.file = str(Path(file).absolute())

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _MODULE:
            return None
        return spec_from_file_location(name, self.file, loader=_Loader(name, self.file))


def install(file: str) -> None:
    """Has the package import that file as its native module."""
    sys.meta_path.insert(0, _Finder(file))
