"""mininet.net for a file that builds its network by hand: notes what is added, and starts nothing.

`net = Mininet()` and its methods add to a topology. Commands on hosts are not run; those that give an interface an
address or turn on forwarding are understood (ifconfig, ip address, sysctl). Once the network is started, or a prompt is
asked for, it is complete. What the file does then is not read.
"""

from __future__ import annotations

import ipaddress
import os
import re
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from typing import Any

from . import _place
from ._place import Refused
from ._placeholder import placeholder
from .topo import IMPLICIT, LINE, Topo

#: The option of a node that forwards packets of others.
FORWARDS = "_forwards"

_FORWARD = re.compile(r"ip_forward\s*=\s*1|1\s*>+\s*/proc/sys/net/ipv4/ip_forward")
_IFCONFIG = re.compile(
    r"ifconfig\s+(?P<interface>[\w.:-]+)\s+(?:inet\s+)?(?P<address>\d+(?:\.\d+){3})(?:/(?P<length>\d+))?"
    r"(?:\s+netmask\s+(?P<mask>\d+(?:\.\d+){3}))?"
)
_IP_ADDRESS = re.compile(
    r"ip\s+(?:-\S+\s+)*a(?:ddr(?:ess)?)?\s+add\s+(?P<address>[0-9a-fA-F.:]+)(?:/(?P<length>\d+))?"
    r".*?\bdev\s+(?P<interface>[\w.-]+)"
)


class Done(BaseException):
    """The network is described."""


#: The networks that the file has made, in order.
networks: list[Mininet] = []


def install() -> None:
    """Lets the file build a network, and start programs beside it that do not run."""
    module = types.ModuleType("mininet.net")
    module.Mininet = module.MininetWithControlNet = Mininet  # type: ignore[attr-defined]
    module.__getattr__ = placeholder  # type: ignore[method-assign]
    prompt = types.ModuleType("mininet.cli")
    prompt.CLI = _done  # type: ignore[attr-defined]
    sys.modules |= {"mininet.net": module, "mininet.cli": prompt}
    time.sleep = _nothing  # type: ignore[assignment]
    os.system = _nothing
    for name in ("call", "check_call"):
        setattr(subprocess, name, _nothing)


def _nothing(*_: Any, **__: Any) -> int:
    """What a command that succeeds returns."""
    return 0


def _done(*_: Any, **__: Any) -> None:
    raise Done


class Interface:
    """One end of a link."""

    def __init__(self, node: Node, number: int, link: dict[str, Any], port: int) -> None:
        self.node, self._number, self._link, self.port = node, number, link, port

    @property
    def name(self) -> str:
        return str(self._link.get(f"intfName{self._number}") or f"{self.node.name}-eth{self.port}")

    def setIP(self, ipstr: str, prefixLen: int | None = None) -> None:
        if prefixLen is not None and "/" not in ipstr:
            ipstr = f"{ipstr}/{prefixLen}"
        given = self._link.get(f"params{self._number}") or {}
        self._link[f"params{self._number}"] = {**given, "ip": ipstr}
        if self.node.defaultIntf() is self:
            self.node.options["ip"] = ipstr

    def config(self, **options: Any) -> None:
        if options.get("ip"):
            self.setIP(options.pop("ip"))
        given = self._link.get(f"params{self._number}") or {}
        self._link[f"params{self._number}"] = {**given, **options}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _nothing

    def __str__(self) -> str:
        return self.name


class Link:
    """A link that was added."""

    def __init__(self, intf1: Interface, intf2: Interface) -> None:
        self.intf1, self.intf2 = intf1, intf2

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _nothing


