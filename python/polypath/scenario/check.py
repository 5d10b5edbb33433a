"""What no table can see alone: names that must exist, or be unique; hosts that must reach each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from polypath.scenario import flows
from polypath.scenario.declared import tables as models
from polypath.scenario.errors import ScenarioError, unknown
from polypath.scenario.fields import Address
from polypath.scenario.models import Discipline
from polypath.scenario.network import ETHERNET_BYTES, USUAL_MTU, Channel, Link
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
from polypath.scenario.traffic import Bulk, Command, Event
from polypath.scenario.wifi import Wifi
from polypath.units import SIZE, TIME


@dataclass(frozen=True)
class Problem:
    """Something wrong at a path of the scenario."""

    path: Path
    message: str
    hint: str | None = None


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
        raise Inconsistent(
            list(dict.fromkeys(replace(problem, path=expanded.origin(problem.path)) for problem in found))
        )
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


def _unknown(path: Path, what: str, name: str, known: Iterable[str]) -> Problem:
    return Problem(path, *unknown(what, name, known))


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
    return all(each.isprintable() and not each.isspace() and each != "/" for each in name)


def _link_ends(tables: Tables) -> Iterator[Problem]:
    known = nodes(tables)
    for name, link in tables.link.items():
        path = ("link", name, "ends")
        ends = [split_end(end) for end in link.ends]
        for node, interface in ends:
            if node not in known:
                yield _unknown(path, "host, router or switch", node, known)
            elif interface == "":
                yield Problem(path, f"'{node}:' names no interface")
            elif interface is not None and not _is_interface(interface):
                what = "a character that no interface name has: white space, '/', or one that cannot be printed"
                yield Problem(path, f"{interface!r} has {what}")
        if ends[0][0] == ends[1][0]:
            yield Problem(path, f"link '{name}' joins '{ends[0][0]}' with itself")


def _application_hosts(tables: Tables) -> Iterator[Problem]:
    for index, application in between_hosts(tables):
        for side in ("client", "server"):
            host = getattr(application, side)
            if host not in tables.host:
                yield _unknown(("application", index, side), "host", host, tables.host)
        if application.client == application.server:
            yield Problem(("application", index), f"client and server are the same host, '{application.client}'")
    for index, program in commands(tables):
        if program.host not in tables.host:
            yield _unknown(("application", index, "host"), "host", program.host, tables.host)


def _application_times(tables: Tables) -> Iterator[Problem]:
    for index, application in enumerate(tables.application):
        end = TIME.format(tables.duration)
        if application.start >= tables.duration:
            when = TIME.format(application.start)
            yield Problem(("application", index, "start"), f"it starts at {when}, but the run ends at {end}")
        elif isinstance(application, Command):
            continue
        elif application.start + application.start_jitter >= tables.duration:
            when = TIME.format(application.start + application.start_jitter)
            yield Problem(("application", index, "start_jitter"), f"it may start at {when}, but the run ends at {end}")


def _event_times(tables: Tables) -> Iterator[Problem]:
    for index, event in enumerate(tables.event):
        if event.at >= tables.duration:
            when, end = TIME.format(event.at), TIME.format(tables.duration)
            message = f"the event is at {when}, but the run ends at {end}; give an earlier time or a longer 'duration'"
            yield Problem(("event", index, "at"), message)


def _mtus(tables: Tables) -> Iterator[Problem]:
    for name, link in tables.link.items():
        sides = directions(link)
        if any(side.icmp is not None and side.mtu is None for side in sides):
            yield Problem(("link", name), f"link.{name}: 'icmp' is about packets longer than 'mtu', and there is none")


def _at_host(channel: Channel) -> bool:
    return channel.queue_at not in (None, "link")


def _queues(tables: Tables) -> Iterator[Problem]:
    by_flow = [name for name, model in models(Discipline).items() if "flows" in model.model_fields]
    for name, link in tables.link.items():
        ends = [split_end(end)[0] for end in link.ends]
        hosts = [end for end in ends if end in tables.host]
        if _at_host(link) and not hosts:
            yield Problem(("link", name, "queue_at"), f"link.{name}: no end is a host whose queue it could be")
        for key, end in zip(("forward", "backward"), ends, strict=True):
            if _at_host(getattr(link, key)) and end not in hosts:
                message = f"link.{name}.{key}: the queue cannot be at the host: '{end}' is none"
                yield Problem(("link", name, key, "queue_at"), message)
        if any(_at_host(side) and side.rate is None and side.wifi is None for side in directions(link)):
            yield Problem(("link", name), f"link.{name}: 'queue_at' is about a queue, and without 'rate' there is none")
        if any(_at_host(side) and side.queue is not None and side.queue.kind in by_flow for side in directions(link)):
            named = " and ".join(f"'{name}'" for name in by_flow)
            message = f"a queue at the host is one for all flows; {named} are at the link"
            yield Problem(("link", name), f"link.{name}: {message}")
        if any(side.queue_at == "host-tbf" and not _leaves_at_known_times(side) for side in directions(link)):
            message = "a host's tbf is drop-tail without burst, duplicates and reordering"
            yield Problem(("link", name), f"link.{name}: {message}")


def _bypasses(tables: Tables) -> Iterator[Problem]:
    for name, link in tables.link.items():
        for side in directions(link):
            if side.bypass and (side.rate is None or side.trace is not None or _at_host(side)):
                message = "'bypass' is of links with a rate of their own, whose queue is at the link"
                yield Problem(("link", name), f"link.{name}: {message}")
                break


def _written(link: Link, key: str, name: str) -> Path:
    """Where a link says what holds in a direction, within the link's table."""
    return (key, name) if getattr(getattr(link, key), name) is not None else (name,)


