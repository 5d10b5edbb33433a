"""Workers on other machines: points on a Dask cluster (distributed.dask.org), the extra `polypath[cluster]`.

A point travels as its plan, in which algorithms in Python are, too, and comes back as its summary and the files of its
folder. Only the client writes. Dask gives a point to another worker when its worker dies.
"""

from __future__ import annotations

import hashlib
import logging
import platform
import shutil
import threading
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar

from polypath import engines
from polypath.engines import EngineError
from polypath.sweeps.executor import WorkerLost

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

SLURM: Final = "slurm"
#: How long a scheduler may take to answer.
CONNECT_S: Final = 30
#: Points that are at the scheduler for each thread of the workers, so that none waits for the client.
_AHEAD: Final = 2
#: The least number of points at the scheduler, for workers that are yet to come.
_LEAST: Final = 16
#: Slurm jobs at a time unless --jobs says how many.
_SLURM_JOBS: Final = 16
#: How often a point goes to the cluster once more after Dask has given it up, each time with several workers lost.
_AGAIN: Final = 1
_INSTALL: Final = "pip install 'polypath[cluster]'"


@dataclass(frozen=True)
class Identity:
    """What has to be the same for results to be the same."""

    python: str
    polypath: str
    #: SHA-256 of the native module and of the package's Python files.
    native: str
    package: str

    def differs(self, other: Identity) -> str | None:
        """What another one has otherwise; None where all is the same."""
        if other.polypath != self.polypath:
            return f"Polypath {other.polypath}, and this is {self.polypath}"
        if other.python != self.python:
            return f"Python {other.python}, and this is {self.python}"
        if other.native != self.native:
            return f"Polypath {other.polypath} with another build of the native module"
        if other.package != self.package:
            return f"Polypath {other.polypath} with other Python files"
        return None


class _Different(Exception):
    """A worker that would compute something else."""


@cache
def identity() -> Identity:
    """That of this process."""
    package = Path(__file__).parents[1]
    files = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        files.update(f"{path.relative_to(package)}\n".encode() + path.read_bytes())
    version, native = engines.native()
    return Identity(
        platform.python_version(), version, hashlib.sha256(native.read_bytes()).hexdigest(), files.hexdigest()
    )


def require_known(place: str) -> None:
    """Raises EngineError for a place that is neither a scheduler's address nor "slurm", and without the extra."""
    if place != SLURM and not place.startswith(("tcp://", "tls://")):
        raise EngineError(f"--cluster {place}: expected a scheduler such as tcp://10.0.0.1:8786, or {SLURM}")
    _extra("distributed")
    if place == SLURM:
        _extra("dask_jobqueue")
        if shutil.which("sbatch") is None:
            raise EngineError("--cluster slurm: there is no sbatch here; run it where Slurm takes jobs")


def _extra(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise EngineError(f"--cluster needs {module}, which is not installed; {_INSTALL}") from error


class Cluster:
    """The workers of a Dask scheduler, or of Slurm jobs that end with this process."""

    def __init__(self, place: str, jobs: int | None) -> None:
        require_known(place)
        self.place, self.jobs = place, jobs

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item]
    ) -> Generator[tuple[int, _Result | WorkerLost], None, None]:
        """As `Executor.map`. Raises EngineError where the scheduler is lost, or a worker is of another version."""
        if not items:
            return
        with _connected(self.place, self.jobs) as client:
            _require_same(client)
            yield from _Run(client, self.place, self.jobs).map(function, items)


