"""Runs of labs, each once for all tests of the page, and a scenario of theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Final

import pytest

from polypath import engines, labs
from polypath.engines import Options
from polypath.results import Recording

Ran = Callable[..., Recording]

DATAGRAMS: Final = """
duration = "1 s"
defaults = { path_manager = "fullmesh" }
host = { client = {}, server = {} }
link.wifi = { ends = ["client", "server"], rate = "20 Mbps", delay = "10 ms" }
link.lte = { ends = ["client", "server"], rate = "10 Mbps", delay = "30 ms" }
application = [
    { name = "s", kind = "messages", transport = "mpquic", interval = "20 ms", size = "1 kB", delivery = "datagrams" },
    { name = "tone", kind = "cbr", rate = "1 Mbps" },
    { name = "ping", kind = "ping" },
]
"""


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
