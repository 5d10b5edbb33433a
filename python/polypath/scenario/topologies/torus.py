"""Switches in a grid of any number of dimensions whose edges are joined."""

from __future__ import annotations

import itertools
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from polypath.scenario.fields import fault
from polypath.scenario.topologies.base import Network, Topology

_MOST_SWITCHES = 10_000


class Torus(Topology):
    """A k-ary n-cube: `size` switches in each of `dimensions` directions, the last joined to the first."""

    kind: Literal["torus"]
    source: ClassVar[str] = "Dally, IEEE Transactions on Computers 1990"
    size: int = Field(default=4, ge=3, le=1024)
    """Switches in a row, at least three; otherwise the last would be joined to the first twice."""
    dimensions: int = Field(default=2, ge=1, le=6)
    """Number of dimensions: 1 is a ring, 2 a grid."""
    hosts: int = Field(default=1, ge=1, le=256)
    """Hosts at each switch."""

    @model_validator(mode="after")
    def _size(self) -> Torus:
        if (switches := self.size**self.dimensions) > _MOST_SWITCHES:
            raise fault(f"a torus of this size has {switches:,} switches; at most {_MOST_SWITCHES:,}")
        return self

    def made(self) -> Network:
        link, access_link = self.link, self.access_link
        places = list(itertools.product(range(self.size), repeat=self.dimensions))
        names = {place: "s" + "-".join(map(str, place)) for place in places}
        made = Network([f"h{number}" for number in range(len(places) * self.hosts)], list(names.values()))
        for place, name in names.items():
            for axis in range(self.dimensions):
                beyond = (*place[:axis], (place[axis] + 1) % self.size, *place[axis + 1 :])
                made.links[f"{name}-{names[beyond]}"] = link(name, names[beyond])
        for number, host in enumerate(made.hosts):
            made.links[host] = access_link(host, made.routers[number // self.hosts])
        return made

    def picture(self) -> str:
        made = self.network
        shape = " x ".join([str(self.size)] * self.dimensions)
        return "\n".join(
            (
                f"{made.routers[0]} .. {made.routers[-1]}: {shape}, each row joined to a ring",
                f"   {self.hosts} host{'s' * (self.hosts > 1)} at each",
                f"h0 .. h{len(made.hosts) - 1}",
                f"{len(made.hosts)} hosts, {len(made.routers)} switches, {len(made.links)} links",
            )
        )
