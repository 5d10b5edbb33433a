"""A tree of core switches, edge switches and hosts, with several links side by side."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from polypath.scenario.topologies.base import Network, Topology


class ThreeLevel(Topology):
    """Core switches, edge switches and hosts; several parallel links between each core and each edge switch."""

    kind: Literal["three-level"]
    source: ClassVar[str] = (
        "Ly, Lam, Dubois and Ravier, perf MPTCP OpenFlow, project report, Université Pierre et Marie Curie, 2014,"
        " section 4.1.2"
    )
    cores: int = Field(default=2, ge=1, le=64)
    """Core switches."""
    edges: int = Field(default=4, ge=1, le=256)
    """Edge switches."""
    links: int = Field(default=9, ge=1, le=64)
    """Parallel links between each core and each edge switch."""
    hosts: int = Field(default=18, ge=1, le=1024)
    """Hosts at each edge switch."""

    def made(self) -> Network:
        link, access_link = self.link, self.access_link
        edges = [f"edge{number}" for number in range(self.edges)]
        cores = [f"core{number}" for number in range(self.cores)]
        made = Network([f"h{number}" for number in range(self.edges * self.hosts)], cores + edges)
        for edge in edges:
            for core in cores:
                for number in range(self.links):
                    made.links[f"{edge}-{core}-{number}"] = link(edge, core)
        for number, host in enumerate(made.hosts):
            made.links[host] = access_link(host, edges[number // self.hosts])
        return made

    def picture(self) -> str:
        made = self.network
        beside = "one link" if self.links == 1 else f"{self.links} links side by side"
        return "\n".join(
            (
                f"core0 .. core{self.cores - 1}",
                f"   each to each, {beside}",
                f"edge0 .. edge{self.edges - 1}",
                f"   {self.hosts} hosts at each",
                f"h0 .. h{len(made.hosts) - 1}",
                f"{len(made.hosts)} hosts, {len(made.routers)} switches, {len(made.links)} links",
            )
        )
