"""Placeholders for parts of Mininet that a topology may name but an import does not run."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import types
from collections.abc import Sequence
from typing import Any

from ._place import Refused


class NotRun(type):
    """The type of classes that can be named and inherited from; making an instance is refused."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise Refused(f"{cls.__name__}(..) is not run: an import reads the topology class and nothing else")


def placeholder(name: str) -> NotRun:
    """A class or function of that name; AttributeError for names that Python itself asks for."""
    if name.startswith("__"):
        raise AttributeError(name)
    return NotRun(name, (), {})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives a module of placeholders for each of Mininet's modules that has no stand-in."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith("mininet."):
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = types.ModuleType(spec.name)
        module.__getattr__ = placeholder  # type: ignore[method-assign]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to execute."""
