"""The figures of one run by attribute: `run.plot.rate()` is `polypath.plots.rate(run)`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polypath.results.recording import Recording


class RunPlots:
    """A kind of figure as an attribute; each takes the arguments of its function in `polypath.plots`, but for the run.

    Each returns matplotlib's axes.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        (kind,) = import_module("polypath.plots").kinds(name)
        return partial(kind.draw, self._recording)

    def __dir__(self) -> list[str]:
        return sorted(import_module("polypath.plots").REGISTRY)
