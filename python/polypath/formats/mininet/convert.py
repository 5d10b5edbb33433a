"""Conversion of a topology class's graph to a scenario."""

from __future__ import annotations

import ipaddress
import itertools
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from polypath.formats.mininet import reach, tc
from polypath.formats.mininet.asked import Asked
from polypath.formats.mininet.classes import link_options, role
from polypath.formats.mininet.process import Described, Link, Node
from polypath.scenario import Scenario
from polypath.scenario.errors import ScenarioError
from polypath.scenario.fields import NAME_PATTERN
from polypath.units import nearest

#: Mininet's ipBase, from which hosts get an address each in the natural order of their names.
FIRST_ADDRESS: Final = ipaddress.IPv4Address("10.0.0.0")
#: The prefix length that Mininet gives an address without one (mininet/node.py `Node.setIP`).
PREFIX_LENGTH: Final = 8
#: The option of a host that a file built by hand has turned into a router (standin/mininet/_net.py).
FORWARDS: Final = "_forwards"
#: How long Mininet's iperf test sends.
IPERF_S: Final = 5
_NAME = re.compile(NAME_PATTERN)
#: What a file gives an interface that is to have no address.
_NO_ADDRESS: Final = ("", "0.0.0.0", "0.0.0.0/0", "0.0.0.0/8")
_SILENT: Final = {
    "mac": "there are no Ethernet addresses",
    "cpu": "hosts take no processor time",
    "cores": "hosts take no processor time",
    "sched": "hosts take no processor time",
    "period_us": "hosts take no processor time",
    "defaultRoute": "packets take a path of fewest hops",
    "dpid": "a scenario numbers its switches itself",
    "protocols": "without [controller] switches forward along shortest paths",
    "failMode": "without [controller] switches forward along shortest paths",
    "stp": "without [controller] switches forward along shortest paths",
}
"""Options of nodes without effect, and why."""


@dataclass(frozen=True)
class Wanted:
    """The applications that are asked for."""

    #: Client and server of a transfer as of Mininet's command iperf.
    iperf: tuple[str, str] | None = None
    #: A ping from each host to each other.
    pingall: bool = False


NOTHING: Final = Wanted()


@dataclass
class _End:
    """A node's interface on a link."""

    node: str
    port: int
    interface: str
    options: Mapping[str, Any]
    line: int | None
    link: int


def convert(
    found: Described, file: str | None, asked: Asked | None, wanted: Wanted, links: Mapping[str, Any]
) -> tuple[Scenario, str, list[str]]:
    """The scenario, comments for the end of its file, and warnings; raises ScenarioError."""
    return _Converter(found, file, asked, links).scenario(wanted)


