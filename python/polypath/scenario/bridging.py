"""The switches of a scenario as Ethernet bridges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_validator

from polypath import registry
from polypath.scenario.algorithms import Algorithm, SpanningTree, resolved
from polypath.scenario.base import Model
from polypath.scenario.fields import Name, Period, fault

PRIORITY_STEP = 4096
"""Of bridge priorities (IEEE 802.1D-2004 table 17-2)."""
MOST_PRIORITY = 61_440


class Bridging(Model):
    """All routers and switches as Ethernet bridges, which learn where addresses are and find a spanning tree."""

    protocol: SpanningTree | None = None
    """The spanning tree protocol; default: "rstp"."""
    ageing_time: Period = 300_000_000_000
    """How long a bridge keeps an address without a frame from it."""
    priority: dict[Name, int] = Field(default_factory=dict)
    """Priorities of bridges by name, 0 to 61440 in steps of 4096; the others have 32768. The bridge with the lowest is
    the root; among equals, the first of the scenario."""

    @property
    def rule(self) -> Algorithm:
        """The protocol, given or not."""
        return self.protocol or Algorithm(name="rstp")

    @model_validator(mode="after")
    def _allowed(self) -> Bridging:
        for name, priority in self.priority.items():
            if not 0 <= priority <= MOST_PRIORITY or priority % PRIORITY_STEP:
                nearest = min(max(round(priority / PRIORITY_STEP), 0) * PRIORITY_STEP, MOST_PRIORITY)
                message = f"a priority is 0 to {MOST_PRIORITY} in steps of {PRIORITY_STEP}, not {priority}"
                raise fault(message, str(nearest), ("priority", name))
        problem = registry.fault("spanning-tree", self.rule.name, self.rule.parameters)
        if problem is not None:
            raise fault(problem, None, ("protocol",))
        return self

    def plan(self, node: Mapping[str, int]) -> dict[str, Any]:
        """What a plan says of it; `node` has each name's position."""
        priorities = ({"node": node[name], "priority": own} for name, own in self.priority.items())
        return {
            "protocol": resolved("spanning-tree", self.rule),
            "ageing_ns": self.ageing_time,
            "priorities": list(priorities),
        }
