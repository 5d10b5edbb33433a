"""Scenarios for engine linux; runs of the guest are skipped, with the reason, where no kernel is built."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from polypath.engines import EngineError, Options
from polypath.engines.linux import LinuxEngine
from polypath.engines.linux.kernel import KernelError, find
from polypath.engines.linux.kernel.make import supported
from polypath.results import Recording
from polypath.scenario import Plan, Scenario

HERE = Path(__file__).parent

Run = Callable[..., Recording]


@pytest.fixture
def scenario() -> Callable[..., Scenario]:
    """The scenario of a file in this folder with settings changed."""

    def load(name: str, *settings: str) -> Scenario:
        return Scenario.load(HERE / f"{name}.toml").with_settings(list(settings))

    return load


@pytest.fixture
def linux(scenario: Callable[..., Scenario]) -> Run:
    """Runs a scenario in the guest, its plan changed where `change` says so."""
    try:
        supported()
        find()
    except KernelError as error:
        pytest.skip(str(error))

    def run(
        name: str,
        *settings: str,
        options: Options | None = None,
        change: Callable[[dict[str, Any]], None] = lambda data: None,
    ) -> Recording:
        data = scenario(name, *settings).plan(None).data
        change(data)
        return LinuxEngine().run(Plan(data), options or Options())

    return run


@pytest.fixture
def refusal(scenario: Callable[..., Scenario]) -> Callable[..., str]:
    """What the engine says of a plan that it does not take; no kernel is needed to say it."""

    def refused(change: Callable[[dict[str, Any]], None]) -> str:
        from polypath.engines.linux.engine import translate

        data = scenario("pair").plan(None).data
        change(data)
        with pytest.raises(EngineError) as caught:
            translate(data)
        return str(caught.value)

    return refused