class Node:
    """A host, switch or controller that was added."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self.name, self.options = name, options
        self.params = options
        self.interfaces: list[Interface] = []

    def cmd(self, *words: Any, **_: Any) -> str:
        """Runs nothing, and says nothing."""
        self._read(" ".join(map(str, words)))
        return ""

    cmdPrint = sendCmd = pexec = popen = waitOutput = cmd

    def _read(self, text: str) -> None:
        if _FORWARD.search(text):
            self.options[FORWARDS] = True
        for match in (*_IFCONFIG.finditer(text), *_IP_ADDRESS.finditer(text)):
            found = match.groupdict()
            length = found["length"] or found.get("mask") or _class_of(found["address"])
            self.setIP(f"{found['address']}/{_length(length)}", intf=found["interface"])

    def setIP(self, ip: str, prefixLen: int = 8, intf: Any = None, **_: Any) -> None:
        text = ip if "/" in ip else f"{ip}/{prefixLen}"
        found = self.intf(intf)
        if found is not None:
            found.setIP(text)
        elif intf is None:
            self.options["ip"] = text

    def intf(self, intf: Any = None) -> Interface | None:
        if isinstance(intf, Interface):
            return intf
        if intf is None:
            return self.defaultIntf()
        return next((each for each in self.interfaces if intf in (each.name, each.port)), None)

    def defaultIntf(self) -> Interface | None:
        return min(self.interfaces, key=lambda each: each.port, default=None)

    def intfNames(self) -> list[str]:
        return [each.name for each in self.interfaces]

    def intfList(self) -> list[Interface]:
        return list(self.interfaces)

    @property
    def intfs(self) -> dict[int, Interface]:
        return {each.port: each for each in self.interfaces}

    def IP(self, intf: Any = None) -> str:
        return str(self.options.get("ip") or "").partition("/")[0]

    def connectionsTo(self, node: Node) -> list[tuple[Interface, Interface]]:
        return [(each, other) for each in self.interfaces for other in node.interfaces if each._link is other._link]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _nothing

    def __str__(self) -> str:
        return self.name


def _class_of(address: str) -> int:
    """The prefix that ifconfig takes for an IPv4 address without one, by its class (RFC 791 section 3.2)."""
    first = int(address.partition(".")[0]) if ":" not in address else 0
    return 8 if first < 128 else 16 if first < 192 else 24


def _length(given: Any) -> int:
    text = str(given)
    return ipaddress.ip_network(f"0.0.0.0/{text}").prefixlen if "." in text else int(text)


class Mininet:
    """A network that the file adds to."""

    def __init__(self, topo: Any = None, **options: Any) -> None:
        self.described = topo if isinstance(topo, Topo) else Topo()
        self._defaults = {key: options.get(key) for key in ("host", "switch", "link")}
        self.controllers: list[Node] = []
        self.nameToNode: dict[str, Node] = {}
        self.links: list[Link] = []
        self.started = False
        base = ipaddress.ip_interface(str(options.get("ipBase") or "10.0.0.0/8"))
        self._base, self._next = base, 1 + len(self.described.hosts(sort=False))
        networks.append(self)
        for name, given in self.described.g.node.items():
            self._note(name, given)
        for _, _, info in list(self.described.g.edges_iter(data=True)):
            self._defaulted(info, "link")
            self._note_link(info)

    def _defaulted(self, options: dict[str, Any], kind: str) -> None:
        if options.get("cls") is None and self._defaults[kind] is not None:
            options["cls"] = self._defaults[kind]

    def _note(self, name: str, options: dict[str, Any]) -> Node:
        self._defaulted(options, "switch" if options.get("isSwitch") else "host")
        self.nameToNode[name] = node = Node(name, options)
        return node

    def _note_link(self, info: dict[str, Any]) -> Link:
        ends = []
        for number in (1, 2):
            node = self.nameToNode[info[f"node{number}"]]
            node.interfaces.append(Interface(node, number, info, info[f"port{number}"]))
            ends.append(node.interfaces[-1])
        self.links.append(Link(*ends))
        return self.links[-1]

    def addHost(self, name: str, cls: Any = None, **options: Any) -> Node:
        """A host takes the next address of `ipBase` unless it has one (mininet/net.py `Mininet.addHost`)."""
        address = f"{self._base.network.network_address + self._next}/{self._base.network.prefixlen}"
        self._next += 1
        return self._add(name, cls, {"ip": address, **options})

    def addSwitch(self, name: str, cls: Any = None, **options: Any) -> Node:
        return self._add(name, cls, {**options, "isSwitch": True})

    def _add(self, name: str, cls: Any, options: dict[str, Any]) -> Node:
        self.described.addNode(name, **options, **({} if cls is None else {"cls": cls}))
        return self._note(name, self.described.g.node[name])

    def addController(self, name: Any = "c0", *_: Any, **__: Any) -> Node:
        made = Node(name if isinstance(name, str) else str(getattr(name, "name", "c0")), {})
        self.controllers.append(made)
        return made

    def addNAT(self, *_: Any, **__: Any) -> None:
        raise Refused("NAT is a gateway to the world outside, which a scenario has none of")

    def addLink(
        self, node1: Any, node2: Any, port1: Any = None, port2: Any = None, cls: Any = None, **options: Any
    ) -> Link:
        ends = [str(getattr(node, "name", node)) for node in (node1, node2)]
        for end in ends:
            if end not in self.nameToNode:
                raise Refused(f"addLink: no node is named '{end}'")
        given = {**options, **({} if cls is None else {"cls": cls})}
        key = self.described.addLink(ends[0], ends[1], port1, port2, **given)
        info = self.described.g.edge[ends[0]][ends[1]][key]
        self._defaulted(info, "link")
        return self._note_link(info)

    def get(self, *names: str) -> Any:
        found = [self[name] for name in names]
        return found[0] if len(found) == 1 else found

    getNodeByName = get

    @property
    def hosts(self) -> list[Node]:
        return [node for node in self.nameToNode.values() if not node.options.get("isSwitch")]

    @property
    def switches(self) -> list[Node]:
        return [node for node in self.nameToNode.values() if node.options.get("isSwitch")]

    def build(self) -> None:
        """Nothing to build."""

    buildFromTopo = configureControlNetwork = staticArp = build

    def start(self) -> None:
        self.started = True

    def stop(self) -> None:
        raise Done

    def __getitem__(self, name: str) -> Node:
        if name not in self.nameToNode:
            raise Refused(f"no node is named '{name}'")
        return self.nameToNode[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.nameToNode)

    def __contains__(self, name: str) -> bool:
        return name in self.nameToNode

    def __len__(self) -> int:
        return len(self.nameToNode)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self.started:
            raise Done
        raise Refused(f"net.{name} is not run: an import reads how the network is built and nothing else")


def started() -> bool:
    """Whether a network runs: what goes wrong then concerns a test of the file's own."""
    return any(each.started for each in networks)


def described() -> Topo | None:
    """The first network that was started, else the first; None if there is none."""
    chosen = next((each for each in networks if each.started), networks[0] if networks else None)
    if chosen is None:
        return None
    for options in chosen.described.g.node.values():
        options.pop(IMPLICIT, None)
        options.setdefault(LINE, None)
    return chosen.described


def forget_refusals() -> None:
    """Those of the time after the start do not count."""
    _place.refusals.clear()
