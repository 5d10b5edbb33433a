"""The importer is tested against the scenario tests' small registry."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from polypath import registry

ALGORITHMS = json.loads((Path(__file__).parents[1] / "scenario" / "registry.json").read_text())


@pytest.fixture(autouse=True)
def small_registry(replace_registry: Callable[[Callable[[registry.Kind], str]], None]) -> None:
    engine = registry.read
    replace_registry(lambda kind: json.dumps(ALGORITHMS[kind]) if kind in ALGORITHMS else engine(kind))
