"""The engines by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from polypath.engines.base import Captures, Engine, EngineError, Options, Progress
from polypath.engines.linux import LinuxEngine
from polypath.engines.live import LiveEngine
from polypath.engines.script import ScriptFailed
from polypath.engines.sim import Simulator

REGISTRY: Mapping[str, Callable[[], Engine]] = {
    "sim": Simulator,
    "linux": LinuxEngine,
    "live": LiveEngine,
}


def get(name: str) -> Engine:
    """The engine of that name. Raises EngineError where it is not there."""
    if name not in REGISTRY:
        raise EngineError(f"engine '{name}' is not there yet; there is {', '.join(REGISTRY)}")
    return REGISTRY[name]()


__all__ = ["REGISTRY", "Captures", "Engine", "EngineError", "Options", "Progress", "ScriptFailed", "get"]
