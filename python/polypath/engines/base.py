"""What an engine is: something that turns a Plan into a Recording."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from polypath.results import Recording
from polypath.scenario import Plan

Captures = Literal["none", "hosts", "links"]

#: Called now and then with the simulated time and the time at which the run ends at the latest, in ns.
Progress = Callable[[int, int], None]


class EngineError(RuntimeError):
    """An engine cannot run this, or failed in doing so; the message is one line."""


@dataclass(frozen=True)
class Options:
    """What is wanted of a run besides its Recording."""

    captures: Captures = "none"
    #: Where the captures go; needed unless `captures` is none.
    directory: Path | None = None


def no_progress(now_ns: int, end_ns: int) -> None:
    """Ignores the progress of a run."""


class Engine(Protocol):
    """Runs a Plan. A KeyboardInterrupt ends the run, whose Recording is then partial and marked interrupted."""

    @property
    def name(self) -> str: ...

    def run(self, plan: Plan, options: Options = ..., progress: Progress = ...) -> Recording:
        """Raises EngineError for a plan that the engine cannot run."""
        ...
