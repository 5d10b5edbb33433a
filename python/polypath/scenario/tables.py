"""A scenario's tables, as a file writes them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from polypath.scenario.base import Model
from polypath.scenario.fields import Name, Period
from polypath.scenario.network import Channel, Host, Interface, Link, Route, Router, Switch
from polypath.scenario.stack import Stack, merge
from polypath.scenario.topologies import AnyTopology
from polypath.scenario.traffic import AnyApplication, Event, Record
from polypath.scenario.vary import Vary


class Tables(Model):
    """A network with several paths, what runs over it, and what happens to it."""

    name: Name = "scenario"
    """The scenario's name, for titles and folders."""
    description: str = ""
    """What it is for."""
    seed: int = Field(default=1, ge=0, lt=2**63)
    """From which all randomness follows."""
    duration: Period = 60_000_000_000
    """The run ends here at the latest, or when every application has ended."""
    defaults: Stack = Stack.empty()
    """Transport settings of all hosts that do not say otherwise."""
    topology: AnyTopology | None = None
    """A network by its kind and size; hosts, routers and links of the scenario's own come on top."""
    host: dict[Name, Host] = Field(default_factory=dict)
    """The end systems by name."""
    router: dict[Name, Router] = Field(default_factory=dict)
    """The routers by name."""
    switch: dict[Name, Switch] = Field(default_factory=dict)
    """The switches by name."""
    link: dict[Name, Link] = Field(default_factory=dict)
    """The links by name. Their order is that of a host's interfaces: its first link is its first interface."""
    route: list[Route] = Field(default_factory=list)
    """Static routes; where none matches, the shortest path is taken."""
    routing: Literal["shortest-path", "ecmp", "in-turn"] = "shortest-path"
    """Which of the paths with fewest hops is taken: that of least delay, one by a hash of the flow (ECMP), or the next
    one for each new flow, as a controller places them that sees all flows."""
    application: list[AnyApplication] = Field(default_factory=list)
    """What runs."""
    event: list[Event] = Field(default_factory=list)
    """What happens to links and interfaces."""
    record: Record = Record.empty()
    """What is recorded."""
    vary: Vary = Field(default_factory=dict)
    """What a sweep varies: each axis a path that `--set` takes, with its values; every combination is a point."""


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
    """A link's end as written: its node, and its interface if that is said."""
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


def application_names(tables: Tables) -> list[str]:
    """Each application's name: as written, else its kind, numbered from the second on."""
    taken = {application.name for application in tables.application if application.name is not None}
    names: list[str] = []
    for application in tables.application:
        name, number = application.name, 1
        while name is None:
            candidate = application.kind if number == 1 else f"{application.kind}-{number}"
            name = None if candidate in taken else candidate
            number += 1
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
