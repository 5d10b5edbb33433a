"""Workers are started when they pay, and only then; what comes out is the same."""

from __future__ import annotations

import math
import os
import pickle
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import cloudpickle
import pytest

from polypath.scenario import Scenario
from polypath.sweeps import executor

from ..processes import wait


def own(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


def first_waits(folder: Path, number: int) -> tuple[int, int]:
    """The first item ends once a worker has computed another."""
    if number == 0:
        wait(lambda: any(folder.iterdir()))
    else:
        (folder / str(number)).touch()
    return own(number)


def taken_in_turn(folder: Path, number: int) -> tuple[int, int]:
    """No process ends an item before both have begun one."""
    with (folder / str(os.getpid())).open("a") as file:
        file.write(f"{number}\n")
    wait(lambda: len(list(folder.iterdir())) > 1)
    time.sleep(0.05)
    return own(number)


def dies(folder: Path, parent: int, number: int) -> int:
    """Item 1 brings its process down; the first one waits for that."""
    if number == 0:
        wait(lambda: (folder / "died").exists())
        time.sleep(0.5)
    elif number == 1:
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def interrupted_later(folder: Path, number: int) -> int:
    """The first item ends, by a signal, when a worker has come to its second."""
    if number == 0:
        wait(lambda: (folder / "2").exists())
        time.sleep(0.2)
        raise KeyboardInterrupt
    (folder / str(number)).touch()
    if number == 2:
        time.sleep(1000)
    return number


def fails(folder: Path, number: int) -> int:
    if number == 0:
        wait(lambda: any(folder.iterdir()))
        return 0
    (folder / str(number)).touch()
    raise ValueError(f"item {number}")


def interrupted(folder: Path, number: int) -> int:
    if number == 0:
        wait(lambda: any(folder.iterdir()))
        raise KeyboardInterrupt
    (folder / str(os.getpid())).touch()
    time.sleep(1000)
    return number


@pytest.fixture(autouse=True)
def by_value() -> Iterator[None]:
    """Workers get this module's functions themselves: pytest imports it in a way that they cannot."""
    modules = [sys.modules[each.__module__] for each in (own, wait)]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    yield
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "_START_S", 0.0)


def computed(function: Callable[[int], tuple[int, int]], count: int) -> tuple[dict[int, int], set[int]]:
    found = {}
    for index, result in executor.Growing(2).map(function, range(count)):
        assert not isinstance(result, executor.WorkerLost)
        found[index] = result
    return {index: value for index, (value, _) in found.items()}, {process for _, process in found.values()}


def test_several_items_may_grow() -> None:
    assert isinstance(executor.local(2, 5), executor.Growing)
    assert isinstance(executor.local(1, 5), executor.Serial)
    assert isinstance(executor.local(5, 1), executor.Serial)


def test_short_items_start_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "_START_S", math.inf)
    found, processes = computed(own, 5)
    assert found == {number: number * number for number in range(5)}
    assert processes == {os.getpid()}


@pytest.mark.usefixtures("at_once")
def test_workers_begin_while_the_first_item_takes_long(tmp_path: Path) -> None:
    found, processes = computed(partial(first_waits, tmp_path), 5)
    assert found == {number: number * number for number in range(5)}
    assert os.getpid() in processes
    assert len(processes) > 1


@pytest.mark.usefixtures("at_once")
def test_this_process_goes_on_beside_its_workers(tmp_path: Path) -> None:
    found, processes = computed(partial(taken_in_turn, tmp_path), 8)
    assert found == {number: number * number for number in range(8)}
    assert len(processes) == 2
    assert len((tmp_path / str(os.getpid())).read_text().split()) > 1


@pytest.mark.usefixtures("at_once")
def test_this_process_takes_no_more_where_a_worker_died(tmp_path: Path) -> None:
    found = dict(executor.Growing(2).map(partial(dies, tmp_path, os.getpid()), range(6)))
    assert found[0] == os.getpid()
    lost = [index for index, result in found.items() if isinstance(result, executor.WorkerLost)]
    assert lost == [1]
    others = {result for index, result in found.items() if index not in (0, 1)}
    assert os.getpid() not in others


@pytest.mark.usefixtures("at_once")
def test_what_workers_have_found_is_there_at_an_interrupt(tmp_path: Path) -> None:
    results = executor.Growing(2).map(partial(interrupted_later, tmp_path), range(3))
    assert next(results)[0] == 1
    with pytest.raises(KeyboardInterrupt):
        next(results)


@pytest.mark.usefixtures("at_once")
def test_an_exception_in_a_worker_is_raised_here(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^item \d$"):
        list(executor.Growing(2).map(partial(fails, tmp_path), range(3)))


@pytest.mark.usefixtures("at_once")
def test_an_interrupt_ends_the_workers(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        list(executor.Growing(2).map(partial(interrupted, tmp_path), range(3)))
    workers = [path.name for path in tmp_path.iterdir()]
    assert workers
    wait(lambda: not any(Path("/proc", worker).exists() for worker in workers))


def test_whoever_stops_listening_ends_it_all() -> None:
    results = executor.Growing(2).map(own, range(100))
    next(results)
    results.close()


@pytest.mark.parametrize(
    ("passed", "done", "left", "pays"),
    [
        (0.0, 0, 100, False),
        (0.1, 0, 19, False),  # twenty points of 0.1 s
        (1.0, 10, 9, False),
        (0.5, 0, 19, True),  # a first point that takes long
        (60.0, 1, 1, True),
        (3.0, 1, 1, False),
        (10.0, 100, 1000, True),
    ],
)
def test_the_time_of_items_decides(
    passed: float, done: int, left: int, pays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor._Share, "_hand_out", lambda share: None)
    share = executor._Share(own, range(left + 1), 2)
    share.take()
    share.done, share._started = done, time.monotonic() - passed
    monkeypatch.setattr(time, "monotonic", lambda: share._started + passed)
    assert share._worth_it() is pays


def test_a_plan_travels_as_its_json(plain: str) -> None:
    plan = Scenario.parse(plain, "x").plan()
    size = len(pickle.dumps(plan))
    assert plan.view["name"] == "small"
    assert len(pickle.dumps(plan)) == size
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_loky_does_not_warn_users_of_workers_that_it_replaces() -> None:
    said = "A worker stopped while some jobs were given to the executor. This can be caused by .."
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("default")
        assert dict(executor.Local(1).map(math.sqrt, [4.0])) == {0: 2.0}
        warnings.warn_explicit(said, UserWarning, "process_executor.py", 1, module="loky.process_executor")
        warnings.warn_explicit("something else", UserWarning, "process_executor.py", 1, module="loky.process_executor")
    assert [str(each.message) for each in heard] == ["something else"]
