"""Which nodes of a Plan run on which kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from polypath.engines.linux.kernel import Installed
from polypath.engines.linux.several.cut import Cut
from polypath.engines.namespaces.topology import Network


@dataclass(frozen=True)
class Part:
    """A kernel and the nodes that run on it."""

    kernel: Installed
    nodes: frozenset[int]

    def wires(self, lookahead_ns: int) -> Callable[[Network], Cut]:
        """Those of these nodes."""
        return lambda network: Cut(network, self.nodes, lookahead_ns)


def parts(plan: Mapping[str, Any], named: Callable[[str | None], Installed]) -> list[Part]:
    """A part for each binary, that of most general name first. Routers and switches only forward: they are on the kernel
    without a name if a host is, else on the first host's."""
    chosen = plan.get("kernels", {})
    hosts = {index: chosen.get(node["name"]) for index, node in enumerate(plan["nodes"]) if node["kind"] == "host"}
    kernels = {name: named(name) for name in dict.fromkeys(hosts.values())} or {None: named(None)}
    usual = kernels.get(None) or next(iter(kernels.values()))
    by_binary: dict[str, tuple[Installed, set[int]]] = {usual.sha256: (usual, set())}
    for index in range(len(plan["nodes"])):
        kernel = kernels[hosts[index]] if index in hosts else usual
        by_binary.setdefault(kernel.sha256, (kernel, set()))[1].add(index)
    return [Part(kernel, frozenset(nodes)) for kernel, nodes in by_binary.values() if nodes]
