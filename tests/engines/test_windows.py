"""Two subflows and what limits them: a receive window that they share, send buffers."""

import pytest

from polypath import labs
from polypath.engines import Options, get
from polypath.fidelity import catalogue
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


@pytest.mark.parametrize(
    ("delay", "mbps", "first_share"),
    [("19.999 ms", 35.74, 50.6), ("20 ms", 35.72, 50.6), ("20.001 ms", 31.86, 44.5)],
)
def test_a_microsecond_decides_where_slow_start_ends_as_in_the_kernel(
    delay: str, mbps: float, first_share: float
) -> None:
    """Full send buffers; goodput and share are the kernel's."""
    scenario = next(entry for entry in catalogue() if entry.name == "mptcp-send-buffer").scenario()
    plan = scenario.with_settings(["application.bulk.duration=5 s", f"link.path1.delay={delay}"]).plan()
    recording = get("sim").run(plan, Options())
    (connection,) = metrics.connections(recording)
    assert metrics.goodput(recording, connection) == pytest.approx(mbps * 1e6, rel=0.01)
    first = metrics.subflows(recording, connection)[0]
    assert (first.share or 0) * 100 == pytest.approx(first_share, abs=0.5)
