"""What a sweep varied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

#: The axis over which statistics are taken.
SEED: Final = "seed"


@dataclass(frozen=True)
class Axis:
    """What a sweep varied: its labels in order, and what they are as numbers in a unit (none: plain numbers)."""

    name: str
    labels: tuple[str, ...]
    numbers: tuple[float, ...] | None = None
    unit: str = ""
    #: What each label stands for, where the labels do not tell: of an axis that was drawn.
    settings: tuple[Mapping[str, Any], ...] | None = None
    #: Of those settings that are numbers: the unit, and the number of each label.
    properties: Mapping[str, tuple[str, Sequence[float]]] = field(default_factory=dict)

    @property
    def numeric(self) -> str | None:
        """The name of the column of numbers; None where the labels are none, or are written like them."""
        if self.numbers is None or self.name == SEED:
            return None
        return f"{self.name}_{self.unit}" if self.unit else f"{self.name}_number"
