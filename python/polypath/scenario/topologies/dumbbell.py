"""Pairs of hosts on either side of one link."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from polypath.scenario.topologies.base import Network, Topology


class Dumbbell(Topology):
    """Clients at the router left, servers at the router right, and one link between the two, the bottleneck."""

    kind: Literal["dumbbell"]
    source: ClassVar[str] = "Shenker, Zhang and Clark, Computer Communication Review 1990"
    pairs: int = Field(default=2, ge=1, le=4096)
    """Number of clients, and of servers."""

    def made(self) -> Network:
        names = range(self.pairs)
        clients, servers = [f"client{number}" for number in names], [f"server{number}" for number in names]
        made = Network(clients + servers, ["left", "right"])
        made.links["bottleneck"] = self.link("left", "right")
        made.links |= {name: self.access_link(name, "left") for name in clients}
        made.links |= {name: self.access_link("right", name) for name in servers}
        return made

    def picture(self) -> str:
        if self.pairs == 1:
            return "client0 ---- left ==== right ---- server0"
        last = self.pairs - 1
        return "\n".join(
            (
                f"{'client0':>11} ---.                         .--- server0",
                f"{'..':>11}     left == bottleneck == right     ..",
                f"{f'client{last}':>11} ---'                         '--- server{last}",
            )
        )
