"""The contenders of `polypath compare`: engines, and noq in the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from polypath import engines

NOQ = "noq"
"""The simulator with noq as the QUIC stack of every host."""

SETTINGS: Mapping[str, tuple[str, ...]] = {NOQ: ("defaults.stack=noq",)}
"""What is set in a scenario for those that are no engines."""


@dataclass(frozen=True)
class Contender:
    """An engine, and what it is to set in a scenario."""

    engine: engines.Engine
    settings: tuple[str, ...]


def get(name: str) -> Contender:
    """The one of that name. Raises EngineError where it is not there."""
    engines.require(name, *SETTINGS)
    engine = engines.get("sim" if name in SETTINGS else name)
    return Contender(engine, SETTINGS.get(name, ()))
