"""The engines by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from polypath import _core
from polypath.engines.base import Captures, Engine, EngineError, Options, Progress, Unplayable, into, missing
from polypath.engines.base import require as require_known
from polypath.engines.script import ScriptFailed
from polypath.engines.sim import Simulator, check
from polypath.units import nearest


def _linux() -> Engine:
    from polypath.engines.linux import LinuxEngine

    return LinuxEngine()


def _live() -> Engine:
    from polypath.engines.live import LiveEngine

    return LiveEngine()


REGISTRY: Mapping[str, Callable[[], Engine]] = {"sim": Simulator, "linux": _linux, "live": _live}
"""Only the engine that is asked for is imported."""


def get(name: str) -> Engine:
    """The engine of that name. Raises EngineError where it is not there."""
    require(name)
    return REGISTRY[name]()


def require(name: str, *others: str) -> None:
    """Raises EngineError, with the nearest name, where no engine has that name, nor one of the others."""
    known = (*REGISTRY, *others)
    if name not in known:
        hint = nearest(name, known)
        better = f"did you mean '{hint}'?" if hint else f"there is {', '.join(known)}"
        raise EngineError(f"unknown engine '{name}'; {better}")


def native() -> tuple[str, Path]:
    """The native module's version, and its file."""
    assert _core.__file__ is not None
    return _core.version(), Path(_core.__file__)


__all__ = [
    "REGISTRY",
    "Captures",
    "Engine",
    "EngineError",
    "Options",
    "Progress",
    "ScriptFailed",
    "Unplayable",
    "check",
    "get",
    "into",
    "missing",
    "native",
    "require",
    "require_known",
]