@dataclass
class _Converter:
    found: Described
    file: str | None
    asked: Asked | None
    #: Options of links without a class of their own.
    defaults: Mapping[str, Any]
    ends: dict[str, list[_End]] = field(default_factory=lambda: defaultdict(list))
    notes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Differences, each with the nodes or links that it is about."""

    def scenario(self, wanted: Wanted) -> tuple[Scenario, str, list[str]]:
        nodes = sorted(self.found.nodes, key=lambda node: _natural(node.name))
        roles = {node.name: self._role(node) for node in nodes}
        options = {node.name: {**roles[node.name][1], **node.options} for node in nodes}
        kinds = {name: kind for name, (kind, _) in roles.items()}
        links = self._links(kinds)
        tables = self._nodes(nodes, kinds, options)
        self._require_hosts(kinds, wanted)
        title = self.asked.text if self.asked is not None and self.asked.text else self.found.name
        of = "" if self.file is None else f" of {Path(self.file).name}"
        data = {
            "name": re.sub(r"[^A-Za-z0-9_-]+", "-", title)[:63].strip("-") or "mininet",
            "description": f"Mininet's topology {title}{of}",
            "defaults": {"profile": "linux"},
            **tables,
            "link": links,
            "application": _applications(wanted),
        }
        try:
            made = Scenario.from_data(data)
        except ScenarioError as error:
            for one in error.errors:
                one.file = one.file or self.file
            raise
        hosts = [name for name, kind in kinds.items() if kind == "host"]
        return made, "" if data["application"] else _suggestion(hosts), self._warnings(kinds)

    def _fault(self, line: int | None, what: str) -> Any:
        def made(message: str, hint: str | None = None) -> ScenarioError:
            place = self.file or (None if self.asked is None else f"--topo {self.asked.text}")
            return ScenarioError(f"{what}: {message}", place, line, hint)

        return made

    def _role(self, node: Node) -> tuple[str, dict[str, Any]]:
        fault = self._fault(node.line, node.name or "''")
        if not _NAME.fullmatch(node.name):
            raise fault("a name in a scenario is of letters, digits, '_' and '-', at most 63 of them")
        kind, options = role(node.options.get("cls"), switch=bool(node.options.get("isSwitch")), fault=fault)
        return ("router" if kind == "host" and node.options.get(FORWARDS) else kind), options

    def _links(self, kinds: Mapping[str, str]) -> dict[str, Any]:
        links: dict[str, Any] = {}
        for number, link in enumerate(self.found.links):
            fault = self._fault(link.line, f"{link.options['node1']}-{link.options['node2']}")
            ends = [self._end(number, link, side, kinds) for side in (1, 2)]
            if ends[0].node == ends[1].node:
                raise fault("both ends are the same node")
            own, unshaped = link_options(link.options, fault)
            options = own if own.get("cls") is not None else {**self.defaults, **own}
            name = _unique(_between(ends), links)
            shapes = []
            for end in ends:
                given = {**end.options, **{key: value for key, value in options.items() if value is not None}}
                if unshaped and any(name in given for name in (*tc.SHAPING, *tc.SWITCHES)):
                    self.notes["plain links of Mininet have no rate, delay, loss or queue"].append(name)
                    given = {key: value for key, value in given.items() if key not in (*tc.SHAPING, *tc.SWITCHES)}
                shapes.append(tc.shape(given, fault))
                ignored = [key for key in tc.IGNORED if key in given]
                for note in (*shapes[-1].notes, *(f"'{key}' of a link has no effect" for key in ignored)):
                    self.notes[note].append(name)
            links[name] = {"ends": [f"{end.node}:{end.interface}" for end in ends], **_both(shapes, ends, kinds)}
            for end in ends:
                self.ends[end.node].append(end)
        return links

    def _end(self, number: int, link: Link, side: int, kinds: Mapping[str, str]) -> _End:
        node, port = link.options[f"node{side}"], link.options[f"port{side}"]
        fault = self._fault(link.line, "addLink")
        if node not in kinds:
            hint = nearest(str(node), kinds)
            there = "" if hint else f"; there is {_some(list(kinds))}"
            raise fault(f"no node is named '{node}'{there}", hint)
        if not isinstance(port, int) or isinstance(port, bool) or port < 0:
            raise fault(f"port{side}={port!r}: expected a whole number, at least 0")
        params = link.options.get(f"params{side}")
        if params is not None and not (isinstance(params, dict) and "table" in params):
            raise fault(f"params{side}: expected a table of options")
        interface = link.options.get(f"intfName{side}") or f"eth{port}"
        interface = str(interface).removeprefix(f"{node}-")
        if not _NAME.fullmatch(interface):
            raise fault(f"intfName{side}={interface!r}: a name is of letters, digits, '_' and '-', at most 63 of them")
        for other in self.ends[node]:
            if other.port == port or other.interface == interface:
                raise fault(f"port {port} of '{node}' ({interface}) has a link already")
        options = {} if params is None else params["table"]
        if "ip" in link.options:
            options = {**options, "ip": link.options["ip"]}
        return _End(node, port, interface, options, link.line, number)

    def _nodes(
        self, nodes: Sequence[Node], kinds: Mapping[str, str], options: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, dict[str, Any]]:
        tables: dict[str, dict[str, Any]] = {"host": {}, "router": {}, "switch": {}}
        taken: dict[ipaddress.IPv4Address | ipaddress.IPv6Address, str] = {}
        subnets: list[tuple[str, Any]] = []
        number = 0
        for node in nodes:
            kind = kinds[node.name]
            given = options[node.name]
            self._note_options(node.name, given)
            if kind == "switch":
                tables[kind][node.name] = {}
                continue
            number += 1
            interfaces: dict[str, dict[str, str]] = {}
            for place, end in enumerate(sorted(self.ends[node.name], key=lambda end: end.port)):
                own = given.get("ip") if place == 0 else None
                text = end.options.get("ip") if own is None else own
                text = None if text in _NO_ADDRESS else text
                interfaces[end.interface] = table = {}
                if text is None and place == 0 and kind == "host":
                    text = f"{FIRST_ADDRESS + number}/8"
                if text is None:
                    if kind == "host":
                        self.notes["has no address in Mininet; here it gets one"].append(f"{node.name}:{end.interface}")
                    continue
                line = end.line if own is None else node.line
                at = self._address(text, self._fault(line, node.name))
                if at.ip in taken:
                    raise self._fault(line, node.name)(f"the address {at.ip} belongs to {taken[at.ip]} already")
                taken[at.ip] = f"{node.name}:{end.interface}"
                subnets.append((f"{node.name}:{end.interface}", at.network))
                table["address"] = str(at.ip)
            tables[kind][node.name] = {"interface": {name: each for name, each in interfaces.items() if each}}
        self._note_reach(kinds, subnets)
        return tables

    def _note_reach(self, kinds: Mapping[str, str], subnets: Sequence[tuple[str, Any]]) -> None:
        """Subnets that only switches lie between, and hosts that others would need as routers."""
        ends = [[(link.options["node1"], one), (link.options["node2"], two)] for link, one, two in self._pairs()]
        segments = reach.joined(ends, {name for name, kind in kinds.items() if kind == "switch"})
        for segment in dict.fromkeys(segments.values()):
            own = list(dict.fromkeys(network for end, network in subnets if segments.get(end) == segment))
            apart = [one for one in own if not any(_overlap(one, other) for other in own)]
            if len(apart) > 1 and "router" not in kinds.values():
                note = "Mininet's switches do not join these subnets; here their hosts reach each other"
                self.notes[note] += map(str, apart)
        for name, cut in reach.in_between(ends, kinds):
            note = f"does not forward in the file, so that {' and '.join(cut)} do not reach each other"
            self.notes[f"{note}; a class that enables ip_forward is a router"].append(name)

    def _pairs(self) -> list[tuple[Link, str, str]]:
        """Each link with the names of its two interfaces."""
        own: dict[int, list[str]] = defaultdict(list)
        for ends in self.ends.values():
            for end in ends:
                own[end.link].append(f"{end.node}:{end.interface}")
        found = []
        for number, link in enumerate(self.found.links):
            first = next(each for each in own[number] if each.startswith(f"{link.options['node1']}:"))
            found.append((link, first, next(each for each in own[number] if each != first)))
        return found

    def _address(self, text: Any, fault: Any) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
        try:
            bare = "/" not in str(text) and isinstance(ipaddress.ip_address(str(text)), ipaddress.IPv4Address)
            return ipaddress.ip_interface(f"{text}/{PREFIX_LENGTH}" if bare else str(text))
        except ValueError:
            raise fault(f"ip={text!r}: expected an address such as '10.0.0.1/24'") from None

    def _note_options(self, name: str, given: Mapping[str, Any]) -> None:
        for key, value in given.items():
            if key in ("isSwitch", "cls", "ip", "inNamespace", FORWARDS) or value is None:
                continue
            reason = _SILENT.get(key, "an import does not know it")
            self.notes[f"'{key}' has no effect: {reason}"].append(name)

    def _require_hosts(self, kinds: Mapping[str, str], wanted: Wanted) -> None:
        hosts = [name for name, kind in kinds.items() if kind == "host"]
        if not hosts:
            raise ScenarioError(f"topology '{self.found.name}' has no host", self.file)
        for name in wanted.iperf or ():
            if name not in hosts:
                hint = nearest(name, hosts)
                there = "" if hint else f"; there is {_some(hosts)}"
                raise ScenarioError(f"no host is named '{name}'{there}", "--iperf", None, hint)
        if wanted.iperf is not None and wanted.iperf[0] == wanted.iperf[1]:
            raise ScenarioError("client and server are the same host", "--iperf")
        if wanted.pingall and len(hosts) < 2:
            raise ScenarioError(f"topology '{self.found.name}' has one host only", "--pingall")

    def _warnings(self, kinds: Mapping[str, str]) -> list[str]:
        found = [f"{_some(list(dict.fromkeys(whose)))}: {note}" for note, whose in self.notes.items()]
        if self.found.left_out:
            found.append(f"left out: {', '.join(self.found.left_out)}")
        if _has_loop(self.found, kinds):
            found.append(
                "the switches have loops, which flood Mininet's learning switches; here packets take one shortest path "
                "(routing = 'ecmp' or 'spread' uses all)"
            )
        return found


def _overlap(one: Any, other: Any) -> bool:
    return bool(one != other and one.version == other.version and one.overlaps(other))


def _both(shapes: Sequence[tc.Shape], ends: Sequence[_End], kinds: Mapping[str, str]) -> dict[str, Any]:
    """A link's keys: what is alike in both directions once, what differs in `forward` and `backward`."""
    sides = []
    for shape, end in zip(shapes, ends, strict=True):
        at_host = shape.at_host is not None and kinds[end.node] == "host"
        sides.append({**shape.keys, **({"queue_at": shape.at_host} if at_host else {})})
    common = {key: value for key, value in sides[0].items() if sides[1].get(key) == value}
    places = [side["queue_at"] for side in sides if "queue_at" in side]
    if len(places) == 1:  # it concerns those directions only that begin at a host
        common["queue_at"] = places[0]
    own = [{key: value for key, value in side.items() if common.get(key) != value} for side in sides]
    return {**common, **({"forward": own[0]} if own[0] else {}), **({"backward": own[1]} if own[1] else {})}


