"""Errors of the package have one base, so that one clause catches them."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import polypath
from polypath import PolypathError

PACKAGE = Path(polypath.__file__).parent
SMALL = """
duration = "100 ms"
host = { client = {}, server = {} }
link.path0 = { ends = ["client", "server"], rate = "10 Mbps", delay = "10 ms" }
[[application]]
name = "bulk"
kind = "bulk"
"""


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


def test_wrong_arguments_raise_the_package_s_own_errors(tmp_path: Path) -> None:
    scenario = polypath.Scenario.parse(SMALL, "small.toml")
    for wrong, message in (
        ({"captures": "host", "directory": tmp_path}, "unknown captures 'host'; did you mean 'hosts'?"),
        ({"engine": "simm"}, "unknown engine 'simm'; did you mean 'sim'?"),
        ({"seed": -1}, "seed: must be at least 0, not -1"),
    ):
        with pytest.raises(PolypathError) as caught:
            polypath.run(scenario, **wrong)
        assert str(caught.value) == message
    with pytest.raises(PolypathError, match="a plan has its seed: give this one to the scenario"):
        polypath.run(scenario.plan(), seed=7)
    assert polypath.run(scenario.plan(7)).metadata.seed == 7
    with pytest.raises(polypath.CaptureError, match="must be at least 1 ns, not 0"):
        polypath.from_pcap(tmp_path / "a.pcap", interval_ns=0)
