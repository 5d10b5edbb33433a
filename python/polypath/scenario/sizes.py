"""Distributions of flow sizes, one class each, and a name in the union below."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_validator

from polypath.scenario import kinds
from polypath.scenario.base import Model
from polypath.scenario.fields import OrText, Share, Size, fault

_PACKET = 1460
"""Bytes of a packet in the published distributions, which count packets."""


def _pair(value: object) -> object:
    if isinstance(value, list | tuple) and len(value) == 2:
        return tuple(value)
    raise fault('a point is a size and a share, such as ["10 kB", "50 %"]')


class Sizes(Model):
    """A distribution of the bytes of a flow."""

    @abstractmethod
    def at(self, share: float) -> int:
        """The size, at least a byte, below which this share of flows is, from 0 to below 1: the inverse of the
        distribution."""


class Exponential(Sizes):
    """Exponentially distributed."""

    kind: Literal["exponential"]
    mean: Size
    """Mean size."""

    def at(self, share: float) -> int:
        return max(1, round(-self.mean * math.log1p(-share)))


class Pareto(Sizes):
    """Pareto: heavy-tailed."""

    kind: Literal["pareto"]
    mean: Size
    """Mean size."""
    shape: float = Field(default=1.2, gt=1, le=100)
    """The tail's exponent; up to 2, the variance is infinite."""

    def at(self, share: float) -> int:
        least = self.mean * (self.shape - 1) / self.shape
        stretch: float = (1 - share) ** (-1 / self.shape)
        return max(1, round(least * stretch))


class Empirical(Sizes):
    """Points of a cumulative distribution, with straight lines between them."""

    kind: Literal["cdf"]
    points: list[Annotated[tuple[Size, Share], BeforeValidator(_pair)]]
    """Sizes and the fraction of flows up to each, both rising; the last is 100 %."""

    @field_validator("points")
    @classmethod
    def _rising(cls, points: list[tuple[int, float]]) -> list[tuple[int, float]]:
        if not points or points[-1][1] != 1:
            raise fault("the last point is that of 100 %")
        for before, after in itertools.pairwise(points):
            if after[0] < before[0] or after[1] < before[1]:
                raise fault("sizes and shares rise from point to point")
        return points

    def at(self, share: float) -> int:
        return _between(self.points, share)


class _Published(Sizes):
    """A distribution of the literature."""

    packets: ClassVar[Sequence[tuple[int, float]]]
    """Packets, and the fraction of flows up to this number."""

    def at(self, share: float) -> int:
        return _between([(count * _PACKET, up_to) for count, up_to in self.packets], share)


class WebSearch(_Published):
    """Flows of a cluster for web search (Alizadeh et al., SIGCOMM 2010, as points in pFabric's simulator)."""

    kind: Literal["web-search"]
    packets = (
        (6, 0.15),
        (13, 0.2),
        (19, 0.3),
        (33, 0.4),
        (53, 0.53),
        (133, 0.6),
        (667, 0.7),
        (1333, 0.8),
        (3333, 0.9),
        (6667, 0.97),
        (20000, 1.0),
    )


class DataMining(_Published):
    """Flows of a cluster for data mining (Greenberg et al., SIGCOMM 2009, as points in pFabric's simulator)."""

    kind: Literal["data-mining"]
    packets = ((1, 0.5), (2, 0.6), (3, 0.7), (7, 0.8), (267, 0.9), (2107, 0.95), (66667, 0.99), (666667, 1.0))


def _between(points: Sequence[tuple[int, float]], share: float) -> int:
    """The first point's size up to its share, then linearly interpolated."""
    place = min(bisect_left(points, share, key=lambda point: point[1]), len(points) - 1)
    size, up_to = points[place]
    if place == 0 or up_to == points[place - 1][1]:
        return max(1, size)
    before, from_ = points[place - 1]
    return max(1, round(before + (size - before) * (share - from_) / (up_to - from_)))


_Kind = Annotated[Exponential | Pareto | Empirical | WebSearch | DataMining, Field(discriminator="kind")]

AnySizes = Annotated[
    _Kind,
    kinds.FROM_NAME,
    kinds.TO_NAME,
    OrText(kinds.names(_Kind), "web-search"),
]
"""A distribution by its name, or with its parameters."""
