"""Networks: who is there, and which links join them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from polypath import registry

from . import drawn_links
from .chance import Chance


@dataclass
class Net:
    """What was drawn of a network, and what the rest has to know of it."""

    tables: dict[str, Any] = field(default_factory=dict)
    #: From which applications may go, and where.
    pairs: list[tuple[str, str]] = field(default_factory=list)
    #: Routers, hosts that are told by addresses and such: the links are the scenario's own.
    own_links: bool = True
    #: Forwarding is by tables: no middleboxes, no routes.
    tables_alone: bool = False
    #: The topology opens the subflows.
    opens_subflows: bool = False
    #: Nothing is lost, late or drawn on the way, and both hosts are alike.
    quiet: bool = False

    @property
    def links(self) -> dict[str, Any]:
        found: dict[str, Any] = self.tables.get("link", {})
        return found

    def host(self, *names: str) -> None:
        self.tables.setdefault("host", {}).update({name: {} for name in names})

    def node(self, kind: str, *names: str) -> None:
        self.tables.setdefault(kind, {}).update({name: {} for name in names})

    def link(self, chance: Chance, name: str, a: str, b: str) -> None:
        at_hosts = {a.partition(":")[0], b.partition(":")[0]} & set(self.tables["host"])
        drawn = (
            drawn_links.quiet(chance)
            if self.quiet
            else drawn_links.link(chance, host_at_an_end=bool(at_hosts), plain=self.tables_alone)
        )
        self.tables.setdefault("link", {})[name] = {"ends": [a, b], **drawn}


def network(chance: Chance) -> Net:
    """One of the kinds."""
    make = chance.choices(list(_KINDS), list(_KINDS.values()))[0]
    net = make(chance, Net(quiet=chance.happens(0.25)))
    if net.quiet:
        return net
    if net.own_links and not net.tables_alone:
        _more(chance, net)
    return net


def _direct(chance: Chance, net: Net) -> Net:
    """A client and a server with links side by side."""
    net.pairs = [("client", "server")]
    net.host("client", "server")
    for number in range(chance.choice((1, 2, 2, 2, 3))):
        net.link(chance, f"path{number}", "client", "server")
    return net


def _behind_a_router(chance: Chance, net: Net) -> Net:
    """A client with several links, and a server with one, as a phone has them."""
    net.pairs = [("client", "server")]
    net.host("client", "server")
    net.node(chance.choice(("router", "switch")), "r")
    for number in range(chance.choice((1, 2, 2, 3))):
        net.link(chance, f"path{number}", "client", "r")
    net.link(chance, "core", "r", "server")
    return net


def _routers_side_by_side(chance: Chance, net: Net) -> Net:
    """Two hosts with links to routers of their own, and perhaps another way between those."""
    net.pairs = [("client", "server")]
    net.host("client", "server")
    count = chance.choice((2, 2, 3))
    for number in range(count):
        net.node("router", f"r{number}")
        net.link(chance, f"access{number}", "client", f"r{number}")
        net.link(chance, f"path{number}", f"r{number}", "server")
    if chance.happens(0.3):
        net.link(chance, "across", "r0", "r1")
    return net


def _asymmetric(chance: Chance, net: Net) -> Net:
    """One link at each host; there by one router, back by another, through static routes."""
    net.pairs = [("client", "server")]
    net.host("client", "server")
    net.node("router", "near", "up", "down", "far")
    net.tables["host"]["client"]["interface"] = {"eth0": {"address": "10.1.0.1"}}
    net.tables["host"]["server"]["interface"] = {"eth0": {"address": "10.2.0.1"}}
    net.link(chance, "client", "client:eth0", "near")
    for name in ("up", "down"):
        net.link(chance, f"near-{name}", f"near:{name}", name)
        net.link(chance, f"{name}-far", name, f"far:{name}")
    net.link(chance, "server", "far", "server:eth0")
    net.tables["route"] = [
        {"node": "near", "destination": "10.2.0.0/16", "interface": "up"},
        {"node": "far", "destination": "10.1.0.0/16", "interface": "down"},
    ]
    return net


def _star(chance: Chance, net: Net) -> Net:
    """Several hosts around a router, which share links."""
    hosts = [f"h{number}" for number in range(chance.choice((3, 3, 4)))]
    net.pairs = [(a, b) for a in hosts for b in hosts if a != b]
    net.host(*hosts)
    net.node("router", "r")
    for host in hosts:
        net.link(chance, host, host, "r")
    if chance.happens(0.5):
        net.link(chance, "second", hosts[0], "r")
    return net


def _wireless(chance: Chance, net: Net) -> Net:
    """Stations that share a channel, some with a link by cable besides."""
    hosts = [f"sta{number}" for number in range(chance.choice((1, 2, 2)))]
    net.pairs = [(host, "server") for host in hosts]
    net.host(*hosts, "server")
    net.node("router", "ap")
    net.tables["medium"] = {"air": {"standard": chance.choice(("802.11a", "802.11n", "802.11ac"))}}
    for host in hosts:
        wifi: dict[str, Any] = {"mcs": chance.randint(0, 7), "medium": "air"}
        if chance.happens(0.5):
            wifi["error"] = chance.share(1, 20)
        net.tables.setdefault("link", {})[host] = {"ends": [host, "ap"], "wifi": wifi}
    net.link(chance, "core", "ap", "server")
    if chance.happens(0.6):
        net.link(chance, "cable", hosts[0], "ap")
    return net


def _ring(chance: Chance, net: Net) -> Net:
    """Hosts at switches in a ring, under a controller or as bridges."""
    net.pairs, net.tables_alone = [("client", "server"), ("other", "server")], True
    net.host("client", "server", "other")
    net.node("switch", "s0", "s1", "s2")
    for number, host in enumerate(("client", "server", "other")):
        net.link(chance, host, host, f"s{number}")
    for number in range(3):
        net.link(chance, f"ring{number}", f"s{number}", f"s{(number + 1) % 3}")
    if chance.happens(0.5):
        net.link(chance, "second", "client", "s2")
    if chance.happens(0.6):
        net.tables["controller"] = {
            "routing": chance.algorithm("controller", without=["spread"]),
            "mode": chance.choice(("proactive", "reactive", "hybrid")),
            "delay": chance.time(0.1, 5),
        }
    else:
        net.tables["bridging"] = {"protocol": chance.choice(list(registry.entries("spanning-tree")))}
    return net


#: Of each topology sizes of few nodes, and the names of two of its hosts.
_TOPOLOGIES: dict[str, tuple[dict[str, int], tuple[str, str]]] = {
    "parallel": ({"paths": 2}, ("client", "server")),
    "dumbbell": ({"pairs": 2}, ("client0", "server0")),
    "parking-lot": ({"hops": 2}, ("client0", "server0")),
    "torus": ({"size": 3, "dimensions": 1}, ("h0", "h1")),
    "fat-tree": ({"k": 2, "interfaces": 2}, ("h0", "h1")),
    "bcube": ({"n": 2, "k": 1}, ("h0", "h3")),
    "three-level": ({"cores": 2, "edges": 2, "links": 1, "hosts": 1}, ("h0", "h1")),
    "jellyfish": ({"switches": 4, "degree": 2}, ("h0", "h2")),
}


def _topology(chance: Chance, net: Net) -> Net:
    kind = chance.choice(list(_TOPOLOGIES))
    size, pair = _TOPOLOGIES[kind]
    made = {"kind": kind, **size, **drawn_links.plain(chance)}
    net.tables["topology"] = made
    net.pairs, net.own_links = [pair], False
    if kind == "bcube" and chance.happens(0.5):
        made["ways"] = 2
        net.opens_subflows = True
    elif chance.happens(0.4):
        net.tables["routing"] = chance.choice(("ecmp", "in-turn"))
    return net


_KINDS: dict[Callable[[Chance, Net], Net], float] = {
    _direct: 0.34,
    _behind_a_router: 0.2,
    _routers_side_by_side: 0.12,
    _asymmetric: 0.06,
    _star: 0.08,
    _wireless: 0.06,
    _ring: 0.05,
    _topology: 0.09,
}


def _more(chance: Chance, net: Net) -> None:
    """Addresses of both families, priorities and routing."""
    if chance.happens(0.1):
        net.tables["routing"] = chance.choice(("ecmp", "in-turn"))
    if chance.happens(0.12) and "route" not in net.tables:
        _dual_stack(chance, net)
    elif chance.happens(0.15) and "route" not in net.tables:
        _backup(chance, net)


def _ends(net: Net) -> list[tuple[str, list[str], int]]:
    """Each end at a host: the host, the link's ends, and which of them it is."""
    hosts = net.tables["host"]
    return [
        (end, link["ends"], side)
        for link in net.links.values()
        for side, end in enumerate(link["ends"])
        if end in hosts
    ]


def _dual_stack(chance: Chance, net: Net) -> None:
    """Each interface of a host has an address of IPv6, some of IPv4, too."""
    both = chance.happens(0.6)
    for number, (host, ends, side) in enumerate(_ends(net)):
        interfaces = net.tables["host"][host].setdefault("interface", {})
        name = f"if{len(interfaces)}"
        ends[side] = f"{host}:{name}"
        four = [f"10.9.{number}.1"] if both else []
        interfaces[name] = {"address": [*four, f"fd00:{number:x}::1"]}
    for link in net.links.values():
        for direction in (link, link.get("forward", {}), link.get("backward", {})):
            if "mtu" in direction:
                direction["mtu"] = max(direction["mtu"], 1280)


def _backup(chance: Chance, net: Net) -> None:
    """The last interface of the first host is a backup."""
    host, ends, side = next(each for each in reversed(_ends(net)) if each[0] == net.pairs[0][0])
    ends[side] = f"{host}:spare"
    net.tables["host"][host]["interface"] = {"spare": {"backup": True}}
