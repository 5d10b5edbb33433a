"""The paths that a topology gives the connections between its hosts: addresses, and what opens the subflows."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Literal

from polypath.scenario.algorithms import Algorithm
from polypath.scenario.fields import Address
from polypath.scenario.network import Host, Route
from polypath.scenario.tables import End
from polypath.scenario.topologies import Topology, Way
from polypath.scenario.traffic import Application

Pair = tuple[Address, Address]
"""The addresses of a subflow: the client's and the server's."""


class Ways:
    """Those of a network whose addresses are known."""

    def __init__(self, topology: Topology, ends: Mapping[str, tuple[End, End]], hosts: Mapping[str, Host]) -> None:
        self._topology, self._ends, self._hosts = topology, ends, hosts
        self._made = frozenset(topology.network.hosts)
        self._routes: dict[tuple[str, Address, Address], Route] = {}

    @property
    def routes(self) -> list[Route]:
        """What keeps packets on their way where several are as short, of the pairs that were asked for."""
        return list(self._routes.values())

    def pairs(self, application: Application) -> list[Pair]:
        """The addresses of a connection's subflows, the first one's first; none where the topology does not say."""
        client, server = application.client, application.server
        if not self._made.issuperset((client, server)) or (application.source or application.destination):
            return []
        found = []
        for way in self._topology.between(client, server):
            for here, there in self._addresses(client, way.client, server, way.server):
                found.append((here, there))
                self._keep(way, here, there)
        return found if application.transport == "mptcp" else found[:1]

    def _keep(self, way: Way, here: Address, there: Address) -> None:
        for host, on, back in way.turns:
            for source, destination, link in ((here, there, on), (there, here, back)):
                self._routes[host, source, destination] = Route.model_construct(
                    node=host,
                    source=ipaddress.ip_network(source),
                    destination=ipaddress.ip_network(destination),
                    interface=self._interface(host, link),
                )

    def _interface(self, host: str, link: str) -> str:
        (found,) = (interface for node, interface in self._ends[link] if node == host and interface is not None)
        return found

    def _addresses(self, client: str, on: str, server: str, there: str) -> Iterator[Pair]:
        """The first two of one IP version, if there are any."""
        ends = [
            self._hosts[host].interface[self._interface(host, link)].address or ()
            for host, link in ((client, on), (server, there))
        ]
        yield from islice(((one, other) for one, other in product(*ends) if one.version == other.version), 1)


def opening(pairs: Sequence[Pair], side: Literal["client", "server"] | str) -> Algorithm:
    """The path manager that opens these subflows but the first, which is the connection's own."""
    if side == "client":
        steps = [f"0 s open {here} {there}" for here, there in pairs[1:]]
    else:
        told = dict.fromkeys(there for _, there in pairs if there != pairs[0][1])
        steps = [f"0 s announce {there}" for there in told]
    return Algorithm(name="scripted", parameters={"steps": steps})