def _bursts(tables: Tables) -> Iterator[Problem]:
    for name, link in tables.link.items():
        for key, side in zip(("forward", "backward"), directions(link), strict=True):
            overhead = ETHERNET_BYTES if side.overhead is None else side.overhead
            longest = (side.mtu or USUAL_MTU) + overhead
            if side.burst and side.burst < longest:
                message = f"link.{name}: a bucket of {SIZE.format(side.burst)} never holds a packet of {longest} bytes"
                path = ("link", name, *_written(link, key, "burst"))
                yield Problem(path, f"{message} ('mtu' and 'overhead')", f"{longest} B")


def _traces(tables: Tables) -> Iterator[Problem]:
    for name, link in tables.link.items():
        for key, side in zip(("forward", "backward"), directions(link), strict=True):
            where = f"link.{name}.{key}"
            if side.conditions is not None:
                yield from _conditions(name, key, side, tables)
            if side.trace is None:
                continue
            if side.burst:
                yield Problem(("link", name), f"{where}: a link that follows a trace has no 'burst'")
            if _at_host(side):
                yield Problem(("link", name), f"{where}: a link that follows a trace has its queue at the link")
            for index, event in enumerate(tables.event):
                if event.link == name and event.rate is not None and event.direction in ("both", key):
                    message = f"{where} follows the trace '{side.trace.name}', so that its rate cannot be changed"
                    yield Problem(("event", index, "rate"), message)


def _wifi(tables: Tables) -> Iterator[Problem]:
    for name, link in tables.link.items():
        sides = directions(link)
        stations = [side.wifi for side in sides if side.wifi is not None]
        if not stations:
            continue
        if len(stations) == 1 or stations[0].medium != stations[1].medium:
            yield Problem(("link", name), f"link.{name}: both directions are Wi-Fi on one medium, or neither")
        for key, side in zip(("forward", "backward"), sides, strict=True):
            own = getattr(link, key)
            path: Path = ("link", name, key) if own.wifi is not None else ("link", name)
            if side.wifi is not None:
                yield from _station(path, side.wifi, tables)
                yield from _beside_wifi(name, key, side, tables)


def _station(path: Path, wifi: Wifi, tables: Tables) -> Iterator[Problem]:
    path = (*path, "wifi")
    if wifi.medium is not None and wifi.medium not in tables.medium:
        if tables.medium:
            yield _unknown((*path, "medium"), "medium", wifi.medium, tables.medium)
        else:
            message = f"unknown medium '{wifi.medium}'; there is none yet: add [medium.{wifi.medium}]"
            yield Problem((*path, "medium"), message)
        return
    standard = wifi.of(tables.medium)
    if wifi.aggregate is not None and standard == "802.11a":
        yield Problem((*path, "aggregate"), "802.11a sends one packet at a time, so that it has no 'aggregate'")
    rates = wifi.rates_bps(standard)
    known = [mcs for mcs, rate in enumerate(rates) if rate is not None]
    streams = f" with {wifi.streams} streams" if wifi.streams > 1 else ""
    what = f"{standard} in {wifi.width}{streams} and a guard interval of {wifi.guard}"
    if not known:
        yield Problem(path, f"there is no {what}")
        return
    for number, state in enumerate(wifi.chain):
        if state.mcs not in known:
            place = ("states", number, "mcs") if wifi.states is not None else ("mcs",)
            hint = str(min(known, key=lambda mcs: abs(mcs - state.mcs)))
            yield Problem((*path, *place), f"no MCS {state.mcs} in {what}", hint)


def _beside_wifi(name: str, key: str, side: Channel, tables: Tables) -> Iterator[Problem]:
    where = f"link.{name}.{key}"
    if side.rate is not None:
        yield Problem(("link", name), f"{where}: Wi-Fi has a rate of its own; take 'rate' away")
    if side.burst:
        yield Problem(("link", name), f"{where}: a link over Wi-Fi has no 'burst'")
    if _at_host(side):
        yield Problem(("link", name), f"{where}: a link over Wi-Fi has its queue at the link")
    if side.conditions is not None and "rate_bps" in side.conditions.columns():
        yield Problem(("link", name), f"{where}: Wi-Fi has a rate of its own, so that 'conditions' cannot give it")
    for index, event in enumerate(tables.event):
        if event.link == name and event.rate is not None and event.direction in ("both", key):
            yield Problem(("event", index, "rate"), f"{where} is Wi-Fi, so that its rate cannot be changed")


