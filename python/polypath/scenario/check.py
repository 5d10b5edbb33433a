"""Checks across tables: names that must exist or be unique, and hosts that must reach each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from polypath.scenario import flows
from polypath.scenario.errors import Problem, ScenarioError, unknown_at
from polypath.scenario.fields import Address
from polypath.scenario.links import link_problems, written
from polypath.scenario.network import Channel
from polypath.scenario.positions import Path
from polypath.scenario.script import is_script
from polypath.scenario.stack import Stack
from polypath.scenario.tables import (
    End,
    Expanded,
    Tables,
    application_names,
    attachments,
    between_hosts,
    commands,
    described_interfaces,
    directions,
    expand,
    matrix_pairs,
    network,
    nodes,
    split_end,
)
from polypath.scenario.traffic import QUIC, Bulk, Command, Event, Page, Relay
from polypath.scenario.tunnels import tunnel_problems, ways_around
from polypath.units import TIME


class Inconsistent(ScenarioError):
    """A scenario that cannot be run, with every problem by its path."""

    def __init__(self, found: list[Problem]) -> None:
        super().__init__(found[0].message, hint=found[0].hint)
        self.problems = found


def checked(tables: Tables) -> Expanded:
    """The scenario written out, if it can be run as a whole; raises Inconsistent with everything wrong."""
    if found := [problem for check in _WRITTEN for problem in check(tables)]:
        raise Inconsistent(found)
    expanded = expand(tables)
    found = [problem for check in _NAMING for problem in check(expanded.tables)]
    found = found or [problem for check in _WIRING for problem in check(expanded.tables)]
    if found:
        raise Inconsistent(expanded.placed(found))
    return expanded


def _made_links(tables: Tables) -> Iterator[Problem]:
    made = tables.topology.network.links if tables.topology is not None else {}
    for name in tables.link:
        if name in made:
            yield Problem(("link", name), f"duplicate name: the topology makes a link '{name}' already")


def _matrices(tables: Tables) -> Iterator[Problem]:
    made = network(tables)
    for index, application in between_hosts(tables):
        if application.matrix is None:
            continue
        for key in ("client", "server", "source", "destination"):
            if getattr(application, key) != type(application).model_fields[key].default:
                yield Problem(("application", index, key), f"with a 'matrix' there is no '{key}': it gives every pair")
        if len(made.host) < 2:
            yield Problem(("application", index, "matrix"), f"a traffic matrix needs two hosts, not {len(made.host)}")
            continue
        try:
            matrix_pairs(application.matrix, made, tables.seed, index)
        except ValueError as error:
            kind = application.matrix.kind
            yield Problem(("application", index, "matrix"), f"no matrix '{kind}' in this network: {error}")


def _ways(tables: Tables) -> Iterator[Problem]:
    if tables.topology is None or not tables.topology.opens_subflows:
        return
    if tables.routing == "spread":
        message = "routing 'spread' places every flow itself; take the topology's 'ways' away or choose another"
        yield Problem(("routing",), message)
    for path, stack in _stacks(tables):
        if stack.path_manager is not None:
            message = "the topology's 'ways' open the subflows; take one of the two away"
            yield Problem((*path, "path_manager"), message)
    for index, application in between_hosts(tables):
        if application.transport == "mpquic":
            message = "the topology's 'ways' are for Multipath TCP and for single paths; take one of the two away"
            yield Problem(("application", index, "transport"), message)


def _flows(tables: Tables) -> Iterator[Problem]:
    for index, application in enumerate(tables.application):
        if isinstance(application, Bulk) and (count := flows.expected(application, tables.duration)) > 0.9 * flows.MOST:
            message = f"some {count:,.0f} flows would arrive, and {0.9 * flows.MOST:,.0f} at most are taken"
            yield Problem(("application", index, "arrivals"), f"{message}; take a lower rate or a shorter 'duration'")


def _node_names(tables: Tables) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for kind, names in (("host", tables.host), ("router", tables.router), ("switch", tables.switch)):
        for name in names:
            if name in seen:
                yield Problem((kind, name), f"duplicate name: '{name}' is a {seen[name]} already")
            seen.setdefault(name, kind)


def _application_names(tables: Tables) -> Iterator[Problem]:
    counts = Counter(application_names(tables))
    seen = set()
    for index, name in enumerate(application_names(tables)):
        if counts[name] > 1 and name in seen:
            yield Problem(("application", index, "name"), f"duplicate name: there is an application '{name}' already")
        seen.add(name)


def _is_interface(name: str) -> bool:
    """As Linux takes them (dev_valid_name)."""
    return all(each.isprintable() and not each.isspace() and each not in "/:" for each in name)


def _link_ends(tables: Tables) -> Iterator[Problem]:
    known = nodes(tables)
    for name, link in tables.link.items():
        path = ("link", name, "ends")
        ends = [split_end(end) for end in link.ends]
        for node, interface in ends:
            if node not in known:
                yield unknown_at(path, "host, router or switch", node, known)
            elif interface == "":
                yield Problem(path, f"'{node}:' names no interface")
            elif interface is not None and not _is_interface(interface):
                what = "a character that no interface name has: white space, '/', ':', or one that cannot be printed"
                yield Problem(path, f"{interface!r} has {what}")
        if ends[0][0] == ends[1][0]:
            yield Problem(path, f"link '{name}' joins '{ends[0][0]}' with itself")


def _application_hosts(tables: Tables) -> Iterator[Problem]:
    for index, application in between_hosts(tables):
        for side in ("client", "server"):
            host = getattr(application, side)
            if host not in tables.host:
                yield unknown_at(("application", index, side), "host", host, tables.host)
        if application.client == application.server:
            yield Problem(("application", index), f"client and server are the same host, '{application.client}'")
    for index, program in commands(tables):
        if program.host not in tables.host:
            yield unknown_at(("application", index, "host"), "host", program.host, tables.host)


def _application_times(tables: Tables) -> Iterator[Problem]:
    for index, application in enumerate(tables.application):
        end = TIME.format(tables.duration)
        if application.start >= tables.duration:
            when = TIME.format(application.start)
            message = f"it starts at {when}, but the run ends at {end}; give an earlier time or a longer 'duration'"
            yield Problem(("application", index, "start"), message)
        elif isinstance(application, Command):
            continue
        elif application.start + application.start_jitter >= tables.duration:
            when = TIME.format(application.start + application.start_jitter)
            message = f"it may start at {when}, but the run ends at {end}; give less or a longer 'duration'"
            yield Problem(("application", index, "start_jitter"), message)


def _pages(tables: Tables) -> Iterator[Problem]:
    """One more connection for a page is between the hosts of a page that stands before it and has its objects."""
    named: dict[str, Page] = {}
    for (index, application), name in zip(enumerate(tables.application), application_names(tables), strict=True):
        if not isinstance(application, Page):
            continue
        if application.of is None:
            named[name] = application
            continue
        path = ("application", index, "of")
        owner = named.get(application.of)
        if owner is None:
            yield unknown_at(path, "page before this one", application.of, named)
        elif (owner.client, owner.server) != (application.client, application.server):
            yield Problem(path, f"page '{application.of}' is between other hosts: {owner.client} and {owner.server}")
        elif owner.transport in QUIC:
            yield Problem(path, f"page '{application.of}' is over QUIC, and all on one connection")


def _relays(tables: Tables) -> Iterator[Problem]:
    """A relay goes on where the connections of an application before it ended so far."""
    ends: dict[str, str] = {}
    for (index, application), name in zip(enumerate(tables.application), application_names(tables), strict=True):
        if isinstance(application, Command):
            continue
        if not isinstance(application, Relay):
            many = application.matrix is not None or getattr(application, "count", 1) != 1
            if not many and application.transport in ("mptcp", "tcp"):
                ends[name] = application.server
            continue
        path = ("application", index, "of")
        end = ends.get(application.of)
        if application.matrix is not None:
            yield Problem(("application", index, "matrix"), "a relay is one connection, between two hosts")
        elif end is None:
            yield unknown_at(path, "application before this one over Multipath TCP or TCP", application.of, ends)
        elif end != application.client:
            message = f"the connections of '{application.of}' end at '{end}' so far; a relay of them begins there"
            yield Problem(("application", index, "client"), message)
        else:
            ends[application.of] = application.server


def _event_times(tables: Tables) -> Iterator[Problem]:
    for index, event in enumerate(tables.event):
        if event.at >= tables.duration:
            when, end = TIME.format(event.at), TIME.format(tables.duration)
            message = f"the event is at {when}, but the run ends at {end}; give an earlier time or a longer 'duration'"
            yield Problem(("event", index, "at"), message)


_LINK_CHANGES = ("rate", "delay", "loss", "queue", "up")
_INTERFACE_CHANGES = ("up", "backup", "fullmesh", "endpoint", "migrate_to")
_HOST_CHANGES = ("flush_endpoints",)
_SWITCH_CHANGES = ("up",)


def _given(event: Event) -> list[str]:
    changes = dict.fromkeys(_LINK_CHANGES + _INTERFACE_CHANGES + _HOST_CHANGES)
    return [name for name in changes if getattr(event, name) is not None]


def _events(tables: Tables) -> Iterator[Problem]:
    for index, event in enumerate(tables.event):
        path = ("event", index)
        if sum(each is not None for each in (event.link, event.interface, event.host, event.switch)) != 1:
            yield Problem(path, "an event is of either a 'link', an 'interface', a 'host' or a 'switch'")
            continue
        allowed: tuple[str, ...]
        if event.link is not None:
            allowed, what = _LINK_CHANGES, "a link"
        elif event.interface is not None:
            allowed, what = _INTERFACE_CHANGES, "an interface"
        elif event.host is not None:
            allowed, what = _HOST_CHANGES, "a host"
        else:
            allowed, what = _SWITCH_CHANGES, "a switch"
        given = _given(event)
        for name in given:
            if name not in allowed:
                yield Problem((*path, name), f"'{name}' is nothing that changes of {what}")
        if not given:
            yield Problem(path, f"the event changes nothing; give one of {', '.join(allowed)}")
        if event.link is not None and event.link not in tables.link:
            yield unknown_at((*path, "link"), "link", event.link, tables.link)
        if event.switch is not None:
            known = {**tables.router, **tables.switch}
            if event.switch not in known:
                yield unknown_at((*path, "switch"), "router or switch", event.switch, known)
            if event.direction != "both":
                yield Problem((*path, "direction"), "'direction' is of links, not of switches")
        if event.interface is not None:
            if event.direction != "both":
                yield Problem((*path, "direction"), "'direction' is of links, not of interfaces")
            host, interface = split_end(event.interface)
            if interface is None and host not in tables.host:
                example = f"{next(iter(tables.host), 'client')}:eth0"
                yield Problem((*path, "interface"), f"'{host}' is no interface of a host, such as '{example}'")
            elif host not in tables.host:
                yield unknown_at((*path, "interface"), "host", host, tables.host)
            elif not interface:
                yield Problem((*path, "interface"), f"name an interface of '{host}', such as '{host}:eth0'")
            else:
                for name in ("fullmesh", "endpoint"):
                    if getattr(event, name) is not None:
                        yield from _needs_endpoints(tables, (*path, name), host)
        if event.host is not None:
            if event.direction != "both":
                yield Problem((*path, "direction"), "'direction' is of links, not of hosts")
            if event.host not in tables.host:
                yield unknown_at((*path, "host"), "host", event.host, tables.host)
            elif event.flush_endpoints is not None:
                yield from _needs_endpoints(tables, (*path, "flush_endpoints"), event.host)


def _needs_endpoints(tables: Tables, path: Path, host: str) -> Iterator[Problem]:
    manager = tables.host[host].path_manager or tables.defaults.path_manager
    parameters = {} if manager is None else manager.parameters
    if manager is None or manager.name != "endpoints":
        yield Problem(path, f"'{path[-1]}' is of hosts with path manager 'endpoints', and '{host}' has another")
    elif parameters.get("flags") == "none" and not parameters.get("endpoints"):
        yield Problem(path, f"'{path[-1]}' changes nothing of '{host}', whose addresses have no task: flags = 'none'")


def _spread(tables: Tables) -> Iterator[Problem]:
    if tables.routing != "spread":
        return
    if tables.route:
        yield Problem(("route", 0), "routing 'spread' places every flow itself; take the routes away or choose another")
    for name, link in tables.link.items():
        if link.middlebox:
            message = f"routing 'spread' knows no middleboxes; take that of link {name} away or choose another"
            yield Problem(("link", name, "middlebox"), message)


def _controller(tables: Tables) -> Iterator[Problem]:
    ruling = tables.controller
    if ruling is None:
        return
    if not tables.router and not tables.switch:
        yield Problem(("controller",), "there is no router or switch that it could rule; add one or take it away")
    if tables.routing != "shortest-path":
        message = f"with a controller there is no 'routing = \"{tables.routing}\"'; give controller.routing instead"
        yield Problem(("routing",), message)
    name = ruling.rule.name
    if (name == "spread" or is_script(name)) and ruling.mode != "reactive":
        message = f"routing '{name}' has to see each flow begin: there is no mode '{ruling.mode}', take 'reactive'"
        yield Problem(("controller", "mode"), message)
    if ruling.mode == "proactive" and ruling.idle_timeout:
        message = "in mode 'proactive' no entry times out; take 'idle_timeout' away or choose 'reactive' or 'hybrid'"
        yield Problem(("controller", "idle_timeout"), message)
    yield from _tables_alone(
        tables,
        host="a controller rules no hosts",
        route="a controller fills the tables of '{}'",
        middlebox="a controller knows no middleboxes",
        binder="under a controller tables decide",
    )


def _bridging(tables: Tables) -> Iterator[Problem]:
    bridging = tables.bridging
    if bridging is None:
        return
    known = {**tables.router, **tables.switch}
    if tables.controller is not None:
        yield Problem(("bridging",), "switches are bridges or have a controller; take one of the two tables away")
        return
    if not known:
        yield Problem(("bridging",), "there is no router or switch that could be a bridge; add one or take it away")
    if tables.routing != "shortest-path":
        message = f"bridges have a spanning tree and no 'routing = \"{tables.routing}\"'; take one of the two away"
        yield Problem(("routing",), message)
    for name in bridging.priority:
        if name not in known:
            yield unknown_at(("bridging", "priority", name), "router or switch", name, known)
    yield from _tables_alone(
        tables,
        host="no bridge knows a way through hosts",
        route="'{}' is a bridge, which knows no addresses of IP",
        middlebox="bridges know no middleboxes",
        binder="bridges know no addresses of IP",
    )


def _tables_alone(tables: Tables, *, host: str, route: str, middlebox: str, binder: str) -> Iterator[Problem]:
    """Whether routers and switches forward by nothing but tables; the texts say why they must."""
    for name, described in tables.host.items():
        if described.forwards:
            yield Problem(("host", name), f"host '{name}' forwards for others, and {host}")
            break
    for index, static in enumerate(tables.route):
        if static.node not in tables.host:
            yield Problem(("route", index), f"{route.format(static.node)}; take the route away")
    for name, link in tables.link.items():
        if link.middlebox:
            yield Problem(("link", name, "middlebox"), f"{middlebox}; take that of link {name} away")
    yield from _steered(tables, binder)


def _stacks(tables: Tables) -> Iterator[tuple[Path, Stack]]:
    """Every table of transport settings, and where it is."""
    yield ("defaults",), tables.defaults
    for name, host in tables.host.items():
        yield ("host", name), host
    for index, application in between_hosts(tables):
        for side in ("stack", "client_stack", "server_stack"):
            yield ("application", index, side), getattr(application, side)


def _steered(tables: Tables, why: str) -> Iterator[Problem]:
    for path, stack in _stacks(tables):
        if stack.path_manager is not None and stack.path_manager.name == "binder":
            message = f"path manager 'binder' steers packets through routers, and {why}"
            yield Problem((*path, "path_manager"), message)


def _route_nodes(tables: Tables) -> Iterator[Problem]:
    known = {**tables.host, **tables.router}
    for index, route in enumerate(tables.route):
        if route.node not in known:
            yield unknown_at(("route", index, "node"), "host or router", route.node, known)
        if route.source is not None and route.source.version != route.destination.version:
            yield Problem(("route", index), "source and destination are of different IP versions")


def _interface_path(tables: Tables, end: End) -> Path:
    for kind, group in (("host", tables.host), ("router", tables.router)):
        if end[0] in group:
            return (kind, end[0], "interface", end[1])
    return ("switch", end[0])


def _interfaces(tables: Tables) -> Iterator[Problem]:
    users: dict[End, str] = {}
    for name, ends in attachments(tables).items():
        for end in ends:
            if end in users:
                yield Problem(("link", name, "ends"), f"interface {end[0]}:{end[1]} has a link already, '{users[end]}'")
            users.setdefault(end, name)
    for node, interfaces in described_interfaces(tables).items():
        for interface in interfaces:
            if (node, interface) not in users:
                path = _interface_path(tables, (node, interface))
                yield Problem(path, f"no link ends at {node}:{interface}; name it in the link's ends")


def _addresses(tables: Tables) -> Iterator[Problem]:
    owners: dict[Address, str] = {}
    for node, interfaces in described_interfaces(tables).items():
        for interface, described in interfaces.items():
            for address in described.address or []:
                end = (node, interface)
                if address in owners:
                    path = (*_interface_path(tables, end), "address")
                    yield Problem(path, f"duplicate address: {address} belongs to {owners[address]} already")
                owners.setdefault(address, f"{node}:{interface}")


def _neighbours(tables: Tables) -> dict[str, set[str]]:
    """By node those at the other ends of its links."""
    found: dict[str, set[str]] = {name: set() for name in nodes(tables)}
    for (a, _), (b, _) in attachments(tables).values():
        found[a].add(b)
        found[b].add(a)
    return found


def _forwarding(tables: Tables) -> list[str]:
    return [name for name in nodes(tables) if name not in tables.host or tables.host[name].forwards]


_LEAST_IPV6_MTU = 1280
"""RFC 8200 section 5."""


def _ipv6_mtus(tables: Tables) -> Iterator[Problem]:
    """IPv6 can be on a link each end of which has an address of it, or leads to one without crossing a host."""
    short = {name: link for name, link in tables.link.items() if min(map(_mtu, directions(link))) < _LEAST_IPV6_MTU}
    if not short:
        return
    described, links = described_interfaces(tables), attachments(tables)
    parts = _parts(_neighbours(tables), _forwarding(tables))

    def speaks(end: End) -> bool:
        interface = described.get(end[0], {}).get(end[1])
        return interface is not None and any(address.version == 6 for address in interface.address or [])

    around = {parts[node] for pair in links.values() if any(map(speaks, pair)) for node, _ in pair if node in parts}
    for name, link in short.items():
        if not all(speaks(end) or parts.get(end[0]) in around for end in links[name]):
            continue
        for key, side in zip(("forward", "backward"), directions(link), strict=True):
            if _mtu(side) < _LEAST_IPV6_MTU:
                message = f"link.{name}: IPv6 needs an 'mtu' of at least {_LEAST_IPV6_MTU}, not {side.mtu}"
                path = ("link", name, *written(link, key, "mtu"))
                yield Problem(path, f"{message} (RFC 8200 section 5)", str(_LEAST_IPV6_MTU))


def _mtu(channel: Channel) -> int:
    return _LEAST_IPV6_MTU if channel.mtu is None else channel.mtu


def _reach(tables: Tables) -> Iterator[Problem]:
    neighbours = _neighbours(tables)
    for host in tables.host:
        if not neighbours[host]:
            yield Problem(("host", host), f"host '{host}' is disconnected: no link ends at it")
    parts = _parts(neighbours, _forwarding(tables))
    around = {host: {parts[near] for near in neighbours[host] if near in parts} for host in tables.host}
    names = application_names(tables)
    for index, application in between_hosts(tables):
        start, goal = application.client, application.server
        if not (neighbours[start] and neighbours[goal]):
            continue
        if goal not in neighbours[start] and around[start].isdisjoint(around[goal]):
            path = ("application", index)
            yield Problem(
                path,
                f"host '{goal}' is disconnected from '{start}', the client of '{names[index]}': no links lead there",
            )


def _parts(neighbours: Mapping[str, set[str]], forwarding: Iterable[str]) -> dict[str, str]:
    """For each node that forwards the name of the part that it belongs to: what is joined without a host between
    that does not forward."""
    parts: dict[str, str] = {}
    left = dict.fromkeys(forwarding)
    while left:
        first, _ = left.popitem()
        frontier = [first]
        while frontier:
            node = frontier.pop()
            parts[node] = first
            for near in neighbours[node]:
                if near in left:
                    del left[near]
                    frontier.append(near)
    return parts


def _made_interfaces(tables: Tables) -> Iterator[Problem]:
    known: dict[str, list[str]] = {}
    for pair in attachments(tables).values():
        for node, name in pair:
            known.setdefault(node, []).append(name)
    for index, event in enumerate(tables.event):
        if event.interface is not None:
            host = split_end(event.interface)[0]
            ends = [f"{host}:{name}" for name in known.get(host, [])]
            if event.interface not in ends:
                yield unknown_at(("event", index, "interface"), "interface", event.interface, ends)
            if event.migrate_to is not None:
                yield from _migration(("event", index, "migrate_to"), event, known.get(host, []))
    for index, route in enumerate(tables.route):
        if route.interface not in known.get(route.node, []):
            path = ("route", index, "interface")
            yield unknown_at(path, f"interface of '{route.node}'", route.interface, known.get(route.node, []))


def _migration(path: Path, event: Event, known: list[str]) -> Iterator[Problem]:
    assert event.interface is not None
    host, interface = split_end(event.interface)
    if event.migrate_to not in known:
        yield unknown_at(path, f"interface of '{host}'", str(event.migrate_to), known)
    elif event.migrate_to == interface:
        yield Problem(path, f"paths of '{event.interface}' are there already; name another interface of '{host}'")


_WRITTEN: tuple[Callable[[Tables], Iterator[Problem]], ...] = (_made_links, _matrices, _ways, _flows)
"""Checks of what stands for many; the others are of the many."""

_NAMING: tuple[Callable[[Tables], Iterator[Problem]], ...] = (
    _node_names,
    _application_names,
    _link_ends,
    link_problems,
    _application_hosts,
    _application_times,
    _relays,
    tunnel_problems,
    _pages,
    _events,
    _event_times,
    _route_nodes,
    _spread,
    _controller,
    _bridging,
)
"""Checks of names; those of `_WIRING` need them to hold."""

_WIRING: tuple[Callable[[Tables], Iterator[Problem]], ...] = (
    _interfaces,
    _addresses,
    _reach,
    ways_around,
    _ipv6_mtus,
    _made_interfaces,
)
