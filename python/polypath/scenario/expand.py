"""From what stands for many to the many: a topology's nodes and links, and the applications of a traffic matrix.

What comes of it is a scenario that writes them all out.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from polypath.scenario.network import Host, Router
from polypath.scenario.positions import Path
from polypath.scenario.tables import Tables, application_names
from polypath.scenario.traffic import AnyApplication


@dataclass(frozen=True)
class Expanded:
    """A scenario without topology and matrices, and where its parts were written."""

    tables: Tables
    written: Tables
    applications: tuple[int, ...]
    """The written application of each."""

    def origin(self, path: Path) -> Path:
        """Where a path of the expanded scenario was written."""
        match path:
            case ("application", int(index), *rest):
                return ("application", self.applications[index], *rest)
            case ("host" | "router" | "link" as group, name, *_):
                return path if name in getattr(self.written, str(group)) else ("topology",)
        return path


def expand(tables: Tables) -> Expanded:
    """Everything written out. A host or router that is described besides keeps its description."""
    if tables.topology is None and all(application.matrix is None for application in tables.application):
        return Expanded(tables, tables, tuple(range(len(tables.application))))
    nodes = network(tables)
    applications: list[AnyApplication] = []
    origins: list[int] = []
    for index, (name, application) in enumerate(zip(application_names(tables), tables.application, strict=True)):
        made = _pairs(application, name, list(nodes.host), tables.seed, index)
        applications += made
        origins += [index] * len(made)
    return Expanded(nodes.model_copy(update={"application": applications}), tables, tuple(origins))


def network(tables: Tables) -> Tables:
    """The scenario with the topology's nodes and links written out."""
    if tables.topology is None:
        return tables
    made = tables.topology.network
    return tables.model_copy(
        update={
            "topology": None,
            "host": {name: tables.host.get(name, Host.empty()) for name in [*made.hosts, *tables.host]},
            "router": {name: tables.router.get(name, Router.empty()) for name in [*made.routers, *tables.router]},
            "link": {**made.links, **tables.link},
        }
    )


def _pairs(application: AnyApplication, name: str, hosts: list[str], seed: int, index: int) -> list[AnyApplication]:
    if application.matrix is None:
        return [application.model_copy(update={"name": name})]
    return [
        application.model_copy(
            update={"name": f"{name}-{client}", "client": client, "server": hosts[server], "matrix": None}
        )
        for client, server in zip(hosts, permutation(len(hosts), f"{seed} matrix {index}"), strict=True)
    ]


def permutation(count: int, stream: str) -> list[int]:
    """A random permutation of which no element stays in place, a single cycle (Sattolo 1986)."""
    order = list(range(count))
    for last in range(count - 1, 0, -1):
        digest = hashlib.sha256(f"{stream} {last}".encode()).digest()
        other = int.from_bytes(digest[:8], "big") % last
        order[last], order[other] = order[other], order[last]
    return order
