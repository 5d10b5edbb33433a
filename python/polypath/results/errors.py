"""Errors in requests to a result."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Self

from polypath.errors import MetricError

__all__ = ["MetricError", "UnknownName"]


class UnknownName(MetricError, KeyError):
    """A table, a kind of figure or a format that is none; the message is one line and names the nearest."""

    __str__ = ValueError.__str__  # a KeyError puts its message in quotation marks

    @classmethod
    def of(cls, what: str, name: str, known: Collection[str]) -> Self:
        """The error for an unknown `name` of a `what`, with the names that exist."""
        near = get_close_matches(name, known, 1)
        return cls(
            f"unknown {what} '{name}'; " + (f"did you mean '{near[0]}'?" if near else f"there is {', '.join(known)}")
        )
