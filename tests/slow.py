"""What `make test` leaves to `make assurance`: members of a family that cost more than they add."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import pytest

T = TypeVar("T")


def others_slow(family: Iterable[T], *fast: T) -> list[object]:
    """A family for `parametrize`, all but the named members marked as slow.

    A member that is a tuple is a value of each parameter. A name that is not in the family is a mistake: its rule would
    be tested nowhere.
    """
    members = list(family)
    assert [each for each in fast if each not in members] == []
    return [each if each in fast else slow(*each) if isinstance(each, tuple) else slow(each) for each in members]


def slow(*values: object) -> object:
    """One set of parameters that is tried in `make assurance` alone."""
    return pytest.param(*values, marks=pytest.mark.slow)
