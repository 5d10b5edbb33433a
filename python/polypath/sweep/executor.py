"""Where the points of a sweep are computed: in this process, or on the cores of this machine.

An executor maps a function over items and gives each result with its item's index as soon as it is there. A cluster
is another class with the same method. Results never depend on where an item was computed.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Final, Generic, Protocol, TypeVar

from polypath.errors import PolypathError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

#: How often a signal is looked for while results are awaited.
_WAKE_S = 0.1
#: How often this process looks whether workers would pay.
_LOOK_S = 0.02
#: How often a worker looks whether the process that started it is still there.
_WATCH_S = 0.5
#: What starting workers takes at most: each imports the package while the machine's cores are wanted for items.
_START_S: Final = 2.0


class WorkerLost(PolypathError, RuntimeError):
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
        yield from self.some(function, items, range(len(items)), threading.Event())

    def some(
        self,
        function: Callable[[_Item], _Result],
        items: Sequence[_Item],
        chosen: Sequence[int],
        stopped: threading.Event,
    ) -> Generator[tuple[int, _Result | WorkerLost], None, None]:
        """As `map` for the chosen indices; ends early, and the processes with it, once `stopped` is set."""
        left: list[int] = []
        for index, result in self._pool(function, items, chosen, self.workers, stopped):
            if isinstance(result, WorkerLost):
                left.append(index)
            else:
                yield index, result
        for index in left:  # one of these brought a process down, and with it those that ran beside it
            if not stopped.is_set():
                yield from self._pool(function, items, [index], 1, stopped)

    def _pool(
        self,
        function: Callable[[_Item], _Result],
        items: Sequence[_Item],
        chosen: Sequence[int],
        workers: int,
        stopped: threading.Event,
    ) -> Generator[tuple[int, _Result | WorkerLost], None, None]:
        from loky.process_executor import BrokenProcessPool, ProcessPoolExecutor, TerminatedWorkerError

        pool = ProcessPoolExecutor(max_workers=min(workers, len(chosen)), initializer=_begin, initargs=(os.getpid(),))
        try:
            running: dict[Future[Any], int] = {}
            waiting = list(reversed(chosen))
            lost: list[int] = []
            reason = "the process that ran it died"
            while (running or (waiting and not lost)) and not stopped.is_set():
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


class Growing:
    """This process first, and workers from the moment on when the time that items take says that they pay.

    The items that have not begun then go to the workers; this process ends the one that it is at.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item]
    ) -> Generator[tuple[int, _Result | WorkerLost], None, None]:
        share = _Share(function, items, self.workers)
        try:
            while (index := share.take()) is not None:
                result = function(items[index])
                share.done += 1
                yield index, result
            yield from share.others()
        finally:
            share.stop()


class _Share(Generic[_Item, _Result]):
    """What is left to do, between this process and a thread that hands it to workers if that pays."""

    def __init__(self, function: Callable[[_Item], _Result], items: Sequence[_Item], workers: int) -> None:
        self.done = 0
        self._function, self._items, self._workers = function, items, workers
        self._left = deque(range(len(items)))
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._found: queue.SimpleQueue[tuple[int, _Result | WorkerLost] | BaseException | None] = queue.SimpleQueue()
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._hand_out, daemon=True)

    def take(self) -> int | None:
        """The next item for this process, which has the first in any case."""
        with self._lock:
            index = self._left.popleft() if self._left else None
        if index == 0:
            self._thread.start()
        return index

    def others(self) -> Generator[tuple[int, _Result | WorkerLost], None, None]:
        """What workers have found; an exception of the function is raised here."""
        while True:
            try:
                found = self._found.get(timeout=_WAKE_S)  # or a signal would wait for the next result
            except queue.Empty:
                continue
            if found is None:
                return
            if isinstance(found, BaseException):
                raise found
            yield found

    def stop(self) -> None:
        """Ends the thread and the workers."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _hand_out(self) -> None:
        try:
            while not (chosen := self._worth_it()):
                if self._stopped.wait(_LOOK_S) or not self._left:
                    return
            for found in Local(self._workers).some(self._function, self._items, chosen, self._stopped):
                self._found.put(found)
        except BaseException as error:
            self._found.put(error)
        finally:
            self._found.put(None)

    def _worth_it(self) -> Sequence[int]:
        """The items that have not begun, if workers would be through with them earlier than this process alone."""
        with self._lock:
            passed = time.monotonic() - self._started
            alone = len(self._left) * passed / max(self.done, 1)  # at least so long, while the first is not done
            if alone * (1 - 1 / self._workers) < _START_S:
                return ()
            chosen = tuple(self._left)
            self._left.clear()
            return chosen


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
    """As many processes as `jobs` (none: cores), but none for what one process does, or does as soon."""
    workers = min(cores() if jobs is None else jobs, items)
    return Serial() if workers <= 1 else Growing(workers)
