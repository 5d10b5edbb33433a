"""Random set-ups of path management: networks, addresses, limits, announcements, backups, and what comes and goes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

#: When the application starts, in ms; and how long it goes on.
STARTS, LASTS = 100, 4000
#: Set-ups below are those of the first campaign, by whose numbers tests and causes name them: what the generator learnt
#: since they do not draw.
FIRST_CAMPAIGN = 1000
#: Times between two events are longer than any exchange takes, in ms.
APART = 400

FLAGS = ("none", "subflow", "subflow", "signal", "signal", "fullmesh", "signal subflow")


@dataclass(frozen=True)
class Drawn:
    """One set-up; its hosts and links begin with its name."""

    number: int
    text: str
    #: What it has, to count by.
    classes: frozenset[str]

    @property
    def name(self) -> str:
        return name_of(self.number)


def name_of(number: int) -> str:
    """How the hosts and links of a set-up begin."""
    return f"n{number}"


class _Hosts:
    """Two hosts, their interfaces and what lies between."""

    def __init__(self, number: int, net: int) -> None:
        self.random, self.name, self.net = Random(number), name_of(number), net
        self.draws_all = number >= FIRST_CAMPAIGN
        self.classes: set[str] = set()
        self.links: list[str] = []
        self.lines: list[str] = []
        self.interfaces: dict[str, list[str]] = {"client": [], "server": []}
        self._families = self.random.choice(("4", "4", "4", "6", "both"))
        self._addresses: dict[tuple[str, str], list[str]] = {}
        #: Of the connection to the second server: from where to where.
        self.way: tuple[str, str] | None = None
        #: Sides whose path manager has endpoints with a task.
        self.managed: list[str] = []
        self._lay()
        if self.draws_all and self.random.random() < 0.2:
            self._add_server()

    @property
    def servers(self) -> list[str]:
        """Each has a connection of the client's."""
        return [side for side in self.interfaces if side != "client"]

    def _policy(self, side: str) -> Iterator[str]:
        random = self.random
        if random.random() < 0.1:
            self.classes.add("denies joins to the first address")
            yield "allow_join_initial_addr_port = false"
        if random.random() < 0.1:
            self.classes.add("default")
            yield 'path_manager = "default"'
            return
        own = [address for face in self.interfaces[side] for address in self._addresses[side, face]]
        if random.random() < 0.3:
            self.classes.add("flags by address")
            chosen = random.sample(own, random.randint(1, len(own)))
            what = f"endpoints = {json.dumps([self._endpoint(address) for address in chosen])}"
        else:
            flags = random.choice(FLAGS)
            self.classes.update(flags.split())
            what = f'flags = "{flags}"'
        if what != 'flags = "none"':
            self.managed.append(side)
        limits = (random.choice((0, 1, 2, 3, 8)), random.choice((0, 1, 2, 8)))
        if 0 in limits or 1 in limits:
            self.classes.add("small limits")
        parameters = f"{what}, subflows = {limits[0]}, add_addr_accepted = {limits[1]}"
        yield f'path_manager = {{ kind = "endpoints", {parameters} }}'

    def _endpoint(self, address: str) -> str:
        flags = self.random.choice(("subflow", "subflow", "signal", "signal", "subflow fullmesh", "subflow signal"))
        # With a port, the first address is another endpoint than the connection's.
        first = any(address in self._addresses[side, "eth0"] for side in self.interfaces)
        if flags == "signal" and (self.draws_all or not first) and self.random.random() < 0.3:
            self.classes.add("first address with a port" if first else "port of its own")
            flags += f" port {self.random.randint(20000, 20010)}"
        return f"{address} {flags}"

    def _lay(self) -> None:
        """Networks of their own, a router between, or both."""
        random = self.random
        kind = random.choice(("apart", "router", "router", "mixed"))
        self.classes.add({"apart": "isolated networks", "router": "one router", "mixed": "both"}[kind])
        if kind != "router":
            for _ in range(random.randint(2, 3)):
                family = self._family()
                one, other = (f"{self.name}-{side}:{self._interface(side, family)}" for side in self.interfaces)
                self._link(one, other)
        if kind != "apart":
            router = f"{self.name}-router"
            self.lines.append(f"[router.{router}]")
            for side in self.interfaces:
                for _ in range(random.randint(1, 3 if kind == "router" else 2)):
                    self._link(f"{self.name}-{side}:{self._interface(side, self._family())}", router)
        if self._families != "4":
            self.classes.add("IPv6")

    def _add_server(self) -> None:
        """On networks of its own, at the router, or both; its connection leaves by the first of its networks."""
        self.classes.add("several servers")
        side, random = "server2", self.random
        self.interfaces[side] = []
        router = f"{self.name}-router"
        at_router = [face for face in self.interfaces["client"] if self._leads(face, router)]
        for _ in range(random.randint(1, 2)):
            if at_router and random.random() < 0.7:
                face, other = random.choice(at_router), router
                family = "both" if len(own := self._addresses["client", face]) > 1 else "46"[":" in own[0]]
            else:
                family = self._family()
                face = self._interface("client", family)
                other = f"{self.name}-client:{face}"
            there = self._interface(side, family)
            self._link(other, f"{self.name}-{side}:{there}")
            self.way = self.way or (self._addresses["client", face][0], self._addresses[side, there][0])

    def _leads(self, face: str, router: str) -> bool:
        return f'ends = ["{self.name}-client:{face}", "{router}"]' in self.lines

    def _family(self) -> str:
        return self.random.choice(("4", "6", "both")) if self._families == "both" else self._families

    def _interface(self, side: str, family: str) -> str:
        face = f"eth{len(self.interfaces[side])}"
        self.interfaces[side].append(face)
        link, host = len(self.links), 1 + list(self.interfaces).index(side)
        both = {"4": f"172.{16 + self.net}.{link}.{host}", "6": f"2001:db8:{self.net:x}:{link:x}::{host:x}"}
        self._addresses[side, face] = list(both.values()) if family == "both" else [both[family]]
        return face

    def _link(self, one: str, other: str) -> None:
        link = f"{self.name}-{len(self.links)}"
        self.links.append(link)
        delay = self.random.choice((2, 5, 11, 23))
        self.lines += [f"[link.{link}]", f'ends = ["{one}", "{other}"]', 'rate = "8 Mbps"', f'delay = "{delay} ms"']

    def written(self) -> Iterator[str]:
        for side, faces in self.interfaces.items():
            yield f"[host.{self.name}-{side}]"
            yield from self._policy(side)
            for face in faces:
                yield f"interface.{face}.address = {json.dumps(self._addresses[side, face])}"
                if self.random.random() < 0.15:
                    self.classes.add("backup interface")
                    yield f"interface.{face}.backup = true"
        yield from self.lines


