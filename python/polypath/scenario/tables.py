"""A scenario's tables: as written in a file, and with abbreviations expanded.

A topology stands for its nodes and links, and a traffic matrix for its applications.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from pydantic import Field

from polypath.scenario import flows
from polypath.scenario.base import Model
from polypath.scenario.bridging import Bridging
from polypath.scenario.controller import Controller
from polypath.scenario.errors import Problem
from polypath.scenario.fields import Name, Period
from polypath.scenario.matrices import AnyMatrix, Pair
from polypath.scenario.network import Channel, Host, Interface, Link, Route, Router, Switch
from polypath.scenario.positions import Path
from polypath.scenario.stack import Stack, merge
from polypath.scenario.topologies import AnyTopology
from polypath.scenario.traffic import AnyEntry, Application, Bulk, Command, Event, MeasuredApplication, Page, Record
from polypath.scenario.vary import Vary
from polypath.scenario.wifi import Medium

#: Seeds are below it.
SEEDS_END: Final = 2**63


class Tables(Model):
    """A network with several paths, what runs over it, and what happens to it."""

    name: Name = "scenario"
    """The scenario's name, for titles and folders."""
    description: str = ""
    """Purpose of the scenario."""
    seed: int = Field(default=1, ge=0, lt=SEEDS_END)
    """Seed of all random numbers."""
    duration: Period = 60_000_000_000
    """Latest end of the run; it ends earlier when every application has ended."""
    defaults: Stack = Stack.empty()
    """Transport settings of all hosts, which a host may override."""
    topology: AnyTopology | None = None
    """A network generated from its kind and size, to which the scenario's own hosts, routers and links are added."""
    host: dict[Name, Host] = Field(default_factory=dict)
    """The end systems by name."""
    router: dict[Name, Router] = Field(default_factory=dict)
    """The routers by name."""
    switch: dict[Name, Switch] = Field(default_factory=dict)
    """The switches by name."""
    link: dict[Name, Link] = Field(default_factory=dict)
    """The links by name. Their order gives the order of a host's interfaces: its first link is its first interface."""
    medium: dict[Name, Medium] = Field(default_factory=dict)
    """Wi-Fi channels that several links share, by name."""
    route: list[Route] = Field(default_factory=list)
    """Static routes; without a matching one, the shortest path is taken."""
    routing: Literal["shortest-path", "ecmp", "in-turn", "spread"] = "shortest-path"
    """The choice among paths with fewest hops: the one of least delay, one by a hash of the flow (ECMP), or the
    next one for each new flow, as by a controller that sees all flows. "spread" is a controller that reads
    Multipath TCP's handshakes. It gives the subflows of a connection paths with as few common links as possible,
    including longer ones."""
    controller: Controller | None = None
    """A controller of the routers and switches; default: none, and they forward along the paths of `routing`."""
    bridging: Bridging | None = None
    """Makes the routers and switches Ethernet bridges, which learn addresses and find a spanning tree."""
    application: list[AnyEntry] = Field(default_factory=list)
    """The applications."""
    event: list[Event] = Field(default_factory=list)
    """Changes of links and interfaces during the run."""
    record: Record = Record.empty()
    """What is recorded."""
    vary: Vary = Field(default_factory=dict)
    """Axes of a sweep: each is a path that `--set` takes, with its values; every combination is a point."""


End = tuple[str, str]
"""A node and one of its interfaces."""


def nodes(tables: Tables) -> dict[str, Host | Router | Switch]:
    """Every node by name: hosts, routers, switches."""
    return {**tables.host, **tables.router, **tables.switch}


def described_interfaces(tables: Tables) -> dict[str, dict[str, Interface]]:
    """The interfaces that each host and router describes."""
    hosts = {name: host.interface for name, host in tables.host.items()}
    return hosts | {name: router.interface for name, router in tables.router.items()}


def split_end(end: str) -> tuple[str, str | None]:
    """A link's end as written: its node, and its interface if given."""
    node, colon, interface = end.partition(":")
    return node, interface if colon else None


def attachments(tables: Tables) -> dict[str, tuple[End, End]]:
    """Each link's two ends; where no interface is said, the first of eth0, eth1, .. that no other end has."""
    written = {name: [split_end(end) for end in link.ends] for name, link in tables.link.items()}
    taken = {end for ends in written.values() for end in ends if end[1] is not None}
    found: dict[str, tuple[End, End]] = {}
    counters: dict[str, int] = {}
    for name, ends in written.items():
        complete: list[End] = []
        for node, interface in ends:
            while interface is None:
                number = counters.get(node, 0)
                counters[node] = number + 1
                if (node, f"eth{number}") not in taken:
                    interface = f"eth{number}"
            complete.append((node, interface))
        found[name] = (complete[0], complete[1])
    return found


def between_hosts(tables: Tables) -> list[tuple[int, Application]]:
    """The applications with a client and a server, each with its position among all."""
    return [(index, one) for index, one in enumerate(tables.application) if not isinstance(one, Command)]


def commands(tables: Tables) -> list[tuple[int, Command]]:
    """The programs of the machine, each with its position among all applications."""
    return [(index, one) for index, one in enumerate(tables.application) if isinstance(one, Command)]


def application_names(tables: Tables) -> list[str]:
    """Each application's name: as written, else its kind, numbered from the second on."""
    taken = {application.name for application in tables.application if application.name is not None}
    names: list[str] = []
    last: dict[str, int] = {}
    for application in tables.application:
        name, kind = application.name, application.kind
        while name is None:
            last[kind] = last.get(kind, 0) + 1
            candidate = kind if last[kind] == 1 else f"{kind}-{last[kind]}"
            name = None if candidate in taken else candidate
        taken.add(name)
        names.append(name)
    return names


