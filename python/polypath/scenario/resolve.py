"""Filling in a scenario's defaults: interfaces, addresses, transport settings, names, ends and ports.

The result is a scenario again, from which the plan follows by numbering alone.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from polypath.scenario import draws, facing, quic
from polypath.scenario.check import Inconsistent, checked
from polypath.scenario.errors import Problem
from polypath.scenario.fields import Address
from polypath.scenario.network import Host, Interface, Router
from polypath.scenario.stack import Stack, merge, settings
from polypath.scenario.tables import (
    End,
    Tables,
    application_names,
    attachments,
    between_hosts,
    described_interfaces,
    host_stack,
    split_end,
)
from polypath.scenario.traffic import QUIC, AnyEntry, Application, Command, Page, Relay, Tunnel
from polypath.scenario.tunnels import tunnels
from polypath.scenario.ways import Ways, opening

Entries = Sequence[tuple[int, Application]]
"""Applications between hosts, each with its position among all."""

FIRST_PORT = 5001
LAST_PORT = 65535
FIRST_ADDRESS = ipaddress.IPv4Address("10.0.0.0")
"""The k-th link has the 256 addresses from here + 256 k; its first end takes the first, its second end the second."""


def resolve(tables: Tables) -> Tables:
    """The scenario with nothing left out; raises Inconsistent when it does not fit together."""
    expanded = checked(tables)
    topology, tables = tables.topology, expanded.tables
    ends = attachments(tables)
    interfaces = _interfaces(tables, ends)
    stacks = _stacks(tables)
    hosts = {
        name: Host.model_construct(
            **stacks[id(host)], interface=interfaces.get(name, {}), forwards=host.forwards, kernel=host.kernel
        )
        for name, host in tables.host.items()
    }
    resolved = tables.model_copy(
        update={
            "host": hosts,
            "router": {name: Router.model_construct(interface=interfaces.get(name, {})) for name in tables.router},
            "link": {
                name: link.model_copy(update={"ends": [f"{node}:{interface}" for node, interface in ends[name]]})
                for name, link in tables.link.items()
            },
        }
    )
    ways = None if topology is None else Ways(topology, ends, resolved.host)
    entries = _entries(tables, resolved, ways)
    applications = between_hosts(tables.model_copy(update={"application": entries}))
    found = _ports(applications) + _families(tables, hosts, applications) + quic.faults(tables, resolved, applications)
    if found:
        raise Inconsistent(expanded.placed(found))
    routes = [] if ways is None else ways.routes
    return resolved.model_copy(update={"application": entries, "route": [*resolved.route, *routes]})


def _stacks(tables: Tables) -> dict[int, dict[str, Any]]:
    """Every host's complete transport settings, by the identity of its table: a topology's hosts share one."""
    alike = {id(host): name for name, host in tables.host.items()}
    return {identity: settings(host_stack(tables, name)) for identity, name in alike.items()}


def _interfaces(tables: Tables, ends: dict[str, tuple[End, End]]) -> dict[str, dict[str, Interface]]:
    described = described_interfaces(tables)
    taken = {address for group in described.values() for one in group.values() for address in one.address or []}
    complete: dict[str, dict[str, Interface]] = {}
    for number, pair in enumerate(ends.values()):
        for side, (node, name) in enumerate(pair):
            interface = described.get(node, {}).get(name, Interface.empty())
            if interface.address is None and node in tables.host:
                address = _free_address(number, side + 1, taken)
                taken.add(address)
                interface = interface.model_copy(update={"address": [address]})
            complete.setdefault(node, {})[name] = interface
    return complete


def _free_address(link: int, host: int, taken: set[Address]) -> Address:
    address = FIRST_ADDRESS + 256 * link + host
    while address in taken:
        address += 1
    return address


def host_addresses(host: Host) -> list[Address]:
    """A host's addresses, in its interfaces' order."""
    return [address for interface in host.interface.values() for address in interface.address or []]


class _Change(NamedTuple):
    """An interface goes up or down."""

    at: int
    interface: str
    up: bool


def _changes(tables: Tables) -> defaultdict[str, list[_Change]]:
    """The changes of each node, by time."""
    changes: defaultdict[str, list[_Change]] = defaultdict(list)
    for event in sorted(tables.event, key=lambda event: event.at):
        node, name = split_end(event.interface or "")
        if name is not None and event.up is not None:
            changes[node].append(_Change(event.at, name, event.up))
    return changes


def _up_first(host: Host, changes: Sequence[_Change], at: int) -> list[Address]:
    """A host's addresses, last those of interfaces that are down at that time: a socket without a source would not take
    them."""
    up = {change.interface: change.up for change in changes if change.at <= at}
    interfaces = sorted(host.interface, key=lambda name: not up.get(name, True))
    return [address for name in interfaces for address in host.interface[name].address or []]


def _entries(tables: Tables, resolved: Tables, ways: Ways | None) -> list[AnyEntry]:
    complete: list[AnyEntry] = []
    changes = _changes(tables)
    given = {application.port for _, application in between_hosts(tables) if application.port is not None}
    free = (port for port in range(FIRST_PORT, LAST_PORT + 1) if port not in given)
    for name, application in zip(application_names(tables), tables.application, strict=True):
        if isinstance(application, Command):
            complete.append(application.model_copy(update={"name": name}))
            continue
        start = application.start
        if application.start_jitter:
            whose = application.of if isinstance(application, Page) and application.of else name
            start += draws.below(application.start_jitter + 1, f"{tables.seed} start {whose}")
        clients = _up_first(resolved.host[application.client], changes[application.client], start)
        servers = host_addresses(resolved.host[application.server])
        if isinstance(application, Relay | Tunnel):
            clients, servers = _facing(resolved, application, clients, servers)
        pairs = ways.pairs(application) if ways is not None else []
        source, destination = pairs[0] if pairs else _pair(application, clients, servers)
        update: dict[str, Any] = {"name": name, "source": source, "destination": destination, "stack": Stack.empty()}
        if application.start_jitter:
            update |= {"start": start, "start_jitter": 0}
        update["port"] = application.port if application.port is not None else next(free, LAST_PORT + 1)
        for side, host in (("client", application.client), ("server", application.server)):
            own: Stack = getattr(application, f"{side}_stack")
            if settings(application.stack) or settings(own):
                own = merge([tables.defaults, tables.host[host], application.stack, own])
            if pairs and application.transport == "mptcp":
                whole = own if settings(own) else merge([tables.defaults, tables.host[host]])
                own = whole.model_copy(update={"path_manager": opening(pairs, side)})
            update[f"{side}_stack"] = own
        complete.append(application.model_copy(update=update))
    return complete


def _facing(
    resolved: Tables, leg: Relay | Tunnel, clients: list[Address], servers: list[Address]
) -> tuple[list[Address], list[Address]]:
    """A proxy has interfaces on both sides: those towards the other end come first, and none of a tunnel."""
    through = tunnels(resolved)
    ends = {name: pair for name, pair in attachments(resolved).items() if name not in through}
    own, far = facing.addresses(resolved, ends, leg.client, leg.server)
    return sorted(clients, key=lambda at: at not in own), sorted(servers, key=lambda at: at not in far)


def _pair(application: Application, clients: list[Address], servers: list[Address]) -> tuple[Any, Any]:
    sources = clients if application.source is None else [application.source]
    destinations = servers if application.destination is None else [application.destination]
    for source in sources:
        for destination in destinations:
            if source.version == destination.version and source in clients and destination in servers:
                return source, destination
    return None, None


def _families(tables: Tables, hosts: Mapping[str, Host], applications: Entries) -> list[Problem]:
    as_written = dict(between_hosts(tables))
    return [
        _unpaired(index, as_written[index], hosts, application.name)
        for index, application in applications
        if application.source is None
    ]


def _unpaired(index: int, application: Application, hosts: Mapping[str, Host], name: str | None) -> Problem:
    """The reason why an application has no pair of addresses."""
    for key, host in (("source", application.client), ("destination", application.server)):
        address, own = getattr(application, key), host_addresses(hosts[host])
        if address is not None and address not in own:
            there = ", ".join(map(str, own))
            return Problem(("application", index, key), f"{address} is no address of '{host}', which has {there}")
    return Problem(
        ("application", index),
        f"'{application.client}' and '{application.server}' have no addresses of one IP version "
        f"that fit application '{name}'",
    )


def _ports(applications: Entries) -> list[Problem]:
    found = []
    owners: dict[tuple[str, bool, int | None], str | None] = {}
    for index, application in applications:
        assert application.port is not None
        if application.port > LAST_PORT:
            message = f"its connections need ports beyond {LAST_PORT}; give a lower 'port', or let there be fewer"
            found.append(Problem(("application", index, "port"), message))
            continue
        if application.transport == "icmp":
            continue
        over_udp = application.transport in ("udp", *QUIC)
        key = (application.server, over_udp, application.port)
        if key in owners:
            message = (
                f"port {application.port} of '{application.server}' belongs to application '{owners[key]}' already"
            )
            found.append(Problem(("application", index, "port"), message))
        owners.setdefault(key, application.name)
    return found
