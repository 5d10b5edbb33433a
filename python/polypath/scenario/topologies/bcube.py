"""BCube, whose servers forward."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from polypath.scenario.fields import fault
from polypath.scenario.topologies.base import Network, Topology

_MOST_HOSTS = 10_000


class BCube(Topology):
    """n^(k+1) servers with k+1 links each, one to a switch of each level; servers forward, switches join n servers."""

    kind: Literal["bcube"]
    source: ClassVar[str] = "Guo et al., SIGCOMM 2009, section 3"
    n: int = Field(default=4, ge=2, le=64)
    """Ports of a switch."""
    k: int = Field(default=1, ge=0, le=7)
    """The highest level; a server has k+1 links and as many disjoint ways to any other."""

    @model_validator(mode="after")
    def _size(self) -> BCube:
        if (hosts := self.n ** (self.k + 1)) > _MOST_HOSTS:
            raise fault(f"a BCube of n = {self.n} and k = {self.k} has {hosts:,} servers; at most {_MOST_HOSTS:,}")
        return self

    def made(self) -> Network:
        n, levels = self.n, range(self.k + 1)
        hosts = n ** (self.k + 1)
        made = Network(
            [f"h{host}" for host in range(hosts)],
            [f"level{level}-switch{number}" for level in levels for number in range(n**self.k)],
            forwarding=True,
        )
        for host in range(hosts):
            for level in levels:
                above, below = divmod(host, n ** (level + 1))
                switch = above * n**level + below % n**level
                made.links[f"h{host}-eth{level}"] = self.access_link(f"h{host}", f"level{level}-switch{switch}")
        return made

    def picture(self) -> str:
        made = self.network
        each = self.n**self.k
        lines = [
            f"level{level}-switch0 .. {each - 1}   {self.n} servers each, whose numbers"
            f" in base {self.n} differ in digit {level} alone"
            for level in reversed(range(self.k + 1))
        ]
        lines += [
            f"h0 .. h{len(made.hosts) - 1}   eth0 to level 0"
            + (f" .. eth{self.k} to level {self.k}" if self.k else ""),
            f"{len(made.hosts)} servers that forward, {len(made.routers)} switches, {len(made.links)} links",
        ]
        return "\n".join(lines)
