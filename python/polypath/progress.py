"""The progress of a run or a sweep, below a notebook's cell; elsewhere nothing."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

#: Wall time that passes without a bar of a run, and between two states of a bar.
_PATIENCE_S: Final = 1.0
_BETWEEN_S: Final = 0.2

Callback = Callable[[int, int], None]


class _Bar:
    def __init__(self, told: Callable[[int, int], str], patience_s: float) -> None:
        self.told = told
        self.due = time.monotonic() + patience_s
        self.handle: Any = None

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now < self.due:
            return
        self.due = now + _BETWEEN_S
        text = self.told(done, total)
        self._show(
            {
                "text/html": f'<progress value="{done}" max="{total}"></progress> {html.escape(text)}',
                "text/plain": text,
            }
        )

    def stop(self) -> None:
        if self.handle is not None:
            self._show({"text/html": "", "text/plain": ""})

    def _show(self, data: dict[str, str]) -> None:
        if self.handle is None:
            self.handle = sys.modules["IPython"].display.display(data, raw=True, display_id=True)
        else:
            self.handle.update(data, raw=True)


def _in_notebook() -> bool:
    """Whether Jupyter runs this: IPython at a terminal has no kernel."""
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None


@contextmanager
def _shown(told: Callable[[int, int], str], patience_s: float) -> Iterator[Callback]:
    if not _in_notebook():
        yield lambda done, total: None
        return
    bar = _Bar(told, patience_s)
    try:
        yield bar
    finally:
        bar.stop()


def of_run(name: str) -> AbstractContextManager[Callback]:
    """A context with a callback for the simulated time and the time at which the run ends at the latest, in ns."""
    return _shown(lambda now, end: f"{name}: {now / 1e9:.1f} of {end / 1e9:g} s simulated", _PATIENCE_S)


def of_points(name: str) -> AbstractContextManager[Callback]:
    """A context with a callback for the numbers of points done and to do."""
    return _shown(lambda done, total: f"{name}: {done} of {total} points", 0.0)
