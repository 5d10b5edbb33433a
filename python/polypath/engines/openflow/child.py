"""The application's process: eventlet's hub waits for the simulation instead of sockets and clocks.

It is a program, not a module of the package. It receives the application over a pipe, then repeatedly the simulated
time and the data of the control channels. It answers with the data sent on them, and with the time at which it wants to
continue.
"""

from __future__ import annotations

import itertools
import logging
import math
import os
import random
import sys
import tempfile
import time
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.pop(0)  # this file's folder

import eventlet
import eventlet.hubs
from eventlet.hubs.hub import BaseHub
from eventlet.hubs.timer import Timer
from eventlet.semaphore import Semaphore

NANOSECONDS = 1_000_000_000


class Simulation:
    """The other end of the pipe: the time there, and the control channels."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe
        self.now_ns = 0
        self.sent: list[tuple[int, bytes]] = []
        self.channels: dict[int, Channel] = {}
        self.folder = ""

    def seconds(self) -> float:
        return self.now_ns / NANOSECONDS

    def nanoseconds(self) -> int:
        return self.now_ns

    def wait(self, seconds: float) -> None:
        """Lets simulated time go on until something comes, at most so long."""
        deadline = self.now_ns + max(1, math.ceil(seconds * NANOSECONDS))
        sent, self.sent = self.sent, []
        try:
            self.pipe.send(("ran", sent, deadline))
            self.now_ns, arrived = self.pipe.recv()
        except (EOFError, OSError):
            os._exit(0)
        for datapath, data in arrived:
            if datapath not in self.channels:
                self.channels[datapath] = Channel(self, datapath)
                connect(self.channels[datapath])
            self.channels[datapath].feed(data)

    def fail(self, error: BaseException) -> None:
        """Ends the run: the innermost line of the application that the error passed through, and what it is."""
        place = self.place(error)
        text = " ".join(str(error).split())
        kind = type(error).__name__
        self.pipe.send(("failed", f"{place}: {kind}: {text}" if text else f"{place}: {kind}"))
        os._exit(1)

    def place(self, error: BaseException) -> str:
        if isinstance(error, SyntaxError) and error.filename and error.filename.startswith(self.folder):
            return f"{Path(error.filename).name}:{error.lineno}"
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(self.folder)]
        return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else self.app

    app = ""


class Channel:
    """A control channel as os-ken uses a socket."""

    def __init__(self, simulation: Simulation, datapath: int) -> None:
        self.simulation = simulation
        self.datapath = datapath
        self.data = bytearray()
        self.more = Semaphore(0)
        self.closed = False

    def feed(self, data: bytes) -> None:
        self.data += data
        self.more.release()

    def recv(self, size: int) -> bytes:
        while not self.data and not self.closed:
            self.more.acquire()
        taken = bytes(self.data[:size])
        del self.data[:size]
        return taken

    def sendall(self, data: bytes) -> None:
        if not self.closed:
            self.simulation.sent.append((self.datapath, bytes(data)))

    def close(self) -> None:
        self.closed = True
        self.more.release()

    def shutdown(self, _how: int) -> None:
        pass

    def setsockopt(self, *_options: object) -> None:
        pass

    def settimeout(self, _seconds: float | None) -> None:
        pass

    def getsockname(self) -> tuple[str, int]:
        return ("simulated", 6653)

    def getpeername(self) -> tuple[str, int]:
        return ("simulated", self.datapath)


def connect(channel: Channel) -> None:
    from os_ken.controller.controller import datapath_connection_factory

    eventlet.spawn(datapath_connection_factory, channel, channel.getpeername())


class Failures(logging.Handler):
    """os-ken logs what an application's handlers and threads raise and goes on; a run ends."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(logging.ERROR)
        self.simulation = simulation

    def emit(self, record: logging.LogRecord) -> None:
        # os-ken's threads log from within the handler of what was raised, without handing it over.
        error = (record.exc_info or sys.exc_info())[1]
        if error is not None:
            self.simulation.fail(error)


class NoServer:
    """In place of the server that os-ken would listen on: switches are in the simulation."""

    def __call__(self) -> None:
        eventlet.semaphore.Semaphore(0).acquire()


def main() -> None:
    simulation = Simulation(Connection(int(sys.argv[1])))
    given: dict[str, Any] = simulation.pipe.recv()
    simulation.app = given["file"]

    # eventlet orders what is due at one time by where it lies in memory, which differs from run to run.
    numbers = itertools.count()
    Timer.__lt__ = lambda self, other: self.number < other.number

    class Hub(BaseHub):  # type: ignore[misc]
        def __init__(self, clock: object = None) -> None:
            super().__init__(clock=simulation.seconds)

        def wait(self, seconds: float | None = None) -> None:
            if seconds is None or seconds > 0:
                simulation.wait(self.default_sleep() if seconds is None else seconds)

        def add_timer(self, timer: Any) -> Any:
            timer.number = next(numbers)
            return super().add_timer(timer)

        def add(self, *_arguments: object) -> object:
            raise OSError("a simulated controller has no sockets but those of its switches")

    eventlet.hubs.use_hub(Hub)
    eventlet.monkey_patch(os=False, thread=False)
    from os_ken.base.app_manager import AppManager
    from os_ken.controller import ofp_handler
    from oslo_config import cfg

    ofp_handler.OpenFlowController = NoServer
    for name in ("os_ken.base.app_manager", "os_ken.lib.hub"):
        logging.getLogger(name).addHandler(Failures(simulation))
    cfg.CONF([], project="os_ken", default_config_files=[], default_config_dirs=[])
    random.seed(given["seed"])
    time.time = time.monotonic = time.perf_counter = simulation.seconds
    time.time_ns = time.monotonic_ns = time.perf_counter_ns = simulation.nanoseconds
    with tempfile.TemporaryDirectory() as folder:
        simulation.folder = folder
        for file, source in {**given["modules"], given["file"]: given["source"]}.items():
            Path(folder, file).write_text(source, encoding="utf-8")
        sys.path.insert(0, folder)
        manager = AppManager.get_instance()
        try:
            manager.load_apps([Path(given["file"]).stem])
            if not any(cls.__module__ == Path(given["file"]).stem for cls in manager.applications_cls.values()):
                raise TypeError("there is no class derived from os_ken.base.app_manager.OSKenApp")
            contexts = manager.create_contexts()
            manager.instantiate_apps(**contexts)
        except Exception as error:
            simulation.fail(error)
    eventlet.hubs.get_hub().switch()


if __name__ == "__main__":
    main()
