"""What is tried: each sabotage under the area that it is done to."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

Trial = Callable[[random.Random, Path], int]
"""Draws what it does, in an empty folder of its own, and returns how many blows that were; raises Lost."""


class Lost(Exception):
    """What was lost, or left behind, or said badly."""


@dataclass(frozen=True)
class Sabotage:
    name: str
    area: str
    what: str
    trial: Trial
    mounts: bool
    """It needs a mount namespace of its own."""


ALL: Final[dict[str, Sabotage]] = {}


def sabotage(name: str, area: str, what: str, *, mounts: bool = False) -> Callable[[Trial], Trial]:
    """Registers a trial."""

    def register(trial: Trial) -> Trial:
        ALL[name] = Sabotage(name, area, what, trial, mounts)
        return trial

    return register
