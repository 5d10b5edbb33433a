"""Which nodes of a Plan run on which kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polypath.engines.linux.kernel import Installed
from polypath.engines.linux.several.cut import Cut, fastest
from polypath.engines.namespaces.topology import Network
from polypath.plan.access import ENDS

if TYPE_CHECKING:
    from polypath.plan.data import PlanData


@dataclass(frozen=True)
class Part:
    """A kernel and the nodes that run on it."""

    kernel: Installed
    nodes: frozenset[int]

    def wires(self, lookahead_ns: int) -> Callable[[Network], Cut]:
        """Those of these nodes."""
        return lambda network: Cut(network, self.nodes, lookahead_ns)


def parts(plan: PlanData, named: Callable[[str | None], Installed]) -> list[Part]:
    """A part for each binary, that of hosts without a kernel of their own first. Routers and switches only forward:
    they are with the hosts that they are nearest to, so that links between two parts are long."""
    chosen = plan.get("kernels", {})
    hosts = {index: chosen.get(node["name"]) for index, node in enumerate(plan["nodes"]) if node["kind"] == "host"}
    kernels = {name: named(name) for name in dict.fromkeys(hosts.values())} or {None: named(None)}
    usual = kernels.get(None) or next(iter(kernels.values()))
    by_binary: dict[str, tuple[Installed, set[int]]] = {usual.sha256: (usual, set())}
    for index, name in hosts.items():
        by_binary.setdefault(kernels[name].sha256, (kernels[name], set()))[1].add(index)
    owners = {index: kernels[name].sha256 for index, name in hosts.items()}
    for index, sha256 in _owned(plan, owners).items():
        by_binary[sha256 or usual.sha256][1].add(index)
    return [Part(kernel, frozenset(nodes)) for kernel, nodes in by_binary.values() if nodes]


def _owned(plan: PlanData, owners: Mapping[int, str]) -> dict[int, str | None]:
    """Whose each node is: the shortest links join first, and none joins what is of two owners."""
    group = {index: {index} for index in range(len(plan["nodes"]))}
    owner: dict[int, str | None] = {index: owners.get(index) for index in group}
    for index in sorted(range(len(plan["links"])), key=lambda index: fastest(plan, index)):
        a, b = (plan["links"][index][side]["node"] for side in ENDS)
        if group[a] is group[b] or (None not in (owner[a], owner[b]) and owner[a] != owner[b]):
            continue
        joined, whose = group[a] | group[b], owner[a] or owner[b]
        for node in joined:
            group[node], owner[node] = joined, whose
    return owner
