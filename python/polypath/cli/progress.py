"""Progress over simulated time, for runs that take longer than a moment, and over the points of a sweep.

A bar on a terminal; where standard error is none, a line now and then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from polypath.cli import signals
from polypath.cli.console import err, printable
from polypath.engines import Progress as Callback

if TYPE_CHECKING:
    from rich.progress import Progress

#: Wall time that passes without a bar.
_PATIENCE_S = 1.0
#: Wall time between two lines.
_LINE_S = 10.0


class _Lines:
    """Says how far things are, in a line of its own, where there is no terminal for a bar."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.said = time.monotonic()

    def say(self, how_far: str) -> None:
        now = time.monotonic()
        if now - self.said >= _LINE_S:
            self.said = now
            err.print(f"{self.name}: {how_far}", markup=False)


class _Bar:
    def __init__(self, name: str) -> None:
        self.name = name
        self.started = time.monotonic()
        self.bar: Progress | None = None

    def __call__(self, now_ns: int, end_ns: int) -> None:
        if self.bar is None:
            if time.monotonic() - self.started < _PATIENCE_S:
                return
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self.bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[now]:.2f} / {task.total:g} s simulated"),
                TimeElapsedColumn(),
                console=err,
                transient=True,
            )
            self.bar.add_task(self.name, total=end_ns / 1e9, now=0.0)
            self.bar.start()
        self.bar.update(self.bar.task_ids[0], completed=now_ns / 1e9, now=now_ns / 1e9)

    def stop(self) -> None:
        if self.bar is not None:
            self.bar.stop()


@contextmanager
def shown(name: str) -> Iterator[Callback]:
    """A callback for an engine that draws a bar on a terminal once a second has passed."""
    name = printable(name)
    if not err.is_terminal:
        lines = _Lines(name)
        yield lambda now_ns, end_ns: lines.say(f"{now_ns / 1e9:.1f} of {end_ns / 1e9:g} s simulated")
        return
    bar = _Bar(name)
    try:
        yield bar
    finally:
        bar.stop()


@contextmanager
def points(name: str, what: str = "points") -> Iterator[Callable[[int, int], None]]:
    """A callback for the numbers of points done and to do, which draws a bar on a terminal. It raises a
    KeyboardInterrupt that was lost."""
    check = signals.lost()
    with _points(printable(name), what) as show:

        def told(done: int, total: int) -> None:
            show(done, total)
            check()

        yield told


@contextmanager
def _points(name: str, what: str) -> Iterator[Callable[[int, int], None]]:
    if not err.is_terminal:
        lines = _Lines(name)
        yield lambda done, total: lines.say(f"{done} of {total} {what}")
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TextColumn(what))
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=err, transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def runs(name: str) -> Iterator[Callable[[int], None]]:
    """A callback for the number of runs done, of a search whose length nobody knows."""
    name = printable(name)
    if not err.is_terminal:
        lines = _Lines(name)
        yield lambda done: lines.say(f"{done} runs")
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:.0f} runs"),
        TimeElapsedColumn(),
        console=err,
        transient=True,
    ) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done: bar.update(task, completed=done)
