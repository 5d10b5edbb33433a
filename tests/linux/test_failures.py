"""Connections that fail, on our own kernel."""

from collections.abc import Callable
from typing import Any

import pytest

from polypath.engines import get
from polypath.results import Recording
from polypath.scenario import Scenario

Run = Callable[..., Recording]
Load = Callable[..., Scenario]


def _transfer(recording: Recording) -> dict[str, Any]:
    (row,) = recording.table("connection_ends").to_dicts()
    return row


def test_a_run_ends_when_the_client_of_its_application_has_failed(linux: Run, scenario: Load) -> None:
    ours, theirs = linux("fails"), get("sim").run(scenario("fails").plan(None))
    for recording in (ours, theirs):
        assert _transfer(recording)["state"] == "timed-out"
        assert recording.metadata.end_ns == pytest.approx(_transfer(recording)["end_ns"], abs=1e6)
    assert ours.metadata.end_ns == pytest.approx(theirs.metadata.end_ns, rel=0.1)
