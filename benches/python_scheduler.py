"""What a decision of a scheduler in Python costs, beside the same rule in Rust: CPU time over the number of decisions.

python benches/python_scheduler.py [SECONDS]
"""

from __future__ import annotations

import sys
import time

import polars as pl

from polypath import labs, run
from polypath.scenario import Scenario

SETTINGS = ["record.decisions=true", "record.interval=10 s"]


def measured(scenario: Scenario) -> tuple[float, int]:
    """CPU seconds and the number of segments that the scheduler placed."""
    before = time.process_time()
    recording = run(scenario)
    spent = time.process_time() - before
    return spent, recording.table("events").filter(pl.col("kind") == "scheduler").height


def main() -> None:
    seconds = sys.argv[1] if len(sys.argv) > 1 else "100"
    lab = labs.get("python-scheduler")
    longer = [*SETTINGS, f"duration={float(seconds) + 5:g} s", f"application.iperf.duration={seconds} s"]
    python = lab.scenario().with_settings(longer)
    rust = python.with_settings(["host.client.scheduler.kind=weighted-roundrobin"])
    of_rust, decisions = measured(rust)
    of_python, same = measured(python)
    assert decisions == same, "the two rules differ"
    print(f"{decisions} segments: {of_rust:.2f} s in Rust, {of_python:.2f} s in Python")
    print(f"{1e6 * (of_python - of_rust) / decisions:.2f} us more for each segment")


if __name__ == "__main__":
    main()
