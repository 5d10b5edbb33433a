"""mininet.util: the functions that topologies use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ._placeholder import placeholder as __getattr__  # noqa: F401


def irange(start: int, end: int) -> range:
    """The numbers from start to end, the end included."""
    return range(start, end + 1)


def natural(text: Any) -> list[Any]:
    """A key by which s2 comes before s10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", str(text))]


def naturalSeq(seq: Iterable[Any]) -> list[Any]:
    """The keys of several texts."""
    return [natural(each) for each in seq]


def custom(cls: Callable[..., Any], **params: Any) -> Callable[..., Any]:
    """A class with some of its options given."""
    return partial(cls, **params)


def makeNumeric(text: str) -> Any:
    """A whole number, else a number, else the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
