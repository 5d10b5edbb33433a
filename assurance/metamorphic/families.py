"""All relations: importing the families registers them."""

from __future__ import annotations

from . import captured, figures, observing, parts, repeating, sums, times, writing
from .relation import ALL, Broken, Relation, Unfit

#: In the order of the page.
FAMILIES = (parts, times, writing, observing, repeating, captured, figures, sums)

__all__ = ["ALL", "FAMILIES", "Broken", "Relation", "Unfit"]
