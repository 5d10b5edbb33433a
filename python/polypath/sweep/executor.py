"""Where the points of a sweep are computed: in this process, or on the cores of this machine.

An executor maps a function over items and gives each result with its item's index as soon as it is there. A cluster
is another class with the same method.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Protocol, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

#: How often a signal is looked for while results are awaited.
_WAKE_S = 0.1
#: How often a worker looks whether the process that started it is still there.
_WATCH_S = 0.5


class WorkerLost(RuntimeError):
    """The process that computed an item died, and died again when the item was its only one."""


class Executor(Protocol):
    """A KeyboardInterrupt while a result is awaited ends everything that is being computed."""

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item]
    ) -> Generator[tuple[int, _Result | WorkerLost], None, None]:
        """Results in any order. An exception of `function` is raised here."""
        ...


class Serial:
    """One item after the other, in this process."""

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item]
    ) -> Generator[tuple[int, _Result | WorkerLost], None, None]:
        for index, item in enumerate(items):
            yield index, function(item)


class Local:
    """Processes of this machine (loky), which end with this one, however it ends."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item]
    ) -> Generator[tuple[int, _Result | WorkerLost], None, None]:
        left: list[int] = []
        for index, result in self._pool(function, items, range(len(items)), self.workers):
            if isinstance(result, WorkerLost):
                left.append(index)
            else:
                yield index, result
        for index in left:  # one of these brought a process down, and with it those that ran beside it
            yield from self._pool(function, items, [index], 1)

    def _pool(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item], chosen: Sequence[int], workers: int
    ) -> Generator[tuple[int, _Result | WorkerLost], None, None]:
        from loky.process_executor import BrokenProcessPool, ProcessPoolExecutor, TerminatedWorkerError

        pool = ProcessPoolExecutor(max_workers=min(workers, len(chosen)), initializer=_begin, initargs=(os.getpid(),))
        try:
            running: dict[Future[Any], int] = {}
            waiting = list(reversed(chosen))
            lost: list[int] = []
            reason = "the process that ran it died"
            while running or (waiting and not lost):
                while waiting and not lost and len(running) < 2 * workers:
                    try:
                        running[pool.submit(function, items[waiting[-1]])] = waiting[-1]
                        waiting.pop()
                    except BrokenProcessPool:
                        lost.append(waiting.pop())
                # A signal may reach another thread; this one then sees it only when it wakes up.
                for future in wait(running, timeout=_WAKE_S, return_when=FIRST_COMPLETED).done:
                    index = running.pop(future)
                    try:
                        yield index, future.result()
                    except BrokenProcessPool as error:
                        lost.append(index)
                        if not isinstance(error, TerminatedWorkerError):
                            reason = str(error)
            for index in (*lost, *reversed(waiting)):
                yield index, WorkerLost(reason)
        finally:
            pool.shutdown(wait=True, kill_workers=True)


def _begin(parent: int) -> None:
    """In a worker: Ctrl-C is the parent's to handle, and nothing outlives the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH_S)
    os._exit(1)


def cores() -> int:
    """The cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def local(jobs: int | None, items: int) -> Executor:
    """As many processes as `jobs` (none: cores), but none for what one process does."""
    workers = min(cores() if jobs is None else jobs, items)
    return Serial() if workers <= 1 else Local(workers)
