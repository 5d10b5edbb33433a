"""A Dask cluster of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from .processes import wait

BIN = Path(sysconfig.get_path("scripts"))


class Cluster:
    """A scheduler and workers, each a process; at first without workers."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.workers: list[subprocess.Popen[bytes]] = []
        self._begin()

    def _begin(self) -> None:
        told = self.folder / "scheduler.json"
        told.unlink(missing_ok=True)
        self.scheduler = self._started("scheduler", "--port", "0", "--scheduler-file", told)
        self.address = str(json.loads(wait(lambda: told.exists() and told.read_text()) or "")["address"])

    def add(self, **environment: str) -> None:
        options = ("--nthreads", "1", "--no-nanny", "--local-directory", self.folder)
        self.workers.append(self._started("worker", self.address, *options, **environment))

    def kill(self, which: int) -> None:
        worker = self.workers.pop(which)
        worker.kill()
        worker.wait()

    def begin_anew(self) -> None:
        """Everything dies, and there is another scheduler with as many workers."""
        count = len(self.workers)
        self.end()
        self.workers.clear()
        self._begin()
        for _ in range(count):
            self.add()

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def run(self, *arguments: str | Path) -> subprocess.Popen[str]:
        command = [BIN / "polypath", "run", *arguments, "--cluster", self.address]
        return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def _started(self, what: str, *arguments: str | Path, **environment: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", what, *arguments, "--host", "127.0.0.1", "--no-dashboard"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )
