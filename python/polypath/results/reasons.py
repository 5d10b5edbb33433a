"""The charges of an account in words for engineers."""

from __future__ import annotations

from polypath._core import charge_sentence, charge_title
from polypath.results.account import Account, Charge


def title(charge: Charge) -> str:
    """What it is called in a table, with the place where that is not the path itself."""
    return charge_title(charge)


def named(cause: str, place: str | None = None) -> str:
    """A cause, and where it was."""
    return charge_title(Charge(cause, "", 0, place, None, 0))


def sentence(charge: Charge) -> str:
    """What happened, without how much."""
    return charge_sentence(charge)


def share(account: Account, charge: Charge) -> float:
    """The share of the bytes that the links could have carried."""
    return charge.bytes / account.capacity_bytes if account.capacity_bytes else 0.0
