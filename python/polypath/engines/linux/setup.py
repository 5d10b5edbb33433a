"""The script that lays a Plan's network in the guest: namespaces, links, addresses, routes, settings of each stack."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from polypath.engines.base import EngineError
from polypath.engines.linux import algorithms, paths, shaping
from polypath.engines.linux.topology import WIRES, Data, End, Hop, Network, namespace, wire_devices

#: The first routing table of our own, and the preferences of rules that lead to them.
_TABLE = 1000
_STATIC_RULE = 1000
_SOURCE_RULE = 20000
_LARGEST_MTU = 65535

#: What Linux 7.2 has no switch for.
_FIXED = {"rto_initial_ns": 1_000_000_000, "delayed_ack_ns": 40_000_000}


class Setup:
    """Files by name for the run's folder; `setup.sh` comes first. Raises EngineError for what the guest cannot have."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.plan = network.plan
        self.versions = {address.version for address in network.owner}
        self.script: list[str] = []
        self.files: dict[str, str] = {}
        #: For each interface of a host or router, what makes it work again after it was down.
        self.revival: dict[End, list[str]] = {}
        self._routes = {node: list(self._routes_of(node)) for node in self._speaking()}
        self._build()

    def _speaking(self) -> list[int]:
        return [node for node in range(len(self.network.nodes)) if self.network.speaks_ip(node)]

    def _build(self) -> None:
        nodes = self.network.nodes
        memory = "1000000 1000000 1000000"
        self.script += [
            f"echo {memory} > /proc/sys/net/ipv4/tcp_mem",
            "echo 1000000 > /proc/sys/net/core/netdev_max_backlog",
        ]
        self._ip(None, [f"netns add {name}" for name in [WIRES, *(namespace(node) for node in range(len(nodes)))]])
        self._wires()
        for node, table in enumerate(nodes):
            if self.network.speaks_ip(node):
                self._settings(node, table)
                self._interfaces(node, table)
            else:
                self._bridge(node)
        for node in self._speaking():
            if self.network.is_host(node):
                self._paths(node)
        self.files["setup.sh"] = "\n".join(self.script) + "\n"

    def _batch(self, tool: str, space: str | None, lines: list[str], name: str) -> None:
        if not lines:
            return
        self.files[name] = "\n".join(lines) + "\n"
        where = f" -n {space}" if space else ""
        self.script.append(f"{tool}{where} -batch {name}")

    def _ip(self, space: str | None, lines: list[str], name: str = "ip") -> None:
        self._batch("ip", space, lines, f"{name}-{space or 'all'}.batch")

    def _wires(self) -> None:
        links, rules = [], []
        for index, link in enumerate(self.network.links):
            names = wire_devices(index)
            for side, name in zip("ab", names, strict=True):
                end = End(link[side]["node"], link[side]["interface"])
                links.append(
                    f"link add {self.network.device(end)} netns {namespace(end.node)} address {end.mac}"
                    f" mtu {self._mtu(end.node)} type veth peer name {name} netns {WIRES} mtu {_LARGEST_MTU}"
                )
                links.append(f"-n {WIRES} link set {name} up")
            for source, sink, direction in ((*names, "forward"), (*reversed(names), "backward")):
                rules.append(f"qdisc add dev {source} clsact")
                rules.append(f"filter add dev {source} ingress matchall action mirred egress redirect dev {sink}")
                rules += shaping.commands(sink, link[direction])
        ups = [line.removeprefix(f"-n {WIRES} ") for line in links if line.startswith("-n ")]
        self._ip(None, [line for line in links if not line.startswith("-n ")], "links")
        self._inside(WIRES, ["for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 > $f; done"], "sysctl")
        self._ip(WIRES, ups, "up")
        self._batch("tc", WIRES, rules, "shape.batch")

    def _mtu(self, node: int) -> int:
        stack = self.network.nodes[node]["stack"]
        return int(stack["mtu"]) if stack else _LARGEST_MTU

    def _inside(self, space: str, lines: list[str], name: str) -> None:
        file = f"{name}-{space}.sh"
        self.files[file] = "\n".join(lines) + "\n"
        self.script.append(f"ip netns exec {space} sh -e {file}")

    def _bridge(self, node: int) -> None:
        ports = [self.network.device(end) for end in self.network.ends(node)]
        self._inside(
            namespace(node), ["for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 > $f; done"], "sysctl"
        )
        self._ip(
            namespace(node),
            [
                "link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
                *(f"link set {port} master br0" for port in ports),
                *(f"link set {port} up" for port in ports),
                "link set br0 up",
            ],
        )

    def _settings(self, node: int, table: Data) -> None:
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
            values |= stack_settings(table["stack"])
        lines = [f"echo '{value}' > /proc/sys/net/{name}" for name, value in values.items()]
        self._inside(namespace(node), lines, "sysctl")

    def _interfaces(self, node: int, table: Data) -> None:
        lines = ["link set lo up"]
        devices = [self.network.device(end) for end in self.network.ends(node)]
        for end in self.network.ends(node):
            device = self.network.device(end)
            lines.append(f"link set {device} addrgenmode none")
            for address in map(ipaddress.ip_address, table["interfaces"][end.interface]["addresses"]):
                more = " nodad" if address.version == 6 else ""
                lines.append(f"addr add {address}/{address.max_prefixlen} dev {device}{more}")
            lines.append(f"link set {device} up")
        if devices:
            self.script.append(f"ip netns exec {namespace(node)} ./guest offload {' '.join(devices)}")
        for end in self.network.ends(node):
            self.revival[end] = [
                *self._neighbours(end),
                *(line for out, line in self._routes[node] if out == end and line.startswith("route")),
            ]
            lines += self.revival[end]
        self._ip(namespace(node), lines)
        rules = [line for _, line in self._routes[node] if not line.startswith("route")]
        for version in (4, 6):
            mine = [line.removeprefix(f"-{version} ") for line in rules if line.startswith(f"-{version} ")]
            self._batch(f"ip -{version}", namespace(node), mine, f"rules{version}-{namespace(node)}.batch")

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
        return " ".join(words)

    def _paths(self, node: int) -> None:
        manager = paths.of_host(self.network, node)
        if manager.userspace:
            self._inside(namespace(node), ["echo userspace > /proc/sys/net/mptcp/path_manager"], "paths")
        self._ip(namespace(node), manager.commands(), "mptcp")


