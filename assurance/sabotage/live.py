"""Runs on the machine's own stack, ended in every way: no process, namespace or folder of theirs is left."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from tests.processes import session, wait

from polypath.results import Recording

from .registry import Lost, sabotage
from .sweeps import COMMAND, LIMIT_S, storm

SCENARIO = """
name = "carried"
duration = "5 s"

[host.client]
[host.server]

[link.path0]
ends = ["client", "server"]
rate = "2 Mbps"
delay = "10 ms"

[link.path1]
ends = ["client", "server"]
rate = "2 Mbps"
delay = "20 ms"

[[application]]
name = "transfer"
kind = "bulk"
transport = "mptcp"
duration = "3 s"
"""
NOBODY = 65534
PREFIX = "polypath-live-"


def started(folder: Path, unprivileged: bool) -> subprocess.Popen[str]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "carried.toml").write_text(SCENARIO)
    command = [str(COMMAND), "run", "carried.toml", "--engine", "live", "--out", "out"]
    if unprivileged:
        shutil.chown(folder, NOBODY, NOBODY)
        shutil.chown(folder / "carried.toml", NOBODY, NOBODY)
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
    return subprocess.Popen(
        command,
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")},
    )


def _leftovers(process: int) -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob(f"{PREFIX}{process}-*"))


def _inside(names: set[str]) -> list[str]:
    """Processes in whose mount namespace one of these folders is the run's."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            mounts = (process / "mountinfo").read_text(encoding="utf-8")
            if any(f"{name} /run/job" in mounts for name in names):
                found.append(process.name)
    return found


def ended(draw: random.Random, folder: Path, unprivileged: bool, storms: bool) -> int:
    """One run, ended at any time of its life."""
    process = started(folder, unprivileged)
    if draw.random() < 0.8:
        wait(lambda: _leftovers(process.pid) or process.poll() is not None)
    time.sleep(draw.uniform(0, 4) if draw.random() < 0.5 else draw.uniform(0, 0.3))
    names = {path.name for path in _leftovers(process.pid)}
    blows = 1
    if storms:
        blows = storm(process, draw)
    else:
        process.send_signal(signal.SIGKILL)
    _, said = process.communicate(timeout=LIMIT_S)
    if "Traceback" in said:
        raise Lost(f"a traceback: {said.strip()}")
    names |= {path.name for path in _leftovers(process.pid)}
    for what, is_left in (
        ("processes", lambda: session(process.pid)),
        ("processes in its namespaces", lambda: _inside(names)),
        ("its folder", lambda: _leftovers(process.pid)),
    ):
        end = time.monotonic() + 60
        while is_left():
            if time.monotonic() > end:
                raise Lost(f"left behind: {what}: {is_left()}")
            time.sleep(0.05)
    if (folder / "out" / "manifest.json").exists():
        Recording.load(folder / "out")
    return blows


@sabotage("live-killed", "live", "kill -9 of the command, as root")
def killed(draw: random.Random, folder: Path) -> int:
    return ended(draw, folder, unprivileged=False, storms=False)


@sabotage("live-killed-unprivileged", "live", "kill -9 of the command, as an ordinary user")
def killed_unprivileged(draw: random.Random, folder: Path) -> int:
    return ended(draw, folder, unprivileged=True, storms=False)


@sabotage("live-signals", "live", "storms of signals to all its processes, as root")
def signals(draw: random.Random, folder: Path) -> int:
    return ended(draw, folder, unprivileged=False, storms=True)


@sabotage("live-signals-unprivileged", "live", "storms of signals to all its processes, as an ordinary user")
def signals_unprivileged(draw: random.Random, folder: Path) -> int:
    return ended(draw, folder, unprivileged=True, storms=True)
