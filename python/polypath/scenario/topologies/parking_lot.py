"""One long path over several bottlenecks, each with a separate pair of hosts."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from polypath.scenario.topologies.base import Network, Topology


class ParkingLot(Topology):
    """Routers in a row; client0 and server0 at its ends, and client1, server1, .. on either side of one link each."""

    kind: Literal["parking-lot"]
    source: ClassVar[str] = "Floyd, Connections with multiple congested gateways, Computer Communication Review 1991"
    hops: int = Field(default=3, ge=1, le=256)
    """Links between the routers, each of them a bottleneck."""

    def made(self) -> Network:
        pairs = range(self.hops + 1)
        link, access_link = self.link, self.access_link
        made = Network(
            [f"client{number}" for number in pairs] + [f"server{number}" for number in pairs],
            [f"r{number}" for number in pairs],
        )
        for hop in range(1, self.hops + 1):
            made.links[f"hop{hop}"] = link(f"r{hop - 1}", f"r{hop}")
        for pair in pairs:
            begin, end = (0, self.hops) if pair == 0 else (pair - 1, pair)
            made.links[f"client{pair}"] = access_link(f"client{pair}", f"r{begin}")
            made.links[f"server{pair}"] = access_link(f"r{end}", f"server{pair}")
        return made

    def picture(self) -> str:
        routers = [f"r{number}" for number in range(self.hops + 1)]
        if self.hops > 3:
            routers[2:-1] = [".."]
        pairs = ["client1 at r0, server1 at r1"]
        if self.hops > 1:
            pairs.append(f"client{self.hops} at r{self.hops - 1}, server{self.hops} at r{self.hops}")
        return f"client0 -- {' == '.join(routers)} -- server0\n{', .., '.join(pairs)}"
