"""The soak: what soak.toml describes, over and over, in the guest; ends at the first complaint of its kernel.

    python tests/linux/soak.py [--minutes 10] [--debug] [--seed 1]

More than ten minutes are run in parts, each in a guest of its own with the next seed. `--debug` takes the kernel with
KASAN and lockdep (`polypath kernel build --debug`).
"""

from __future__ import annotations

import argparse
import copy
import math
import sys
import time
from pathlib import Path
from typing import Any

from polypath.engines import EngineError, Options
from polypath.engines.linux import LinuxEngine
from polypath.results import Recording, metrics
from polypath.scenario import Plan, Scenario

SCENARIO = Path(__file__).with_name("soak.toml")
SECOND = 1_000_000_000
#: What a guest has memory for: it counts the buffers of all connections.
LONGEST_S = 600


def plan(seconds: float, seed: int = 1) -> Plan:
    """The scenario's period as often as it fits, at least once, each time with connections of its own."""
    data: dict[str, Any] = Scenario.load(SCENARIO).plan(None).data
    period = data["duration_ns"]
    rounds = max(1, math.ceil(seconds * SECOND / period))
    applications, events = data["applications"], data["events"]
    data["applications"] = [
        again(application, number * period, "start_ns")
        | {"name": f"{application['name']}-{number}", "port": application["port"] + number * len(applications)}
        for number in range(rounds)
        for application in applications
    ]
    data["events"] = [again(event, number * period, "at_ns") for number in range(rounds) for event in events]
    data["duration_ns"] = max(period, round(seconds * SECOND))
    data["record"]["interval_ns"] = SECOND
    data["seed"] = seed
    return Plan(data)


def again(entry: dict[str, Any], later_ns: int, field: str) -> dict[str, Any]:
    return copy.deepcopy(entry) | {field: entry[field] + later_ns}


def soak(seconds: float, debug: bool = False, seed: int = 1) -> Recording:
    """Raises EngineError with what the kernel complained about."""
    return LinuxEngine(debug).run(plan(seconds, seed), Options())


def main() -> int:
    parser = argparse.ArgumentParser(description="Soak the guest's kernel.")
    parser.add_argument("--minutes", type=float, default=10, help="simulated minutes (default 10)")
    parser.add_argument("--debug", action="store_true", help="the kernel with KASAN and lockdep")
    parser.add_argument("--seed", type=int, default=1, help="of the first part (default 1)")
    given = parser.parse_args()
    left, seed = 60 * given.minutes, given.seed
    while left > 0:
        part = min(left, LONGEST_S)
        started = time.monotonic()
        try:
            recording = soak(part, given.debug, seed)
        except EngineError as error:
            print(f"soak: seed {seed}: {error}", file=sys.stderr)
            return 1
        carried = sum(each.bytes for each in metrics.connections(recording))
        print(
            f"seed {seed}: {part / 60:g} min simulated in {time.monotonic() - started:.0f} s without a complaint: "
            f"{recording.table('connection_ends').height} connections, "
            f"{recording.table('subflow_ends').height} subflows, {carried / 1e6:.0f} MB",
            flush=True,
        )
        left, seed = left - part, seed + 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
