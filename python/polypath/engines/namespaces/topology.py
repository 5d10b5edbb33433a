"""A Plan's network in the guest: a namespace for each node, and the next hop from each node to each address.

Every interface that speaks IP has a made-up gateway address, which only neighbour tables know: a route names its next
hop by it, and no address resolution ever runs.
"""

from __future__ import annotations

import heapq
import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from polypath.engines.base import EngineError

Data = Mapping[str, Any]

#: The namespace that shapes: each link passes through it.
WIRES = "w"
_DEVICE = re.compile(r"^[A-Za-z0-9_.-]{1,15}$")
_RESERVED = frozenset({"lo", "br0", "all", "default"})
_MOST_NODES = 1000
LARGEST_MTU = 65535


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


def namespace(node: int) -> str:
    return f"n{node}"


def wire_devices(link: int) -> tuple[str, str]:
    """The shaping namespace's devices at a link's ends a and b."""
    return f"a{link}", f"b{link}"


class Network:
    """Names, neighbours and next hops. Raises EngineError for a network that the guest cannot have."""

    def __init__(self, plan: Data) -> None:
        self.plan = plan
        self.nodes: list[Data] = plan["nodes"]
        self.links: list[Data] = plan["links"]
        if len(self.nodes) > _MOST_NODES:
            raise EngineError(f"Linux takes {_MOST_NODES} nodes at most, and this network has {len(self.nodes)}")
        if relay := next((table for table in self.nodes if table.get("forwards")), None):
            raise EngineError(
                f"host {relay['name']} forwards for others, which hosts here do not (engine sim has such)"
            )
        self.link_at: dict[End, tuple[int, End]] = {}
        for index, link in enumerate(self.links):
            a, b = (End(link[side]["node"], link[side]["interface"]) for side in "ab")
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
        self._distances = {
            end: self._distance_to(end) for end in sorted(set(self.owner.values()) | self.link_at.keys())
        }

    def speaks_ip(self, node: int) -> bool:
        return bool(self.nodes[node]["kind"] != "switch")

    def is_host(self, node: int) -> bool:
        return bool(self.nodes[node]["kind"] == "host")

    def mtu(self, node: int) -> int:
        """Of a host's interfaces what its stack says; nothing is too long for other nodes."""
        stack = self.nodes[node]["stack"]
        return int(stack["mtu"]) if stack else LARGEST_MTU

    def interface_mtu(self, end: End) -> int:
        """That of a host's stack, and where routers tell of longer packets, the link's."""
        link = self.links[self.link_at[end][0]]
        side = link["forward" if link["a"] == {"node": end.node, "interface": end.interface} else "backward"]
        own = self.mtu(end.node)
        binds = side["mtu"] is not None and (side["icmp"] or self.is_host(end.node))
        return min(own, side["mtu"]) if binds else own

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

    def _distance_to(self, target: End) -> dict[int, tuple[int, int]]:
        """From each node that can reach the interface: fewest links, then least propagation delay in ns."""
        if target not in self.link_at:
            return {}
        found: dict[int, tuple[int, int]] = {}
        first = self.link_at[target][1]
        waiting = [(1, self._delay_towards(target), first.node)]
        while waiting:
            hops, delay, node = heapq.heappop(waiting)
            if node in found:
                continue
            found[node] = (hops, delay)
            if self.is_host(node):
                continue
            for end in self.ends(node):
                peer = self.link_at[end][1]
                if peer.node not in found:
                    heapq.heappush(waiting, (hops + 1, delay + self._delay_towards(end), peer.node))
        return found

    def _delay_towards(self, end: End) -> int:
        """The propagation delay of the link at `end` in the direction towards it."""
        link = self.links[self.link_at[end][0]]
        direction = "forward" if link["b"] == {"node": end.node, "interface": end.interface} else "backward"
        return int(link[direction]["delay_ns"])

    def next_hop(self, node: int, address: Any, out: int | None = None) -> Hop | None:
        """The next hop from a node to an address, by the interface `out` or by any; None where there is none."""
        target = self.owner[address]
        candidates = self._towards(node, target, out)
        if not candidates and self.is_host(target.node):
            # The weak host model: a host takes packets to any of its addresses on every interface.
            candidates = [hop for end in self.ends(target.node) for hop in self._towards(node, end, out)]
        if not candidates:
            return None
        _, _, end, to = min(candidates)
        return Hop(end, to)

    def _towards(self, node: int, target: End, out: int | None) -> list[tuple[int, int, End, End]]:
        """The next hops from a node to an interface: links and delay from there on, and the two ends of the hop."""
        candidates = []
        for end in self.ends(node):
            if out is not None and end.interface != out:
                continue
            for to in self._beyond(end):
                if to == target:
                    candidates.append((0, 0, end, to))
                elif not self.is_host(to.node) and to.node in self._distances[target]:
                    hops, delay = self._distances[target][to.node]
                    candidates.append((hops, delay + self._delay_towards(self.link_at[end][1]), end, to))
        return candidates


def _devices(node: Data) -> list[str]:
    taken: set[str] = set()
    names = []
    for index, interface in enumerate(node["interfaces"]):
        name = interface["name"]
        if not _DEVICE.match(name) or name in _RESERVED or name in taken or set(name) <= {"."}:
            name = f"if-{index}"
        taken.add(name)
        names.append(name)
    return names