_COLUMNS = {"rate_bps": "rate", "delay_ns": "delay", "loss": "loss"}
"""What columns of conditions set, as events name it."""


def _conditions(name: str, key: str, side: Channel, tables: Tables) -> Iterator[Problem]:
    assert side.conditions is not None
    where, columns = f"link.{name}.{key}", side.conditions.columns()
    if side.trace is not None and "rate_bps" in columns:
        message = f"{where} follows the trace '{side.trace.name}', so that 'conditions' cannot give its rate"
        yield Problem(("link", name), message)
    for index, event in enumerate(tables.event):
        for what in (_COLUMNS[column] for column in sorted(columns)):
            if event.link == name and getattr(event, what) is not None and event.direction in ("both", key):
                message = f"{where} has its {what} from '{side.conditions.name}'"
                yield Problem(("event", index, what), f"{message}; give that file a row at the event's time")
    try:
        for _ in side.conditions.changes(tables.duration):
            pass
    except ScenarioError as error:
        yield Problem(("link", name), str(error))


def _leaves_at_known_times(channel: Channel) -> bool:
    """Whether it is known as a packet enters the queue when it leaves."""
    drop_tail = channel.queue is None or channel.queue.kind == "drop-tail"
    return drop_tail and not (channel.burst or channel.duplicate or channel.reorder)


_LINK_CHANGES = ("rate", "delay", "loss", "queue", "up")
_INTERFACE_CHANGES = ("up", "backup", "migrate_to")
_SWITCH_CHANGES = ("up",)


def _given(event: Event) -> list[str]:
    changes = dict.fromkeys(_LINK_CHANGES + _INTERFACE_CHANGES)
    return [name for name in changes if getattr(event, name) is not None]


def _events(tables: Tables) -> Iterator[Problem]:
    for index, event in enumerate(tables.event):
        path = ("event", index)
        if sum(each is not None for each in (event.link, event.interface, event.switch)) != 1:
            yield Problem(path, "an event is of either a 'link', an 'interface' or a 'switch'")
            continue
        allowed: tuple[str, ...]
        if event.link is not None:
            allowed, what = _LINK_CHANGES, "a link"
        elif event.interface is not None:
            allowed, what = _INTERFACE_CHANGES, "an interface"
        else:
            allowed, what = _SWITCH_CHANGES, "a switch"
        given = _given(event)
        for name in given:
            if name not in allowed:
                yield Problem((*path, name), f"'{name}' is nothing that changes of {what}")
        if not given:
            yield Problem(path, f"the event changes nothing; give one of {', '.join(allowed)}")
        if event.link is not None and event.link not in tables.link:
            yield _unknown((*path, "link"), "link", event.link, tables.link)
        if event.switch is not None:
            known = {**tables.router, **tables.switch}
            if event.switch not in known:
                yield _unknown((*path, "switch"), "router or switch", event.switch, known)
            if event.direction != "both":
                yield Problem((*path, "direction"), "'direction' is of links, not of switches")
        if event.interface is not None:
            if event.direction != "both":
                yield Problem((*path, "direction"), "'direction' is of links, not of interfaces")
            host, interface = split_end(event.interface)
            if host not in tables.host:
                yield _unknown((*path, "interface"), "host", host, tables.host)
            elif not interface:
                yield Problem((*path, "interface"), f"name an interface of '{host}', such as '{host}:eth0'")


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
            yield _unknown(("bridging", "priority", name), "router or switch", name, known)
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
            yield _unknown(("route", index, "node"), "host or router", route.node, known)
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
                path = ("link", name, *_written(link, key, "mtu"))
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
                yield _unknown(("event", index, "interface"), "interface", event.interface, ends)
            if event.migrate_to is not None:
                yield from _migration(("event", index, "migrate_to"), event, known.get(host, []))
    for index, route in enumerate(tables.route):
        if route.interface not in known.get(route.node, []):
            path = ("route", index, "interface")
            yield _unknown(path, f"interface of '{route.node}'", route.interface, known.get(route.node, []))


def _migration(path: Path, event: Event, known: list[str]) -> Iterator[Problem]:
    assert event.interface is not None
    host, interface = split_end(event.interface)
    if event.migrate_to not in known:
        yield _unknown(path, f"interface of '{host}'", str(event.migrate_to), known)
    elif event.migrate_to == interface:
        yield Problem(path, f"paths of '{event.interface}' are there already; name another interface of '{host}'")


_WRITTEN: tuple[Callable[[Tables], Iterator[Problem]], ...] = (_made_links, _matrices, _ways, _flows)
"""Checks of what stands for many; the others are of the many."""

_NAMING: tuple[Callable[[Tables], Iterator[Problem]], ...] = (
    _node_names,
    _application_names,
    _link_ends,
    _mtus,
    _queues,
    _bypasses,
    _bursts,
    _traces,
    _wifi,
    _application_hosts,
    _application_times,
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
    _ipv6_mtus,
    _made_interfaces,
)
