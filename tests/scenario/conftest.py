"""The scenario layer is tested against a small registry of its own, so that messages do not move with the engine."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from polypath import registry

ALGORITHMS = json.loads((Path(__file__).parent / "registry.json").read_text())


@pytest.fixture(autouse=True)
def small_registry(replace_registry: Callable[[Callable[[registry.Kind], str]], None]) -> None:
    engine = registry.read
    replace_registry(lambda kind: json.dumps(ALGORITHMS[kind]) if kind in ALGORITHMS else engine(kind))


@pytest.fixture
def two_paths() -> str:
    return (Path(__file__).parent / "two_paths.toml").read_text()
