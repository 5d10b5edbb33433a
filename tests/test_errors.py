"""Errors of the package have one base, so that one clause catches them."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import polypath
from polypath import PolypathError

PACKAGE = Path(polypath.__file__).parent


def errors() -> set[type]:
    """The classes that say by their bases that they are exceptions.

    Those of one module alone are left out, and the stand-ins of Mininet, which run in a process without Polypath.
    """
    found = set()
    for path in PACKAGE.rglob("*.py"):
        if "standin" in path.parts:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
                if any(base.endswith(("Error", "Exception")) for base in bases):
                    name = ".".join(("polypath", *path.relative_to(PACKAGE).with_suffix("").parts))
                    found.add(getattr(importlib.import_module(name.removesuffix(".__init__")), node.name))
    return found


def test_every_error_is_a_polypath_error() -> None:
    found = errors()
    assert {each.__name__ for each in found if not issubclass(each, PolypathError)} == set()
    for name in ("CaptureError", "EngineError", "MetricError", "OutputError", "ScenarioError"):
        assert getattr(polypath, name) in found