def _events(hosts: _Hosts) -> Iterator[str]:
    """What comes, goes and changes, one after the other; at most one thing is away at a time."""
    random = hosts.random
    early = random.random() < 0.2
    at = STARTS + (random.choice((0, 3, 30)) if early else APART)
    away: str | None = None
    for _ in range(random.choice((0, 0, 1, 2, 3, 4))):
        side = random.choice(tuple(hosts.interfaces))
        face = f'interface = "{hosts.name}-{side}:{random.choice(hosts.interfaces[side])}"'
        kind = "back" if away else random.choice(("interface", "interface", "link", "backup"))
        if kind == "back":
            change, away = f"{away}\nup = true", None
        elif kind == "backup":
            hosts.classes.add("backup event")
            change = f"{face}\nbackup = {str(random.random() < 0.7).lower()}"
        else:
            away = face if kind == "interface" else f'link = "{random.choice(hosts.links)}"'
            hosts.classes.add("lost SYNs" if early and kind == "link" else f"{kind} away")
            change = f"{away}\nup = false"
        yield f'[[event]]\nat = "{at} ms"\n{change}'
        at, early = at + random.choice((APART, 700, 1300)), False
    if hosts.draws_all and hosts.managed and random.random() < 0.25:
        for change in _endpoints_change(hosts):
            if at < STARTS + LASTS - APART:
                yield f'[[event]]\nat = "{at} ms"\n{change}'
            at += random.choice((APART, 700))


def _endpoints_change(hosts: _Hosts) -> Iterator[str]:
    """One is for other subflows than before, or all are gone; then that again, or an interface goes and comes back."""
    random = hosts.random
    side = random.choice(hosts.managed)
    face = f'interface = "{hosts.name}-{side}:{random.choice(hosts.interfaces[side])}"'
    if random.random() < 0.5:
        hosts.classes.add("flushed")
        yield f'host = "{hosts.name}-{side}"\nflush_endpoints = true'
        yield f"{face}\nup = false"
        yield f"{face}\nup = true"
        return
    hosts.classes.add("fullmesh event")
    fullmesh = random.random() < 0.6
    yield f"{face}\nfullmesh = {str(fullmesh).lower()}"
    yield f"{face}\nfullmesh = {str(not fullmesh).lower()}"


def drawn(number: int, net: int = 1) -> Drawn:
    """The set-up of a number; `net`, from 1 to 15, tells its addresses from those of others."""
    hosts = _Hosts(number, net)
    body = list(hosts.written())
    applications = [line for side in hosts.servers for line in _application(hosts, side)]
    text = "\n".join([*body, *applications, *_events(hosts)])
    return Drawn(number, text, frozenset(hosts.classes))


def _application(hosts: _Hosts, server: str) -> Iterator[str]:
    random = hosts.random
    yield from ("[[application]]", f'name = "{hosts.name}-{server}"', 'kind = "stream"')
    yield from ('rate = "2 Mbps"', 'block = "10 kB"', f"reverse = {str(random.random() < 0.5).lower()}")
    yield from (f'client = "{hosts.name}-client"', f'server = "{hosts.name}-{server}"')
    if server != "server" and hosts.way:
        yield from (f'source = "{hosts.way[0]}"', f'destination = "{hosts.way[1]}"')
    start = STARTS if server == "server" else STARTS + random.choice((0, 0, 600))
    yield from (f'start = "{start} ms"', f'duration = "{STARTS + LASTS - start} ms"')


def scenario(numbers: Sequence[int]) -> tuple[str, list[Drawn]]:
    """One scenario of several set-ups, which have nothing in common."""
    parts = [drawn(number, net) for net, number in enumerate(numbers, 1)]
    head = [f'duration = "{STARTS + LASTS + 1500} ms"', "[defaults]", 'profile = "linux"']
    return "\n".join([*head, *(part.text for part in parts)]) + "\n", parts