def _prefix(table: Mapping[str, Any]) -> Any:
    return ipaddress.ip_network(f"{table['address']}/{table['length']}", strict=False)


def stack_settings(stack: Mapping[str, Any]) -> dict[str, object]:
    """A host's transport settings as files below /proc/sys/net. Raises EngineError."""
    for name, value in _FIXED.items():
        if stack[name] != value:
            raise EngineError(
                f"engine linux has {name.removesuffix('_ns')} {value / 1e6:g} ms only: a constant of Linux"
            )
    if stack["rto_min_ns"] % 1000:
        raise EngineError("engine linux takes rto_min in whole microseconds")
    return {
        "ipv4/tcp_rmem": " ".join(map(str, stack["receive_buffer"])),
        "ipv4/tcp_wmem": " ".join(map(str, stack["send_buffer"])),
        "ipv4/tcp_moderate_rcvbuf": int(stack["autotuning"]),
        "ipv4/tcp_sack": int(stack["sack"]),
        "ipv4/tcp_timestamps": int(stack["timestamps"]),
        "ipv4/tcp_window_scaling": int(stack["window_scaling"]),
        "ipv4/tcp_ecn": int(stack["ecn"]),
        "ipv4/tcp_rto_min_us": stack["rto_min_ns"] // 1000,
        "ipv4/tcp_no_metrics_save": 1,
        "ipv4/tcp_congestion_control": algorithms.congestion(stack["congestion"]),
        "mptcp/scheduler": algorithms.scheduler(stack["scheduler"]),
        "mptcp/checksum_enabled": int(stack["checksum"]),
    }
