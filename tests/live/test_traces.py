"""A link's delivery opportunities in real time."""

from collections.abc import Callable
from pathlib import Path

import pytest

from polypath.engines.live.machine import Machine
from polypath.results import Recording, metrics

Run = Callable[..., Recording]


def test_a_link_may_follow_a_trace(live: Run, machine: Machine, tmp_path: Path) -> None:
    if machine.netem:
        pytest.skip("this machine's kernel has netem, which shapes at a rate")
    (tmp_path / "trace").write_text("6\n")  # a packet each 6 ms: 2 Mbps
    trace = f'link.path0.rate={{ trace = "{tmp_path}/trace" }}'
    recording = live("two_paths", trace, "application.bulk.transport=tcp")
    rate = metrics.goodput(recording, metrics.connection(recording, "bulk"))
    assert rate is not None
    assert 0.8 < rate / 1e6 < 2
