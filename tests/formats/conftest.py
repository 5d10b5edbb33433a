"""The importer is tested against the scenario tests' small registry."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from polypath import registry

ALGORITHMS = json.loads((Path(__file__).parents[1] / "scenario" / "registry.json").read_text())


@pytest.fixture(autouse=True)
def small_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "read", lambda kind: json.dumps(ALGORITHMS[kind]))
    registry.entries.cache_clear()
    yield
    registry.entries.cache_clear()
