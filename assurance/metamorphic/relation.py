"""What must hold between runs of a scenario that was changed in a way that changes nothing, or something known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from .case import Case

Check = Callable[[Case, Random], None]


class Broken(AssertionError):
    """The relation does not hold; the message is one line."""


class Unfit(Exception):
    """The scenario is none that the relation speaks of."""


@dataclass(frozen=True)
class Relation:
    """One relation."""

    name: str
    family: str
    #: What holds.
    statement: str
    #: Why it must.
    reason: str
    check: Check
    #: How likely it is drawn, beside the others' 1.
    weight: float


ALL: dict[str, Relation] = {}
"""Every relation by its name, in the order of its family's module."""


def relation(statement: str, reason: str, *, weight: float = 1.0) -> Callable[[Check], Check]:
    """Registers a check under the name of its function; the module is its family."""

    def register(check: Check) -> Check:
        name = check.__name__.replace("_", "-")
        family = check.__module__.rpartition(".")[2]
        ALL[name] = Relation(name, family, statement, reason, check, weight)
        return check

    return register


def need(fits: bool) -> None:
    """Raises Unfit unless the scenario is one that the relation speaks of."""
    if not fits:
        raise Unfit


def require(holds: bool, message: str) -> None:
    """Raises Broken unless something holds."""
    if not holds:
        raise Broken(message)
