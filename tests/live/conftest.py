"""Runs on the machine's own kernel; skipped, with the reason, where nothing can run there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from polypath.engines import EngineError, Options
from polypath.engines.live import LiveEngine
from polypath.engines.live.machine import Machine, probe
from polypath.results import Recording
from polypath.scenario import Plan, Scenario

HERE = Path(__file__).parent

Plans = Callable[..., Plan]
Run = Callable[..., Recording]


@pytest.fixture
def plans() -> Plans:
    """The plan of a file in this folder with settings changed."""

    def load(name: str, *settings: str) -> Plan:
        return Scenario.load(HERE / f"{name}.toml").with_settings(list(settings)).plan(None)

    return load


@pytest.fixture(scope="session")
def machine() -> Machine:
    try:
        return probe()
    except EngineError as error:
        pytest.skip(str(error))


@pytest.fixture
def live(machine: Machine, plans: Plans) -> Run:
    def run(name: str, *settings: str, options: Options | None = None) -> Recording:
        return LiveEngine().run(plans(name, *settings), options or Options())

    return run
