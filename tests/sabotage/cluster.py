"""A sweep on a Dask cluster of this machine whose parts die: the same command goes on, and nothing is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from ..processes import wait
from .registry import Lost, sabotage
from .sweeps import LIMIT_S, POINTS, Place


class Cluster:
    """A scheduler and two workers, each a process."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.scheduler = self._scheduler()
        self.workers = [self._worker(), self._worker()]

    def _scheduler(self) -> subprocess.Popen[bytes]:
        told = self.folder / "scheduler.json"
        told.unlink(missing_ok=True)
        scheduler = self._started("scheduler", "--port", "0", "--scheduler-file", str(told))
        self.address = str(json.loads(wait(lambda: told.exists() and told.read_text()) or "")["address"])
        return scheduler

    def _worker(self) -> subprocess.Popen[bytes]:
        options = ("--nthreads", "1", "--no-nanny", "--local-directory", str(self.folder))
        return self._started("worker", self.address, *options)

    def _started(self, what: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", what, *arguments, "--host", "127.0.0.1", "--no-dashboard"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill_worker(self, draw: random.Random) -> None:
        worker = self.workers.pop(draw.randrange(len(self.workers)))
        worker.kill()
        worker.wait()
        self.workers.append(self._worker())

    def kill_scheduler(self) -> None:
        self.end()
        self.scheduler = self._scheduler()
        self.workers = [self._worker(), self._worker()]

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


def _clustered(draw: random.Random, folder: Path, what: str) -> int:
    place, cluster = Place(folder / "home"), Cluster(folder / "dask")
    blows = draw.randint(1, 3)
    try:
        for _ in range(blows):
            process = place.start("--cluster", cluster.address)
            count = len(place.done()) + draw.randrange(1, POINTS // 2)
            wait(lambda count=count, process=process: len(place.done()) >= count or process.poll() is not None)  # type: ignore[misc]
            match what:
                case "worker":
                    cluster.kill_worker(draw)
                case "scheduler":
                    cluster.kill_scheduler()
                case _:
                    os.killpg(process.pid, signal.SIGKILL)
            _, said = process.communicate(timeout=LIMIT_S)
            if "Traceback" in said:
                raise Lost(f"a traceback: {said.strip()}")
            place.keep_notes()
        place.finish("--cluster", cluster.address)
    finally:
        cluster.end()
    return blows


@sabotage("cluster-worker-killed", "cluster", "kill -9 of workers")
def worker(draw: random.Random, folder: Path) -> int:
    return _clustered(draw, folder, "worker")


@sabotage("cluster-scheduler-killed", "cluster", "kill -9 of the scheduler with all its workers")
def scheduler(draw: random.Random, folder: Path) -> int:
    return _clustered(draw, folder, "scheduler")


@sabotage("cluster-command-killed", "cluster", "kill -9 of the command")
def command(draw: random.Random, folder: Path) -> int:
    return _clustered(draw, folder, "command")
