"""mininet.topo: the graph that a topology class builds, and the named topologies of `mn`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ._place import Refused, line
from ._placeholder import placeholder as __getattr__  # noqa: F401
from .util import irange, natural

#: More nodes and links than this are refused.
MOST = 100_000
#: The option that says where a node or link was added.
LINE = "_line"
#: The option of a node that is there only because a link names it; Mininet takes it for a host.
IMPLICIT = "_implicit"

Info = dict[str, Any]


class MultiGraph:
    """Nodes, and any number of edges between two of them, each with a table of options."""

    def __init__(self) -> None:
        self.node: dict[str, Info] = {}
        self.edge: dict[str, dict[str, dict[Any, Info]]] = {}
        self._added: list[tuple[str, str, Any]] = []

    def add_node(self, node: str, attr_dict: Info | None = None, **attrs: Any) -> None:
        if not isinstance(node, str):
            raise Refused(f"the name of a node is a text, not {node!r}")
        self._require_room()
        self.node[node] = {**(attr_dict or {}), **attrs}

    def add_edge(self, src: str, dst: str, key: Any = None, attr_dict: Info | None = None, **attrs: Any) -> Any:
        self._require_room()
        for node in (src, dst):
            self.node.setdefault(node, {IMPLICIT: True})
            self.edge.setdefault(node, {})
        between = self.edge[src].setdefault(dst, {})
        self.edge[dst][src] = between
        if key is None:
            key = max((each for each in between if isinstance(each, int)), default=0) + 1
        between[key] = {**(attr_dict or {}), **attrs}
        self._added.append((src, dst, key))
        return key

    def nodes(self, data: bool = False) -> Iterable[Any]:
        return self.node.items() if data else self.node.keys()

    def edges_iter(self, data: bool = False, keys: bool = False) -> Iterator[Any]:
        for src, dst, key in dict.fromkeys(self._added):
            info = self.edge[src][dst][key]
            yield (src, dst, *((key,) if keys else ()), *((info,) if data else ()))

    def edges(self, data: bool = False, keys: bool = False) -> list[Any]:
        return list(self.edges_iter(data, keys))

    def convertTo(self, cls: Any, data: bool = False, keys: bool = False) -> Any:
        graph = cls()
        graph.add_nodes_from(self.nodes(data))
        graph.add_edges_from(self.edges(data, keys))
        return graph

    def __getitem__(self, node: str) -> dict[str, dict[Any, Info]]:
        return self.edge[node]

    def __len__(self) -> int:
        return len(self.node)

    def _require_room(self) -> None:
        if len(self.node) + len(self._added) >= MOST:
            raise Refused(f"the topology has more than {MOST:,} nodes and links")


class Topo:
    """A topology: a subclass adds nodes and links in `build` or in its `__init__`."""

    def __init__(self, *args: Any, **params: Any) -> None:
        self.g = MultiGraph()
        self.hopts = params.pop("hopts", {})
        self.sopts = params.pop("sopts", {})
        self.lopts = params.pop("lopts", {})
        self.ports: dict[str, dict[int, tuple[str, int]]] = {}
        self.build(*args, **params)

    def build(self, *args: Any, **params: Any) -> None:
        """What subclasses override."""

    def addNode(self, name: str, **opts: Any) -> str:
        self.g.add_node(name, {**opts, LINE: line()})
        return name

    def addHost(self, name: str, **opts: Any) -> str:
        return self.addNode(name, **(opts or self.hopts))

    def addSwitch(self, name: str, **opts: Any) -> str:
        return self.addNode(name, **{**(opts or self.sopts), "isSwitch": True})

    def addController(self, *args: Any, **kwargs: Any) -> None:
        name = args[0] if args else kwargs.get("name", "c0")
        raise Refused(f"controller '{name}': a topology has none; a scenario has one in its table [controller]")

    def addLink(
        self, node1: str, node2: str, port1: int | None = None, port2: int | None = None, key: Any = None, **opts: Any
    ) -> Any:
        port1, port2 = self.addPort(node1, node2, port1, port2)
        ends = {"node1": node1, "node2": node2, "port1": port1, "port2": port2, LINE: line()}
        return self.g.add_edge(node1, node2, key, {**(opts or self.lopts), **ends})

    def addPort(self, src: str, dst: str, sport: int | None = None, dport: int | None = None) -> tuple[int, int]:
        """Ports for a new link, counted from 1 at switches and from 0 at hosts unless they are given."""
        sport = self._next_port(src) if sport is None else sport
        self.ports.setdefault(src, {})
        dport = self._next_port(dst) if dport is None else dport
        self.ports[src][sport] = (dst, dport)
        self.ports.setdefault(dst, {})[dport] = (src, sport)
        return sport, dport

    def _next_port(self, node: str) -> int:
        return len(self.ports.get(node, {})) + int(self.isSwitch(node))

    def port(self, src: str, dst: str) -> Any:
        found = [(sport, dport) for sport, (node, dport) in self.ports[src].items() if node == dst]
        return found[0] if len(found) == 1 else found

    def nodes(self, sort: bool = True) -> list[str]:
        return self.sorted(self.g.nodes()) if sort else list(self.g.nodes())

    def isSwitch(self, n: str) -> bool:
        return bool(self.g.node.get(n, {}).get("isSwitch", False))

    def switches(self, sort: bool = True) -> list[str]:
        return [node for node in self.nodes(sort) if self.isSwitch(node)]

    def hosts(self, sort: bool = True) -> list[str]:
        return [node for node in self.nodes(sort) if not self.isSwitch(node)]

    def iterLinks(self, withKeys: bool = False, withInfo: bool = False) -> Iterator[Any]:
        for _, _, key, info in self.g.edges_iter(data=True, keys=True):
            ends = (info["node1"], info["node2"])
            yield (*ends, *((key,) if withKeys else ()), *((info,) if withInfo else ()))

    def links(self, sort: bool = False, withKeys: bool = False, withInfo: bool = False) -> list[Any]:
        found = list(self.iterLinks(withKeys, withInfo))
        return sorted(found, key=lambda each: (natural(each[0]), natural(each[1]))) if sort else found

    def linkInfo(self, src: str, dst: str, key: Any = None) -> Info:
        between = self.g[src][dst]
        return between[min(between) if key is None else key]

    def setlinkInfo(self, src: str, dst: str, info: Info, key: Any = None) -> None:
        self.linkInfo(src, dst, key)
        between = self.g[src][dst]
        between[min(between) if key is None else key] = info

    def nodeInfo(self, name: str) -> Info:
        return self.g.node[name]

    def setNodeInfo(self, name: str, info: Info) -> None:
        self.g.node[name] = info

    def convertTo(self, cls: Any, data: bool = False, keys: bool = False) -> Any:
        return self.g.convertTo(cls, data, keys)

    @staticmethod
    def sorted(items: Iterable[Any]) -> list[Any]:
        return sorted(items, key=natural)


class SingleSwitchTopo(Topo):
    """k hosts at one switch."""

    def build(self, k: int = 2, **_opts: Any) -> None:
        self.k = k
        switch = self.addSwitch("s1")
        for number in irange(1, k):
            self.addLink(self.addHost(f"h{number}"), switch)


class SingleSwitchReversedTopo(Topo):
    """k hosts at one switch, the first at the last port."""

    def build(self, k: int = 2) -> None:
        self.k = k
        switch = self.addSwitch("s1")
        for number in irange(1, k):
            self.addLink(self.addHost(f"h{number}"), switch, port1=0, port2=k - number + 1)


class MinimalTopo(SingleSwitchTopo):
    """Two hosts at one switch."""

    def build(self) -> None:  # type: ignore[override]
        super().build(k=2)


class LinearTopo(Topo):
    """A row of k switches with n hosts each."""

    def build(self, k: int = 2, n: int = 1, **_opts: Any) -> None:
        self.k, self.n = k, n
        before = None
        for place in irange(1, k):
            switch = self.addSwitch(f"s{place}")
            for number in irange(1, n):
                name = f"h{place}" if n == 1 else f"h{number}s{place}"
                self.addLink(self.addHost(name), switch)
            if before is not None:
                self.addLink(switch, before)
            before = switch
