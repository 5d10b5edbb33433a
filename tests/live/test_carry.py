"""What the simulated network writes while it runs in real time; no interface and no namespace is needed."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from polypath import _core
from polypath.engines.namespaces import logs
from polypath.scenario import Plan

from ..processes import LIMIT_S, wait

Plans = Callable[..., Plan]
INTERVAL_S = 0.05


def test_samples_are_written_as_they_come_and_end_with_the_run(plans: Plans, tmp_path: Path) -> None:
    log = tmp_path / "links"
    plan = json.dumps(plans("two_paths", f"record.interval={INTERVAL_S} s").data)
    stop, tell = os.pipe()
    given: list[tuple[int, int, int, int]] = []
    carrier = threading.Thread(target=lambda: given.append(_core.carry(plan, "[]", [], stop, 0, str(log))))
    carrier.start()
    try:
        each = len(wait(lambda: logs.read_queues(log)))
        wait(lambda: len(logs.read_queues(log)) > 3 * each)
        os.write(tell, bytes([signal.SIGUSR1]))
        time.sleep(4 * INTERVAL_S)
        samples = logs.read_queues(log)
        time.sleep(4 * INTERVAL_S)
        assert carrier.is_alive()
        assert logs.read_queues(log) == samples
    finally:
        os.write(tell, bytes([signal.SIGTERM]))
        carrier.join(LIMIT_S)
    assert given == [(0, 0, 0, 0)]
    assert logs.read_queues(log) == samples
    assert {sample.busy_ns for sample in samples} == {0}
