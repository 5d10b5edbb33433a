"""Queue disciplines of the network that know flows or adapt a probability."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from polypath.scenario.base import Model
from polypath.scenario.fields import Packets, Period, Size, fault

MS = 1_000_000
#: Shorter turns only cost rounds; Linux has none, either.
_MIN_QUANTUM = 256

Gain = Annotated[float, Field(ge=0, le=1000)]
Hashes = Annotated[int, Field(ge=1, le=65536)]


class Pie(Model):
    """Proportional integral controller enhanced (RFC 8033)."""

    kind: Literal["pie"]
    target: Period = 15 * MS
    """Delay that it steers to."""
    tupdate: Period = 15 * MS
    """Time between two updates of the drop probability."""
    alpha: Gain = 0.125
    """What each second of delay beyond `target` adds to the probability at an update."""
    beta: Gain = 1.25
    """What each second by which the delay has grown since the last update adds."""
    limit: Packets = 1000
    """Longest queue."""
    ecn: bool = False
    """Mark packets of ECN-capable transports while the probability is at most 10 %, instead of dropping them."""


class _ByFlow(Model):
    """A queue for each flow, served in turn."""

    quantum: Size = 1514
    """What a flow may send in its turn, at least 256 B; a packet of Ethernet by default."""
    flows: Hashes = 1024
    """Queues that flows are hashed to."""

    @model_validator(mode="after")
    def _worth_a_turn(self) -> Self:
        if self.quantum < _MIN_QUANTUM:
            raise fault(f"'quantum' must be at least {_MIN_QUANTUM} B", at=("quantum",))
        return self


class Drr(_ByFlow):
    """Deficit round robin (Shreedhar and Varghese 1995)."""

    kind: Literal["drr"]
    limit: Packets = 127
    """Most packets of all flows; beyond it the longest queue loses its last one."""


class FqCodel(_ByFlow):
    """Flow queue CoDel (RFC 8290)."""

    kind: Literal["fq-codel"]
    target: Period = 5 * MS
    """Acceptable standing delay."""
    interval: Period = 100 * MS
    """Time in which the delay must come down."""
    limit: Packets = 10_240
    """Most packets of all flows; beyond it the longest queue loses half of its bytes."""
    drop_batch: Packets = 64
    """Most packets that it loses then."""
    ecn: bool = True
    """Mark packets of ECN-capable transports instead of dropping them."""


def described(queue: Model) -> dict[str, Any]:
    """What a Plan has of the queue: times in nanoseconds, sizes in bytes."""
    units = {"target": "ns", "tupdate": "ns", "interval": "ns", "quantum": "bytes"}
    return {
        f"{name}_{units[name]}" if name in units else name: getattr(queue, name) for name in type(queue).model_fields
    }
