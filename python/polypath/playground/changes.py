"""The differences of two plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

#: Where a value lies in a plan.
At = tuple[str | int, ...]


class _Missing:
    """Stands for what is not there."""


MISSING: Final = _Missing()


@dataclass(frozen=True)
class Difference:
    """A part of a plan that another has otherwise: the least that says it."""

    at: At
    old: Any
    new: Any

    @property
    def is_number(self) -> bool:
        return all(isinstance(it, int | float) and not isinstance(it, bool) for it in (self.old, self.new))


def differences(old: Any, new: Any, at: At = ()) -> Iterator[Difference]:
    """From one plan to another."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in {**old, **new}:
            yield from differences(old.get(key, MISSING), new.get(key, MISSING), (*at, key))
    elif _is_list(old) and _is_list(new) and len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, (*at, place))
    elif type(old) is not type(new) or old != new:
        yield Difference(at, old, new)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
