"""The executor of a sweep's points: this process, or the cores of this machine.

An executor maps a function over items and gives each result with its item's index as soon as it is there. A cluster
is another class with the same method. Results never depend on where an item was computed.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
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
#: Items that are left for each worker as long as it has one ahead.
_AHEAD: Final = 4
#: What starting workers takes at most: each imports the package while the machine's cores are wanted for items.
_START_S: Final = 2.0


#: How loky begins a warning of a worker that stopped or was restarted.
_REPLACED: Final = "A worker (stopped|was restarted) while some jobs were given to the executor"


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
        yield from self.some(function, items, deque(range(len(items))), threading.Event())

    def some(
        self,
        function: Callable[[_Item], _Result],
        items: Sequence[_Item],
        left: deque[int],
        stopped: threading.Event,
    ) -> Generator[tuple[int, _Result | WorkerLost], None, None]:
        """As `map` for the indices that are left, of which others may take, too; ends early, and the processes with it,
        once `stopped` is set."""
        lost: list[int] = []
        for index, result in self._pool(function, items, left, self.workers, stopped):
            if isinstance(result, WorkerLost):
                lost.append(index)
            else:
                yield index, result
        for index in lost:  # one of these brought a process down, and with it those that ran beside it
            if not stopped.is_set():
                yield from self._pool(function, items, deque([index]), 1, stopped)

    def _pool(
        self,
        function: Callable[[_Item], _Result],
        items: Sequence[_Item],
        left: deque[int],
        workers: int,
        stopped: threading.Event,
    ) -> Generator[tuple[int, _Result | WorkerLost], None, None]:
        from loky.process_executor import BrokenProcessPool, ProcessPoolExecutor, TerminatedWorkerError

        # its threads warn developers of workers that it replaces; one that is lost is said in a result's place
        warnings.filterwarnings("ignore", message=_REPLACED, category=UserWarning, module=r"loky\.process_executor")
        workers = max(1, min(workers, len(left)))
        pool = ProcessPoolExecutor(max_workers=workers, initializer=_begin, initargs=(os.getpid(),))
        try:
            running: dict[Future[Any], int] = {}
            lost: list[int] = []
            reason = "the process that ran it died"
            while (running or (left and not lost)) and not stopped.is_set():
                # one ahead for each worker, but not of the last ones: another may be free for these
                while not lost and len(running) < workers * (2 if len(left) > _AHEAD * workers else 1):
                    if (index := _next(left)) is None:
                        break
                    try:
                        running[pool.submit(function, items[index])] = index
                    except BrokenProcessPool:
                        lost += [index, *_rest(left)]
                # A signal may reach another thread; this one then sees it only when it wakes up.
                for future in wait(running, timeout=_WAKE_S, return_when=FIRST_COMPLETED).done:
                    index = running.pop(future)
                    try:
                        yield index, future.result()
                    except BrokenProcessPool as error:
                        lost += [index, *_rest(left)]
                        if not isinstance(error, TerminatedWorkerError):
                            reason = str(error)
            for index in lost:
                yield index, WorkerLost(reason)
        finally:
            pool.shutdown(wait=True, kill_workers=True)


class Growing:
    """This process first, and workers beside it from the moment on when the time that items take says that they pay.

    Each takes the next item when it is free. Where a worker died, this process takes no more.
    """

    def __init__(self, processes: int) -> None:
        self.processes = processes

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item]
    ) -> Generator[tuple[int, _Result | WorkerLost], None, None]:
        share = _Share(function, items, self.processes)
        try:
            while (index := share.take()) is not None:
                result = function(items[index])
                share.done += 1
                yield index, result
                yield from share.there()
            yield from share.others()
        except KeyboardInterrupt:
            with suppress(Exception):  # what is done is kept, and the interrupt is what is told
                yield from share.there()
            raise
        finally:
            share.stop()


class _Share(Generic[_Item, _Result]):
    """What is left to do, between this process and a thread that hands it to workers if that pays."""

    def __init__(self, function: Callable[[_Item], _Result], items: Sequence[_Item], processes: int) -> None:
        self.done = 0
        self._function, self._items, self._processes = function, items, processes
        self._left = deque(range(len(items)))
        self._stopped = threading.Event()
        self._taken = threading.Event()
        self._found: queue.SimpleQueue[tuple[int, _Result | WorkerLost] | BaseException | None] = queue.SimpleQueue()
        self._ended = False
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._hand_out, daemon=True)

    def take(self) -> int | None:
        """The next item for this process, which has the first in any case."""
        index = _next(self._left)
        if index == 0:
            self._thread.start()
        elif index is None:
            self._taken.set()
        return index

    def there(self) -> Generator[tuple[int, _Result | WorkerLost], None, None]:
        """What workers have found so far; an exception of the function is raised here."""
        while not self._ended and not self._found.empty():
            yield from self._heard(self._found.get())

    def others(self) -> Generator[tuple[int, _Result | WorkerLost], None, None]:
        """As `there`, to the last."""
        while not self._ended:
            try:
                found = self._found.get(timeout=_WAKE_S)  # or a signal would wait for the next result
            except queue.Empty:
                continue
            yield from self._heard(found)

    def _heard(
        self, found: tuple[int, _Result | WorkerLost] | BaseException | None
    ) -> Generator[tuple[int, _Result | WorkerLost], None, None]:
        if found is None:
            self._ended = True
        elif isinstance(found, BaseException):
            raise found
        else:
            yield found

    def stop(self) -> None:
        """Ends the thread and the workers."""
        self._stopped.set()
        self._taken.set()
        if self._thread.is_alive():
            self._thread.join()

    def _hand_out(self) -> None:
        try:
            while not self._worth_it():
                if self._taken.wait(_LOOK_S):
                    return
            workers = Local(self._processes - 1)
            for found in workers.some(self._function, self._items, self._left, self._stopped):
                self._found.put(found)
        except BaseException as error:
            self._found.put(error)
        finally:
            self._found.put(None)

    def _worth_it(self) -> bool:
        """Whether workers would be through with the items that have not begun earlier than this process alone."""
        passed = time.monotonic() - self._started
        alone = len(self._left) * passed / max(self.done, 1)  # at least so long, while the first is not done
        return alone * (1 - 1 / self._processes) >= _START_S


def _next(left: deque[int]) -> int | None:
    """Takes the next one, of which others take in other threads; None: there is none."""
    try:
        return left.popleft()
    except IndexError:
        return None


def _rest(left: deque[int]) -> Iterator[int]:
    """Takes all that are left."""
    while (index := _next(left)) is not None:
        yield index


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
    processes = min(cores() if jobs is None else jobs, items)
    return Serial() if processes <= 1 else Growing(processes)
