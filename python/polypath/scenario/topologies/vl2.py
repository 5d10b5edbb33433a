"""VL2, a folded Clos network of fast links between switches."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from polypath.scenario.fields import fault
from polypath.scenario.topologies.base import Network, Topology


class Vl2(Topology):
    """Intermediate switches, aggregation switches joined to each of them, and top-of-rack switches to two of these."""

    kind: Literal["vl2"]
    source: ClassVar[str] = "Greenberg et al., SIGCOMM 2009, section 4"
    aggregation_ports: int = Field(default=4, ge=2, le=64)
    """D_A, ports of an aggregation switch, even. Half of them lead up, and there are D_A/2 intermediate switches."""
    intermediate_ports: int = Field(default=4, ge=2, le=64)
    """D_I, ports of an intermediate switch, even; there are as many aggregation switches."""
    servers: int = Field(default=20, ge=1, le=256)
    """Hosts at each of the D_A D_I / 4 top-of-rack switches. `access` sets their links, which have 1 Gbps beside 10 in
    the source."""

    @field_validator("aggregation_ports", "intermediate_ports")
    @classmethod
    def _even(cls, ports: int) -> int:
        if ports % 2:
            raise fault(f"it is even, not {ports}: aggregation switches come in pairs, and half of their ports lead up")
        return ports

    @property
    def _sizes(self) -> tuple[int, int, int]:
        """Intermediate, aggregation, top-of-rack switches."""
        half = self.aggregation_ports // 2
        return half, self.intermediate_ports, half * (self.intermediate_ports // 2)

    def made(self) -> Network:
        intermediates, aggregations, racks = self._sizes
        link, access_link = self.link, self.access_link
        made = Network(
            [f"h{number}" for number in range(racks * self.servers)],
            [f"intermediate{number}" for number in range(intermediates)]
            + [f"aggregation{number}" for number in range(aggregations)]
            + [f"tor{number}" for number in range(racks)],
        )
        for aggregation in range(aggregations):
            for intermediate in range(intermediates):
                name = f"aggregation{aggregation}-intermediate{intermediate}"
                made.links[name] = link(f"aggregation{aggregation}", f"intermediate{intermediate}")
        for rack in range(racks):
            first = rack % (aggregations // 2) * 2
            for aggregation in (first, first + 1):
                made.links[f"tor{rack}-aggregation{aggregation}"] = link(f"tor{rack}", f"aggregation{aggregation}")
        for host in range(racks * self.servers):
            made.links[f"h{host}"] = access_link(f"h{host}", f"tor{host // self.servers}")
        return made

    def picture(self) -> str:
        intermediates, aggregations, racks = self._sizes
        made = self.network
        return "\n".join(
            (
                f"intermediate0 .. intermediate{intermediates - 1}",
                "   each to each",
                f"aggregation0 .. aggregation{aggregations - 1}",
                f"   in pairs, {self.aggregation_ports // 2} racks at each pair",
                f"tor0 .. tor{racks - 1}",
                f"   {self.servers} hosts at each",
                f"h0 .. h{len(made.hosts) - 1}",
                f"{len(made.hosts)} hosts, {len(made.routers)} switches, {len(made.links)} links",
            )
        )
