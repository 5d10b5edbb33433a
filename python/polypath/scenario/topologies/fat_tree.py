"""The fat-tree of data centres."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from polypath.scenario.fields import fault
from polypath.scenario.topologies.base import Network, Topology


class FatTree(Topology):
    """k pods of k/2 edge and k/2 aggregation switches, k²/4 core switches, hosts at each edge switch."""

    kind: Literal["fat-tree"]
    source: ClassVar[str] = "Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, section 3"
    k: int = Field(default=4, ge=2, le=32)
    """Ports of a switch, an even number: k²/4 paths between hosts of different pods."""
    hosts: int | None = Field(default=None, ge=1, le=1024)
    """Hosts at each edge switch; default: k/2. Four times as many give an oversubscription of 4 to 1."""
    interfaces: int = Field(default=1, ge=1, le=16)
    """Links of each host. The first goes to its own edge switch, the others to the pod's next ones in turn."""

    @field_validator("k")
    @classmethod
    def _even(cls, k: int) -> int:
        if k % 2:
            raise fault(f"a fat-tree's k is even, not {k}: half of a switch's ports lead up, half down")
        return k

    @property
    def _hosts(self) -> int:
        return self.k // 2 if self.hosts is None else self.hosts

    def made(self) -> Network:
        half, each = self.k // 2, self._hosts
        link, access_link = self.link, self.access_link
        made = Network(
            [f"h{number}" for number in range(self.k * half * each)],
            [f"core{number}" for number in range(half * half)],
        )
        for pod in range(self.k):
            edges = [f"pod{pod}-edge{number}" for number in range(half)]
            aggregations = [f"pod{pod}-aggregation{number}" for number in range(half)]
            made.routers += aggregations + edges
            for number, aggregation in enumerate(aggregations):
                for core in range(number * half, (number + 1) * half):
                    made.links[f"{aggregation}-core{core}"] = link(aggregation, f"core{core}")
            for edge in edges:
                for number, aggregation in enumerate(aggregations):
                    made.links[f"{edge}-aggregation{number}"] = link(edge, aggregation)
            for place in range(half * each):
                host = f"h{pod * half * each + place}"
                for interface in range(self.interfaces):
                    edge = edges[(place // each + interface) % half]
                    made.links[f"{host}-eth{interface}"] = access_link(host, edge)
        return made

    def picture(self) -> str:
        half = self.k // 2
        made = self.network
        each = "" if self.interfaces == 1 else f", {self.interfaces} links each"
        return "\n".join(
            (
                f"core0 .. core{half * half - 1}",
                f"   {self.k} pods, pod0 .. pod{self.k - 1}, each to every core switch",
                f"pod0-aggregation0 .. {half - 1}",
                "   each to each",
                f"pod0-edge0 .. {half - 1}",
                f"   {self._hosts} hosts at each{each}",
                f"h0 .. h{len(made.hosts) - 1}",
                f"{len(made.hosts)} hosts, {len(made.routers)} switches, {len(made.links)} links",
            )
        )
