"""A Plan's network in the guest: a namespace per node, and the next hop from each node to each address.

Every IP interface has an invented gateway address, which only neighbour tables contain. A route names its next hop by
it, so no address resolution runs.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from polypath import _core
from polypath.engines.base import EngineError
from polypath.plan.access import ENDS, setting

if TYPE_CHECKING:
    from polypath.plan.data import PlanData
    from polypath.plan.types import Application, Attachment, Node

#: The namespace that shapes: each link passes through it.
WIRES = "w"
_DEVICE = re.compile(r"^[A-Za-z0-9_.-]{1,15}$")
_RESERVED = frozenset({"lo", "br0", "all", "default"})
_MOST_NODES = 1000
LARGEST_MTU = 65535
#: Of IPv6 and UDP, or less.
_HEADERS = 48

_NOBODY = {4: "0.0.0.0", 6: "::"}
"""Whom packets are from of which only the destination counts."""


@dataclass(frozen=True, order=True)
class End:
    """An interface by its place in the Plan."""

    node: int
    interface: int

    @property
    def mac(self) -> str:
        return f"02:00:{self.node >> 8:02x}:{self.node & 255:02x}:{self.interface >> 8:02x}:{self.interface & 255:02x}"


@dataclass(frozen=True)
class Hop:
    """Where a packet goes next: out of `device`, to the interface `to`."""

    out: End
    to: End


@dataclass(frozen=True)
class _Way:
    """A way from a node: the interface that it leaves by, and those by which it enters each further node."""

    leaves: End
    enters: tuple[End, ...]
    delay_ns: int

    def after(self, first: _Way) -> _Way:
        """Both, one after the other."""
        return _Way(first.leaves, (*first.enters, *self.enters), first.delay_ns + self.delay_ns)


def namespace(node: int) -> str:
    return f"n{node}"


def wire_devices(link: int) -> tuple[str, str]:
    """The shaping namespace's devices at a link's ends a and b."""
    return f"a{link}", f"b{link}"


class Network:
    """Names, neighbours and next hops. Raises EngineError for a network that the guest cannot have."""

    def __init__(self, plan: PlanData) -> None:
        self.plan = plan
        self.nodes = plan["nodes"]
        self.links = plan["links"]
        if len(self.nodes) > _MOST_NODES:
            raise EngineError(f"Linux takes {_MOST_NODES} nodes at most, and this network has {len(self.nodes)}")
        if relay := next((table for table in self.nodes if table.get("forwards")), None):
            raise EngineError(
                f"host {relay['name']} forwards for others, which hosts here do not (engine sim has such)"
            )
        self.link_at: dict[End, tuple[int, End]] = {}
        for index, link in enumerate(self.links):
            a, b = (End(link[side]["node"], link[side]["interface"]) for side in ENDS)
            self.link_at[a] = (index, b)
            self.link_at[b] = (index, a)
        self.owner = {
            ipaddress.ip_address(address): End(node, interface)
            for node, table in enumerate(self.nodes)
            for interface, settings in enumerate(table["interfaces"])
            for address in settings["addresses"]
        }
        self._devices = {node: _devices(table) for node, table in enumerate(self.nodes)}
        self._gateways = {
            end: index + 1 for index, end in enumerate(sorted(end for end in self.link_at if self.speaks_ip(end.node)))
        }
        self._routes = _core.Routes(json.dumps({"nodes": self.nodes, "links": self.links}))
        self._ways: dict[tuple[int, Any], _Way | None] = {}

    def speaks_ip(self, node: int) -> bool:
        return self.nodes[node]["kind"] != "switch"

    def is_host(self, node: int) -> bool:
        return self.nodes[node]["kind"] == "host"

    def mtu(self, node: int) -> int:
        """For a host's interface, the MTU of its stack. Other nodes accept any length."""
        stack = self.nodes[node]["stack"]
        return stack["mtu"] if stack else LARGEST_MTU

    def longest_packet(self) -> int:
        """What the hosts' packets have at most, with what the Plan puts on them: TCP sends what both ends take."""
        plan = self.plan
        if plan.get("programs") or "clients" in plan:
            return max((self.mtu(node) for node in range(len(self.nodes)) if self.is_host(node)), default=0)
        return max(map(self._longest_of, plan["applications"]), default=0)

    def _longest_of(self, application: Application) -> int:
        ends = [self.mtu(application[side]) for side in ("client", "server")]
        if application["transport"] in ("tcp", "mptcp"):
            return min(ends)
        work = application["work"]
        payload = setting(work, "packet_bytes") or setting(work, "payload_bytes")
        return max(ends) if payload is None else min(max(ends), payload + _HEADERS)

    def interface_mtu(self, end: End) -> int:
        """That of a host's stack, and where routers tell of longer packets, the link's."""
        link = self.links[self.link_at[end][0]]
        side = link["forward" if _is_at(link["a"], end) else "backward"]
        own, longest = self.mtu(end.node), side["mtu"]
        return own if longest is None or not (side["icmp"] or self.is_host(end.node)) else min(own, longest)

    def device(self, end: End) -> str:
        """The interface's name in its namespace."""
        return self._devices[end.node][end.interface]

    def sender(self, link: int, direction: str) -> End:
        """Where a direction of a link begins."""
        end = self.links[link]["a" if direction == "forward" else "b"]
        return End(end["node"], end["interface"])

    def host_queues(self) -> dict[tuple[int, str], int]:
        """The host whose interface has the queue of a link's direction, where it is a host's."""
        return {
            (index, direction): self.sender(index, direction).node
            for index, link in enumerate(self.links)
            for direction in ("forward", "backward")
            if link[direction].get("queue_at")
        }

    def ends(self, node: int) -> list[End]:
        """The node's interfaces that a link is attached to."""
        return sorted(end for end in self.link_at if end.node == node)

    def gateway(self, end: End, version: int) -> str:
        """The made-up address by which neighbours' routes name the interface."""
        number = self._gateways[end]
        return f"169.254.{number >> 8}.{number & 255}" if version == 4 else f"fe80::{number:x}"

    def neighbours(self, end: End) -> list[End]:
        """The interfaces that speak IP on the same segment."""
        return sorted(self._beyond(end))

    def _beyond(self, end: End, seen: frozenset[int] = frozenset()) -> Iterator[End]:
        if end not in self.link_at:
            return
        peer = self.link_at[end][1]
        if self.speaks_ip(peer.node):
            yield peer
        elif peer.node not in seen:
            for port in self.ends(peer.node):
                if port != peer:
                    yield from self._beyond(port, seen | {peer.node})

    def next_hop(self, node: int, address: Any, out: int | None = None) -> Hop | None:
        """The next hop from a node to an address, through the interface `out` or any; None if there is none.

        Routers and switches forward as the simulator's do without static routes, which are separate rules. In the
        simulator, a host sends through its source's interface. Here it takes the shortest way through an interface with
        an address of the same IP version.
        """
        if out is None and not self.is_host(node):
            way = self._way(node, address)
            return None if way is None else Hop(way.leaves, self._next(way))
        speaking = {end for own, end in self.owner.items() if own.version == address.version}
        ends = [end for end in self.ends(node) if (end in speaking if out is None else end.interface == out)]
        ways = [way for end in ends if (way := self._way_by(end, address)) is not None]
        if not ways:
            return None
        best = min(ways, key=lambda way: self._rank(way, address))
        return Hop(best.leaves, self._next(best))

    def _rank(self, way: _Way, address: Any) -> tuple[bool, int, int, End]:
        """The address's own link first, then fewest links behind the next hop, then least delay."""
        behind = len(way.enters) - way.enters.index(self._next(way))
        return way.enters[-1] != self.owner[address], behind, way.delay_ns, way.leaves

    def _next(self, way: _Way) -> End:
        return next(end for end in way.enters if self.speaks_ip(end.node))

    def _way_by(self, end: End, address: Any) -> _Way | None:
        """A way to an address that begins at an interface."""
        peer, target = self.link_at[end][1], self.owner[address].node
        first = _Way(end, (peer,), self._delay_towards(peer))
        if peer.node == target:
            return first
        if self.is_host(peer.node):
            return None
        # A switch may have none but over this node, and one to another address of the same host (the weak host model).
        others = (each for each, owner in self.owner.items() if owner.node == target and self.is_host(target))
        for each in chain((address,), others):
            further = self._way(peer.node, each)
            if further is not None and self._next(way := further.after(first)).node != end.node:
                return way
        return None

    def _way(self, node: int, address: Any) -> _Way | None:
        """The simulator's way from a router or switch."""
        if (node, address) not in self._ways:
            self._ways[node, address] = self._asked(node, address)
        return self._ways[node, address]

    def _asked(self, node: int, address: Any) -> _Way | None:
        found = self._routes.way(node, _NOBODY[address.version], str(address))
        if found is None:
            return None
        begins = [self.sender(link, direction) for link, direction in found]
        enters = tuple(self.link_at[end][1] for end in begins)
        return _Way(begins[0], enters, sum(self._delay_towards(end) for end in enters))

    def _delay_towards(self, end: End) -> int:
        """The propagation delay of the link at `end` in the direction towards it."""
        link = self.links[self.link_at[end][0]]
        return link["forward" if _is_at(link["b"], end) else "backward"]["delay_ns"]


def _is_at(place: Attachment, end: End) -> bool:
    return (place["node"], place["interface"]) == (end.node, end.interface)


def _devices(node: Node) -> list[str]:
    taken: set[str] = set()
    names = []
    for index, interface in enumerate(node["interfaces"]):
        name = interface["name"]
        if not _DEVICE.match(name) or name in _RESERVED or name in taken or set(name) <= {"."}:
            name = f"if-{index}"
        taken.add(name)
        names.append(name)
    return names
