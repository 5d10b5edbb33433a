"""Draws of settings as a scenario writes them."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from random import Random
from typing import Any, TypeVar

from polypath import registry

T = TypeVar("T")


class Chance(Random):
    """Random numbers with the units of scenarios."""

    def happens(self, share: float) -> bool:
        return self.random() < share

    def spread(self, least: float, most: float) -> float:
        """Even over the logarithms: small values are as likely as large ones."""
        return exp(self.uniform(log(least), log(most)))

    def time(self, least_ms: float, most_ms: float) -> str:
        """To the microsecond, so that events seldom meet by chance."""
        return f"{round(1000 * self.spread(least_ms, most_ms))} us"

    def rate(self, least_mbps: float, most_mbps: float) -> str:
        return f"{round(1000 * self.spread(least_mbps, most_mbps))} kbps"

    def size(self, least: float, most: float) -> str:
        return f"{round(self.spread(least, most))} B"

    def share(self, least_percent: float, most_percent: float) -> str:
        return f"{self.spread(least_percent, most_percent):.3f} %"

    def some(self, of: Sequence[T], most: int) -> list[T]:
        """At least one of them, in their order."""
        count = self.randint(1, min(most, len(of)))
        return [of[place] for place in sorted(self.sample(range(len(of)), count))]

    def algorithm(self, kind: registry.Kind, without: Sequence[str] = ()) -> str | dict[str, Any]:
        """One of a registry, half of the time with parameters of its own."""
        usable = [
            entry
            for name, entry in registry.entries(kind).items()
            if name not in without and not any(each.required for each in entry.parameters)
        ]
        entry = self.choice(usable)
        own = [each for each in entry.parameters if self.happens(0.25)]
        given = {each.name: value for each in own if (value := self.parameter(each)) is not None}
        return {"kind": entry.name, **given} if given else entry.name

    def parameter(self, of: registry.Parameter) -> Any:
        """A value within its bounds; None where there are none."""
        if of.choices:
            return self.choice(of.choices)
        if of.kind == "boolean":
            return self.happens(0.5)
        if of.kind == "integer" and of.minimum is not None and of.maximum is not None:
            return self.randint(int(of.minimum), min(int(of.maximum), max(8, 2 * int(of.default or of.minimum))))
        if of.kind == "number" and of.minimum is not None and of.default:
            most = 2 * of.default if of.maximum is None else min(of.maximum, 2 * of.default)
            return round(self.uniform(max(of.minimum, of.default / 2), most), 6)
        return None
