"""Runs the simulated network in real time; the process that holds the TAP interfaces.

    drive.py CORE PLAN PORTS FIRST COUNT LOG

CORE is the native module's file, PLAN and PORTS are JSON, the interfaces are COUNT descriptors from FIRST on. Writes
`origin`, which tells a shell when the run begins, and at SIGTERM `LOG.tally`. At SIGUSR1 the run is over: LOG gets its
last sample then. It uses the standard library only, and starts in a moment.
"""

import importlib.util
import json
import os
import signal
import sys
import time
from pathlib import Path

#: The other programs get ready in that time.
LEAD_NS = 1_000_000_000


def main() -> None:
    core, plan, ports, first, count, log = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("polypath._core", core)
    if spec is None or spec.loader is None:
        raise SystemExit(f"guest: {core} is no module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    stop, wake = os.pipe()
    os.set_blocking(wake, False)
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda number, frame: None)
    signal.set_wakeup_fd(wake)
    texts = Path(plan).read_text(encoding="utf-8"), Path(ports).read_text(encoding="utf-8")
    origin, realtime = time.monotonic_ns() + LEAD_NS, time.time_ns() + LEAD_NS
    lines = f"export POLYPATH_ORIGIN={origin} POLYPATH_ORIGIN_REALTIME={realtime}\n"
    Path("origin.partial").write_text(lines, encoding="utf-8")
    Path("origin.partial").rename("origin")
    descriptors = list(range(int(first), int(first) + int(count)))
    try:
        tally = module.carry(*texts, descriptors, stop, time.monotonic_ns() - origin, log)
    except (ValueError, OSError) as error:
        raise SystemExit(f"guest: {error}") from error
    Path(f"{log}.tally").write_text(json.dumps(tally), encoding="utf-8")


main()
