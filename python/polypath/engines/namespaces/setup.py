"""The script that builds a Plan's network in the guest: namespaces, links, addresses, routes, stack settings."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from polypath.engines.base import EngineError
from polypath.engines.namespaces import paths
from polypath.engines.namespaces.kernel import Kernel
from polypath.engines.namespaces.script import Script
from polypath.engines.namespaces.topology import End, Hop, Network, namespace
from polypath.engines.namespaces.wires import NO_IPV6, Wires

if TYPE_CHECKING:
    from polypath.plan.types import Node

#: The first routing table of our own, and the preferences of rules that lead to them.
_TABLE = 1000
_STATIC_RULE = 1000
_SOURCE_RULE = 20000
#: The metric that comes after all others.
_LAST_METRIC = 2**32 - 1
#: RFC 8200 section 5.
_LEAST_IPV6_MTU = 1280


class Setup:
    """Files by name for the run's folder, `setup.sh` among them. Raises EngineError for what the kernel cannot have."""

    def __init__(self, network: Network, wires: Wires, kernel: Kernel) -> None:
        self.network = network
        self.plan = network.plan
        self.versions = {address.version for address in network.owner}
        self._kernel = kernel
        self._script = Script()
        #: For each interface of a host or router, what makes it work again after it was down.
        self.revival: dict[End, list[str]] = {}
        speaking = [node for node in wires.nodes if network.speaks_ip(node)]
        self._routes = {node: list(self._routes_of(node)) for node in speaking}
        spaces = [*wires.namespaces(), *map(namespace, wires.nodes)]
        self._script.ip(None, [f"netns add {name}" for name in spaces])
        wires.lay(self._script)
        for node in wires.nodes:
            table = network.nodes[node]
            if network.speaks_ip(node):
                self._settings(node, table)
                self._interfaces(node, table)
            else:
                self._bridge(node)
        for node in speaking:
            if network.is_host(node):
                self._paths(node)
        self.files = self._script.files

    def _bridge(self, node: int) -> None:
        ports = [self.network.device(end) for end in self.network.ends(node)]
        self._script.inside(namespace(node), [NO_IPV6], "sysctl")
        self._script.ip(
            namespace(node),
            [
                "link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
                *(f"link set {port} master br0" for port in ports),
                *(f"link set {port} up" for port in ports),
                "link set br0 up",
            ],
        )

    def _settings(self, node: int, table: Node) -> None:
        values: dict[str, object] = {"ipv4/conf/all/rp_filter": 0, "ipv4/ip_forward": int(table["kind"] == "router")}
        if 6 in self.versions:
            values |= {
                "ipv6/conf/all/forwarding": int(table["kind"] == "router"),
                "ipv6/conf/all/keep_addr_on_down": 1,
                "ipv6/conf/default/accept_ra": 0,
            }
        else:
            values["ipv6/conf/all/disable_ipv6"] = 1
            values["ipv6/conf/default/disable_ipv6"] = 1
        if table["stack"]:
            values |= self._kernel.settings(table["stack"])
        lines = [f"echo '{value}' > /proc/sys/net/{name}" for name, value in values.items()]
        self._script.inside(namespace(node), lines, "sysctl")

    def _interfaces(self, node: int, table: Node) -> None:
        lines = ["link set lo up"]
        devices = [self.network.device(end) for end in self.network.ends(node)]
        for end in self.network.ends(node):
            device = self.network.device(end)
            if self._has_ipv6(end):
                lines.append(f"link set {device} addrgenmode none")
            for address in map(ipaddress.ip_address, table["interfaces"][end.interface]["addresses"]):
                more = " nodad" if address.version == 6 else ""
                lines.append(f"addr add {address}/{address.max_prefixlen} dev {device}{more}")
            lines.append(f"link set {device} up")
        if devices:
            self._script.lines.append(f"ip netns exec {namespace(node)} ./guest offload {' '.join(devices)}")
        lines += [line for out, line in self._routes[node] if out is None and line.startswith("route")]
        for end in self.network.ends(node):
            self.revival[end] = [
                *self._neighbours(end),
                *(line for out, line in self._routes[node] if out == end and line.startswith("route")),
            ]
            lines += self.revival[end]
        self._script.ip(namespace(node), lines)
        rules = [line for _, line in self._routes[node] if not line.startswith("route")]
        for version in (4, 6):
            mine = [line.removeprefix(f"-{version} ") for line in rules if line.startswith(f"-{version} ")]
            self._script.batch(f"ip -{version}", namespace(node), mine, f"rules{version}-{namespace(node)}.batch")

    def _has_ipv6(self, end: End) -> bool:
        """Whether the kernel lets the interface have IPv6; raises EngineError where the Plan has it nevertheless."""
        mtu, table = self.network.interface_mtu(end), self.network.nodes[end.node]
        addresses = table["interfaces"][end.interface]["addresses"]
        if mtu >= _LEAST_IPV6_MTU:
            return True
        if any(":" in address for address in addresses):
            raise EngineError(
                f"Linux has no IPv6 where the MTU is below {_LEAST_IPV6_MTU} bytes, and {table['name']} has {mtu}"
            )
        return False

    def _neighbours(self, end: End) -> Iterator[str]:
        for peer in self.network.neighbours(end):
            for version in sorted(self.versions):
                gateway = self.network.gateway(peer, version)
                yield f"neigh replace {gateway} lladdr {peer.mac} dev {self.network.device(end)} nud permanent"

    def _routes_of(self, node: int) -> Iterator[tuple[End | None, str]]:
        """Lines of `ip`, each with the interface that it depends on: the main table, then a table for each rule."""
        addresses = sorted(self.network.owner, key=lambda address: (address.version, address))
        own = {address for address in addresses if self.network.owner[address].node == node}
        for address in addresses:
            hop = None if address in own else self.network.next_hop(node, address)
            if hop:
                yield hop.out, self._route(node, address, hop, None)
        table = _TABLE
        for preference, source, prefix, interface in self._rules(node):
            table += 1
            version = prefix.version
            # each rule has a table of its own, and an address that it cannot reach is left to the next
            hops = {
                address: self.network.next_hop(node, address, interface)
                for address in addresses
                if address not in own and address.version == version and address in prefix
            }
            reached = {address: hop for address, hop in hops.items() if hop}
            if not reached:
                continue
            of = f" from {source}" if source else " from all"
            yield None, f"-{version} rule add pref {preference}{of} to {prefix} lookup {table}"
            for address, hop in reached.items():
                yield hop.out, self._route(node, address, hop, table)
                # With an interface that goes down its routes go, and another table would have the address.
                yield None, f"route replace unreachable {address} metric {_LAST_METRIC} table {table}"

    def _rules(self, node: int) -> Iterator[tuple[int, Any, Any, int]]:
        """Preference, source, destination and outgoing interface: the Plan's routes, then each host's own addresses."""
        static = [
            (_prefix(route["source"]) if route["source"] else None, _prefix(route["destination"]), route["interface"])
            for route in self.plan["routes"]
            if route["node"] == node
        ]
        for number, (source, prefix, interface) in enumerate(static):
            yield _STATIC_RULE + number, source, prefix, interface
        if not self.network.is_host(node):
            return
        everywhere = {4: ipaddress.ip_network("0.0.0.0/0"), 6: ipaddress.ip_network("::/0")}
        for number, (address, end) in enumerate(self.network.owner.items()):
            if end.node == node:
                yield _SOURCE_RULE + number, address, everywhere[address.version], end.interface

    def _route(self, node: int, address: Any, hop: Hop, table: int | None) -> str:
        stack = self.network.nodes[node]["stack"]
        gateway = self.network.gateway(hop.to, address.version)
        words = [f"route replace {address} via {gateway} dev {self.network.device(hop.out)} onlink"]
        if table:
            words.append(f"table {table}")
        if stack:
            words.append(f"initcwnd {stack['initial_window']}")
            if stack["delayed_ack_ns"] == 0:
                words.append("quickack 1")
        return " ".join(words)

    def _paths(self, node: int) -> None:
        manager = paths.of_host(self.network, self._kernel, node)
        if manager.userspace:
            name, value = self._kernel.userspace_paths
            self._script.inside(namespace(node), [f"echo {value} > /proc/sys/net/{name}"], "paths")
        self._script.ip(namespace(node), manager.commands(), "mptcp")


def _prefix(table: Mapping[str, Any]) -> Any:
    return ipaddress.ip_network(f"{table['address']}/{table['length']}", strict=False)
