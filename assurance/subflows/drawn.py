"""Random set-ups of path management: networks, addresses, limits, announcements, backups, and what comes and goes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

#: When the application starts, in ms; and how long it goes on.
STARTS, LASTS = 100, 4000
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

    def __init__(self, random: Random, name: str, net: int) -> None:
        self.random, self.name, self.net = random, name, net
        self.classes: set[str] = set()
        self.links: list[str] = []
        self.lines: list[str] = []
        self.interfaces: dict[str, list[str]] = {"client": [], "server": []}
        self._families = random.choice(("4", "4", "4", "6", "both"))
        self._addresses: dict[tuple[str, str], list[str]] = {}
        self._lay()

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
        limits = (random.choice((0, 1, 2, 3, 8)), random.choice((0, 1, 2, 8)))
        if 0 in limits or 1 in limits:
            self.classes.add("small limits")
        parameters = f"{what}, subflows = {limits[0]}, add_addr_accepted = {limits[1]}"
        yield f'path_manager = {{ name = "endpoints", {parameters} }}'

    def _endpoint(self, address: str) -> str:
        flags = self.random.choice(("subflow", "subflow", "signal", "signal", "subflow fullmesh", "subflow signal"))
        # With a port, the first address is another endpoint than the connection's.
        first = any(address in self._addresses[side, "eth0"] for side in self.interfaces)
        if flags == "signal" and not first and self.random.random() < 0.3:
            self.classes.add("port of its own")
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
                ends = [self._interface(side, family) for side in self.interfaces]
                self._link(*(f"{self.name}-{side}:{face}" for side, face in zip(self.interfaces, ends, strict=True)))
        if kind != "apart":
            router = f"{self.name}-router"
            self.lines.append(f"[router.{router}]")
            for side in self.interfaces:
                for _ in range(random.randint(1, 3 if kind == "router" else 2)):
                    self._link(f"{self.name}-{side}:{self._interface(side, self._family())}", router)
        if self._families != "4":
            self.classes.add("IPv6")

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


def drawn(number: int, net: int = 1) -> Drawn:
    """The set-up of a number; `net`, from 1 to 15, tells its addresses from those of others."""
    hosts = _Hosts(Random(number), name_of(number), net)
    body = list(hosts.written())
    application = [
        *("[[application]]", f'name = "{hosts.name}"', 'kind = "stream"', 'rate = "2 Mbps"', 'block = "10 kB"'),
        *(f'client = "{hosts.name}-client"', f'server = "{hosts.name}-server"', f'duration = "{LASTS} ms"'),
        *(f'start = "{STARTS} ms"', f"reverse = {str(hosts.random.random() < 0.5).lower()}"),
    ]
    text = "\n".join([*body, *application, *_events(hosts)])
    return Drawn(number, text, frozenset(hosts.classes))


def scenario(numbers: Sequence[int]) -> tuple[str, list[Drawn]]:
    """One scenario of several set-ups, which have nothing in common."""
    parts = [drawn(number, net) for net, number in enumerate(numbers, 1)]
    head = [f'duration = "{STARTS + LASTS + 1500} ms"', "[defaults]", 'profile = "linux"']
    return "\n".join([*head, *(part.text for part in parts)]) + "\n", parts
