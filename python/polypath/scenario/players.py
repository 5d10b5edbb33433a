"""How a video player chooses its next segment: one class per rule, and a name in the union below."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, Literal

from pydantic import Field

from polypath.scenario import kinds
from polypath.scenario.base import Model
from polypath.scenario.fields import OrText, Period, Share


class Rule(Model):
    """Which representation comes next."""

    @abstractmethod
    def planned(self, buffer: int, segment: int) -> dict[str, Any]:
        """The rule as the Plan has it, for a player whose buffer has `buffer` ns, segments of `segment` ns."""


class Throughput(Rule):
    """The highest rate below what the last segments came at (the rate-based rule of Yin et al., SIGCOMM 2015)."""

    kind: Literal["throughput"]
    window: int = Field(default=5, ge=1, le=1000)
    """Number of recent segments whose rates enter the harmonic mean."""
    safety: Share = 0.9
    """The fraction of that mean that a rate may reach (dash.js)."""

    def planned(self, buffer: int, segment: int) -> dict[str, Any]:
        return {"window": self.window, "safety": self.safety}


class Buffer(Rule):
    """By what is buffered, whatever the rate was: BBA-0 (Huang et al., SIGCOMM 2014, algorithm 1)."""

    kind: Literal["buffer"]
    reservoir: Period | None = None
    """Buffer up to which the lowest rate is chosen; default: 3/8 of the buffer, as in the paper."""
    cushion: Period | None = None
    """Buffer above the reservoir from which the highest rate is chosen. Default: both together are 9/10 of the buffer,
    as in the paper, but at most the content possible at a request."""

    def planned(self, buffer: int, segment: int) -> dict[str, Any]:
        reservoir = buffer * 3 // 8 if self.reservoir is None else self.reservoir
        most = min(buffer * 9 // 10, buffer - segment)
        cushion = max(1, most - reservoir) if self.cushion is None else self.cushion
        return {"reservoir_ns": reservoir, "cushion_ns": cushion}


class Fixed(Rule):
    """Always the same rate."""

    kind: Literal["fixed"]
    representation: int = Field(default=0, ge=0, le=99)
    """Index of the rate, from 0, the lowest."""

    def planned(self, buffer: int, segment: int) -> dict[str, Any]:
        return {"representation": self.representation}


_Rule = Annotated[Throughput | Buffer | Fixed, Field(discriminator="kind")]

AnyRule = Annotated[
    _Rule,
    kinds.FROM_NAME,
    kinds.TO_NAME,
    OrText(kinds.names(_Rule), "throughput"),
]
"""A rule by its name, or with its parameters."""
