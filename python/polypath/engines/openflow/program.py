"""The application's process, as a run sees it."""

from __future__ import annotations

import contextlib
import importlib.util
import multiprocessing
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from polypath import _core
from polypath.engines.base import EngineError

if TYPE_CHECKING:
    from polypath.plan.types import App

_CHILD = Path(__file__).with_name("child.py")
_PATIENCE_S = 2.0
#: A signal that comes before a wait begins is heard after so long.
_LOOK_UP_MS = 100

Messages = list[tuple[int, bytes]]


class Program:
    """Runs an application beside a simulation. It is told the time and what came, and says what it sends."""

    def __init__(self, app: App, seed: int) -> None:
        """Raises EngineError where os-ken is missing, or the application cannot be loaded."""
        self.file: str = app["file"]
        if importlib.util.find_spec("os_ken") is None:
            what = f"controller.app '{self.file}' needs os-ken"
            raise EngineError(f"{what}, which is not installed: pip install 'polypath[openflow]'")
        self._pipe, theirs = multiprocessing.Pipe()
        hub = {"OSKEN_HUB_TYPE": "eventlet", "PYTHONHASHSEED": "0"}
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(_CHILD), str(theirs.fileno())],
            env={**os.environ, **hub},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=sys.__stderr__ if _has_descriptor(sys.__stderr__) else subprocess.DEVNULL,
            # Ctrl-C is the run's, which ends the application.
            start_new_session=True,
        )
        theirs.close()
        self._readable = select.poll()
        self._readable.register(self._pipe.fileno(), select.POLLIN)
        self.deadline_ns = 0
        try:
            self._tell(simulation=None, message={**app, "seed": seed})
        except BaseException:
            self.close()
            raise

    def attend(self, simulation: _core.Simulation) -> None:
        """Lets the application run if something has come or its time is there. Raises EngineError where it fails."""
        arrived = simulation.controller_receives()
        now = simulation.now_ns
        if arrived or now >= self.deadline_ns:
            self._tell(simulation, (now, arrived))

    def _tell(self, simulation: _core.Simulation | None, message: object) -> None:
        try:
            self._pipe.send(message)
            # Polars has Ctrl-C restart a read (SA_RESTART), but nothing restarts a poll.
            while not self._readable.poll(_LOOK_UP_MS):
                pass
            kind, *answer = self._pipe.recv()
        except (EOFError, OSError) as error:
            code = self._process.wait(_PATIENCE_S)
            raise EngineError(f"{self.file}: the application ended with exit code {code}") from error
        if kind == "failed":
            raise EngineError(cast(str, answer[0]))
        sent, self.deadline_ns = cast(tuple[Messages, int], tuple(answer))
        if simulation is not None:
            for datapath, data in sent:
                simulation.controller_sends(datapath, data)

    def close(self) -> None:
        """Ends the application, even if a second signal cuts the wait short."""
        self._pipe.close()
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_PATIENCE_S)
        finally:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_PATIENCE_S)


def _has_descriptor(stream: Any) -> bool:
    try:
        return stream is not None and stream.fileno() >= 0
    except (OSError, ValueError):
        return False