def _applications(wanted: Wanted) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    if wanted.pingall:
        made.append({"name": "pingall", "kind": "ping", "matrix": "all-to-all", "count": 1})
    if wanted.iperf is not None:
        client, server = wanted.iperf
        made.append(
            {
                "name": "iperf",
                "kind": "bulk",
                "client": client,
                "server": server,
                "transport": "tcp",
                "duration": f"{IPERF_S} s",
            }
        )
    return made


def _suggestion(hosts: Sequence[str]) -> str:
    """What Mininet's iperf test would run, as comments."""
    if len(hosts) < 2:
        return ""
    lines = [
        "What runs over it is not part of a topology. As Mininet's iperf:",
        "",
        "[[application]]",
        'kind = "bulk"',
        f'client = "{hosts[0]}"',
        f'server = "{hosts[-1]}"',
        'transport = "tcp"',
        f'duration = "{IPERF_S} s"',
    ]
    return "\n" + "".join(f"# {line}".rstrip() + "\n" for line in lines)


def _has_loop(found: Described, kinds: Mapping[str, str]) -> bool:
    """Whether the links between switches close a circle, two side by side included."""
    root = {name: name for name in kinds}

    def top(name: str) -> str:
        while root[name] != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    for link in found.links:
        ends = link.options["node1"], link.options["node2"]
        if all(kinds[end] == "switch" for end in ends):
            first, second = map(top, ends)
            if first == second:
                return True
            root[first] = second
    return False


def _between(ends: Sequence[_End]) -> str:
    return f"{ends[0].node}-{ends[1].node}"[:50]


def _unique(name: str, taken: Mapping[str, Any]) -> str:
    if name not in taken:
        return name
    return next(f"{name}-{number}" for number in itertools.count(2) if f"{name}-{number}" not in taken)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def _natural(text: str) -> list[Any]:
    return [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", text)]
