"""minitopo's topology and experiment files (github.com/qdeconinck/minitopo), as the SIGCOMM 2020 tutorial uses them."""

from __future__ import annotations

from pathlib import Path

from polypath.formats.minitopo.convert import convert
from polypath.formats.minitopo.experiment import Experiment, parse_xp
from polypath.formats.minitopo.topology import Link, NetemAt, Topology, parse_topo
from polypath.scenario import Scenario
from polypath.scenario.reading import read_text

__all__ = ["Experiment", "Link", "NetemAt", "Topology", "load", "parse_topo", "parse_xp"]


def load(topo: Path, xp: Path) -> tuple[Scenario, list[str]]:
    """The scenario of a topology and an experiment file, and what of them has no effect, one line each.

    Raises ScenarioError with file and line for what cannot be read, is unknown, or cannot be run.
    """
    topology = parse_topo(read_text(topo, "minitopo topology"), str(topo))
    experiment = parse_xp(read_text(xp, "minitopo experiment"), str(xp))
    return convert(topology, experiment)
