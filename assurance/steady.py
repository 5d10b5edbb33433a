"""Repeats the tests that count on real time: python assurance/steady.py [--runs 20] [--busy | --cpus 0.8]

`--busy` runs a busy process beside them on each core. `--cpus` limits their share of the machine's processors, in
their own cgroup, which needs root. The output has pytest's result of each run; the exit code is 1 if one failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ("tests/live", "assurance/interop")
PERIOD_US = 100_000
#: Of the cpu controller, version 2 and version 1.
CGROUPS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/cpu"))


@contextmanager
def spinning() -> Iterator[None]:
    """A process on each core that does nothing else than run."""
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for each in spinners:
            each.kill()
            each.wait()


@contextmanager
def throttled(cpus: float) -> Iterator[list[Path]]:
    """A cgroup with so many processors; what is to be in it writes its number into the files. Raises OSError."""
    quota = round(cpus * PERIOD_US)
    for root in CGROUPS:
        group = root / f"polypath-steady-{os.getpid()}"
        if not (root / "cgroup.procs").exists():
            continue
        group.mkdir()
        try:
            if (group / "cpu.max").exists():
                (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
            else:
                (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (group / "cpu.cfs_quota_us").write_text(str(quota))
            yield [group / "cgroup.procs"]
        finally:
            group.rmdir()
        return
    raise OSError("this machine has no cgroups of processors")


def run(groups: list[Path]) -> tuple[int, str]:
    """Exit code and last line of one run."""

    def enter() -> None:
        for file in groups:
            file.write_text(str(os.getpid()))

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "", "-p", "no:cacheprovider", *TESTS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=enter,
    )
    lines = done.stdout.splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return done.returncode, "\n".join([*failed, *lines[-1:]])


def repeat(runs: int, groups: list[Path]) -> int:
    wrong = 0
    for number in range(1, runs + 1):
        started = time.monotonic()
        code, told = run(groups)
        wrong += code != 0
        print(f"run {number} of {runs}, {time.monotonic() - started:.0f} s: {told}", flush=True)
    print(f"{runs - wrong} of {runs} runs passed")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the tests that count on real time over and over.")
    parser.add_argument("--runs", type=int, default=20, help="how often (default 20)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--busy", action="store_true", help="beside a full load on each core")
    how.add_argument("--cpus", type=float, help="with so many processors, for example 0.8")
    given = parser.parse_args()
    if given.busy:
        with spinning():
            return repeat(given.runs, [])
    if given.cpus is not None:
        with throttled(given.cpus) as groups:
            return repeat(given.runs, groups)
    return repeat(given.runs, [])


if __name__ == "__main__":
    sys.exit(main())
