"""Mininet's custom topology files (github.com/mininet/mininet, release 2.3), and those that `mn --topo` names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polypath.formats.mininet.asked import Asked, link
from polypath.formats.mininet.convert import NOTHING, Wanted, convert
from polypath.formats.mininet.process import described
from polypath.scenario import Scenario
from polypath.scenario.reading import read_text

__all__ = ["Asked", "Wanted", "link", "load"]


def load(
    file: Path | None,
    asked: Asked | None = None,
    wanted: Wanted = NOTHING,
    *,
    links: Mapping[str, Any] | None = None,
    leave_controllers_out: bool = False,
) -> tuple[Scenario, str, list[str]]:
    """The scenario of a topology, comments for the end of its file, and what has no effect or differs, a line each.

    Without `file` the topology is one that `mn` has by name; `asked` is not None then. The class runs in a process of
    its own. Raises ScenarioError with file and line for what cannot be read, run or represented.
    """
    text = None if file is None else read_text(file, "Mininet topology")
    name = None if file is None else str(file)
    found = described(name, text, asked or Asked(), leave_controllers_out=leave_controllers_out)
    return convert(found, name, asked, wanted, links or {})
