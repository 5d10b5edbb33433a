"""Runs of labs, each once for all tests of the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from polypath import engines, labs
from polypath.engines import Options
from polypath.results import Recording

Ran = Callable[..., Recording]


@pytest.fixture(scope="session")
def ran() -> Ran:
    """A lab's run with its segments and further settings."""

    @cache
    def run(lab: str, name: str, *settings: str) -> Recording:
        known = labs.get(lab)
        scenario = next(each for each in known.runs if each.name == name).of(known.scenario())
        recording = engines.get("sim").run(scenario.with_settings(list(settings)).plan(), Options(segments=True))
        return replace(recording, metadata=replace(recording.metadata, scenario=f"{lab}/{name}"))

    return run