class _Run:
    def __init__(self, client: Any, place: str, jobs: int | None) -> None:
        self.client, self.place, self.jobs = client, place, jobs

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item]
    ) -> Generator[tuple[int, _Result | WorkerLost], None, None]:
        distributed: Any = import_module("distributed")
        finished = distributed.as_completed(loop=self.client.loop)
        running: dict[str, int] = {}
        tries = [0] * len(items)
        waiting = list(range(len(items) - 1, -1, -1))
        while waiting or running:
            room = self._room()
            while waiting and len(running) < room:
                index = waiting.pop()
                future = self.client.submit(_computed, identity(), function, items[index], pure=False)
                running[future.key] = index
                finished.add(future)
                del future
            future = next(finished)
            index = running.pop(future.key)
            try:
                result = future.result()
            except distributed.KilledWorker:
                tries[index] += 1
                if tries[index] <= _AGAIN:
                    waiting.append(index)
                else:
                    yield index, WorkerLost("the workers that ran it died, one after the other")
            except _Different as error:
                raise EngineError(str(error)) from error
            except Exception as error:
                if future.status == "error":
                    raise _told(error) from error
                raise _gone(self.place) from error
            else:
                future.release()
                yield index, result

    def _room(self) -> int:
        if self.jobs is not None:
            return self.jobs
        try:
            threads: int = sum(self.client.nthreads().values())
        except OSError as error:
            raise _gone(self.place) from error
        return max(_LEAST, _AHEAD * threads)


#: Plots and scripts are for one thread; a worker with several computes one point at a time.
_ALONE: Final = threading.Lock()


def _computed(expected: Identity, function: Callable[[_Item], _Result], item: _Item) -> _Result:
    """In a worker: the function's result. Raises _Different where the client would have another."""
    if what := expected.differs(identity()):
        raise _Different(f"a worker on {platform.node()} has {what}; install the same on all machines")
    with _ALONE:
        return function(item)


def _gone(place: str) -> EngineError:
    return EngineError(f"the scheduler at {place} is gone")


def _told(error: Exception) -> Exception:
    """What a worker raised, as it is to be raised here."""
    if isinstance(error, ImportError | AttributeError | TypeError):
        return EngineError(f"a worker cannot take the points ({error}); install the same Polypath on all machines")
    return error


def _require_same(client: Any) -> None:
    """Raises EngineError where one of the workers that are there has another version, or none.

    One that dies meanwhile is left out; one that comes later compares itself (`_computed`).
    """
    asked = "__import__('importlib').import_module('polypath.sweeps.cluster').identity()"
    for worker, found in sorted(client.run(eval, asked, on_error="return").items()):
        if isinstance(found, OSError):  # of its connection
            continue
        if not isinstance(found, Identity):
            raise EngineError(f"worker {worker} has no Polypath ({found}); install the same on all machines")
        if what := identity().differs(found):
            raise EngineError(f"worker {worker} has {what}; install the same on all machines")


@contextmanager
def _connected(place: str, jobs: int | None) -> Iterator[Any]:
    distributed: Any = import_module("distributed")
    for name in ("tornado.application", "asyncio", *logging.root.manager.loggerDict):
        if name.startswith(("distributed", "tornado", "asyncio")):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # what matters is raised
    with _slurm(jobs) if place == SLURM else _scheduler(place) as where, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of versions, which are compared above
        try:
            client = distributed.Client(where, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise EngineError(f"no scheduler answers at {place} ({_first(error)})") from error
        try:
            yield client
        finally:
            with suppress(Exception):
                client.close(timeout=5)


@contextmanager
def _scheduler(place: str) -> Iterator[str]:
    yield place


@contextmanager
def _slurm(jobs: int | None) -> Iterator[Any]:
    """Slurm jobs as Dask's configuration describes them (jobqueue.slurm); they end with the block."""
    try:
        cluster = _extra("dask_jobqueue").SLURMCluster(scheduler_options={"dashboard_address": ":0"})
    except (ValueError, TypeError, OSError) as error:
        raise EngineError(f"--cluster slurm: {_first(error)}; see jobqueue.slurm in Dask's configuration") from error
    try:
        cluster.adapt(minimum=1, maximum=jobs or _SLURM_JOBS)
        yield cluster
    finally:
        with suppress(Exception):
            cluster.close(timeout=5)


def _first(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].removesuffix(", for example:").rstrip(".") if lines else type(error).__name__
