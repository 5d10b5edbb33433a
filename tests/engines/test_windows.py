"""Two subflows that share one receive window."""

import pytest

from polypath import labs
from polypath.engines import Options, get
from polypath.results import metrics


def test_a_subflow_does_not_wait_for_the_window_that_another_fills() -> None:
    """The connection's window is full all the time; by each subflow's own there is room, and nothing is deferred."""
    lab = labs.get("buffers")
    scenario = lab.scenario()
    first = scenario.at([axis.values[0] for axis in scenario.axes])
    plan = first.with_settings(["duration=2 s", "defaults.scheduler=linux"]).plan()
    recording = get("sim").run(plan, Options())
    (connection,) = metrics.connections(recording)
    # the kernel's goodput
    assert metrics.goodput(recording, connection) == pytest.approx(529e6, rel=0.03)