def host_stack(tables: Tables, host: str) -> Stack:
    """A host's complete transport settings."""
    return merge([tables.defaults, tables.host.get(host, Stack.empty())])


def inherited_algorithm(tables: Tables, path: tuple[str | int, ...]) -> str | None:
    """The name of the algorithm in force at a path such as ("host", "client", "scheduler") that sets none itself."""
    match path:
        case ("host", str(host), str(what)):
            stack = host_stack(tables, host)
        case ("defaults", str(what)):
            stack = merge([tables.defaults])
        case _:
            return None
    algorithm = getattr(stack, what)
    return None if algorithm is None else str(algorithm.name)


def directions(link: Link) -> tuple[Channel, Channel]:
    """The link forward and backward, each with its own overrides applied."""

    def overlay(own: Channel) -> Channel:
        given = own.given() if own is not Channel.empty() else {}
        return Channel.model_construct(**{**link.given(), **given}) if given else link

    return overlay(link.forward), overlay(link.backward)


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
            case ("host" | "router", name, *_) if name not in getattr(self.written, str(path[0])):
                return ("topology",)
            case ("link", name, *rest) if name not in self.written.link:
                return ("topology", *rest)
        return path

    def placed(self, problems: Iterable[Problem]) -> list[Problem]:
        """Problems where their parts were written, each once; of those at one place of a topology, whose parts are many
        and alike, the first."""
        found: dict[object, Problem] = {}
        for problem in problems:
            path = self.origin(problem.path)
            alike = path if path[:1] == ("topology",) else (path, problem.message)
            found.setdefault(alike, replace(problem, path=path))
        return list(found.values())


def expand(tables: Tables) -> Expanded:
    """Everything written out. A host or router that is described besides keeps its description."""
    if tables.topology is None and not any(map(_stands_for_many, tables.application)):
        return Expanded(tables, tables, tuple(range(len(tables.application))))
    nodes = network(tables)
    applications: list[AnyEntry] = []
    origins: list[int] = []
    for index, (name, application) in enumerate(zip(application_names(tables), tables.application, strict=True)):
        if application.is_left_out:
            continue
        if isinstance(application, Command):
            applications.append(application.model_copy(update={"name": name}))
            origins.append(index)
            continue
        pairs = _pairs(application, name, nodes, tables.seed, index)
        if isinstance(application, Bulk) and application.arrivals is not None:
            made = flows.arriving(application, name, pairs, tables.duration, f"{tables.seed} flows {index}")
        else:
            made = [each for pair in pairs for each in _side_by_side(pair)]
        applications += made
        origins += [index] * len(made)
    return Expanded(nodes.model_copy(update={"application": applications}), tables, tuple(origins))


def network(tables: Tables) -> Tables:
    """The scenario with the topology's nodes and links written out."""
    if tables.topology is None:
        return tables
    made = tables.topology.network
    blank = Host(forwards=True) if made.forwarding else Host.empty()
    described = {
        name: host.model_copy(update={"forwards": True}) if made.forwarding and name in made.hosts else host
        for name, host in tables.host.items()
    }
    return tables.model_copy(
        update={
            "topology": None,
            "host": {name: described.get(name, blank) for name in [*made.hosts, *described]},
            "router": {name: tables.router.get(name, Router.empty()) for name in [*made.routers, *tables.router]},
            "link": {**made.links, **tables.link},
        }
    )


def _pairs(application: Application, name: str, nodes: Tables, seed: int, index: int) -> list[Application]:
    if application.matrix is None:
        return [application.model_copy(update={"name": name})]
    pairs = matrix_pairs(application.matrix, nodes, seed, index)
    once = len({client for client, _ in pairs}) == len(pairs)
    return [
        application.model_copy(
            update={
                "name": f"{name}-{client}" if once else f"{name}-{client}-{server}",
                "client": client,
                "server": server,
                "matrix": None,
            }
        )
        for client, server in pairs
    ]


def _stands_for_many(application: AnyEntry) -> bool:
    if isinstance(application, Command):
        return False
    arrives = isinstance(application, Bulk) and application.arrivals is not None
    side_by_side = isinstance(application, MeasuredApplication) and application.count != 1
    several = isinstance(application, Page) and application.connections > 1
    return application.matrix is not None or arrives or side_by_side or several


def _side_by_side(application: Application) -> Sequence[Application]:
    if isinstance(application, Page) and application.connections > 1:
        return application.side_by_side()
    if not isinstance(application, MeasuredApplication) or application.count == 1:
        return [application]
    return [
        application.model_copy(
            update={
                "name": f"{application.name}-{number + 1}",
                "count": 1,
                "port": None if application.port is None else application.port + number,
            }
        )
        for number in range(application.count)
    ]


def matrix_pairs(matrix: AnyMatrix, nodes: Tables, seed: int, index: int) -> list[Pair]:
    """Client and server of each connection of the application at `index`, in a network that is written out; raises
    ValueError as `Matrix.pairs`."""
    near: dict[str, dict[str, None]] = {}

    def neighbours(host: str) -> list[str]:
        if not near:
            near.update(_joined(nodes))
        beyond = {each: None for one in near.get(host, ()) for each in (one, *(() if one in nodes.host else near[one]))}
        return [each for each in beyond if each in nodes.host and each != host]

    return matrix.pairs(list(nodes.host), f"{seed} matrix {index}", neighbours)


def _joined(nodes: Tables) -> dict[str, dict[str, None]]:
    """For each node those at the other ends of its links, in the links' order."""
    found: dict[str, dict[str, None]] = {}
    for link in nodes.link.values():
        a, b = (split_end(end)[0] for end in link.ends)
        found.setdefault(a, {})[b] = None
        found.setdefault(b, {})[a] = None
    return found
