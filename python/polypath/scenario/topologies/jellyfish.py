"""Jellyfish, switches joined at random."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from polypath.scenario import draws
from polypath.scenario.fields import fault
from polypath.scenario.topologies.base import Network, Topology

_TRIES = 100


class Jellyfish(Topology):
    """A random regular graph of switches: each is joined to `degree` others, drawn by `seed`, and to its own hosts."""

    kind: Literal["jellyfish"]
    source: ClassVar[str] = "Singla, Hong, Popa and Godfrey, NSDI 2012"
    switches: int = Field(default=20, ge=2, le=2000)
    """Switches."""
    degree: int = Field(default=4, ge=1, le=64)
    """Links of a switch to others; if switches times degree is odd, one switch has one less."""
    hosts: int = Field(default=1, ge=1, le=256)
    """Hosts at each switch."""
    seed: int = Field(default=1, ge=0, lt=2**63)
    """Seed of the graph. It differs from the scenario's seed, so all seeds of a sweep have the same network."""

    @model_validator(mode="after")
    def _degree(self) -> Jellyfish:
        if self.degree >= self.switches:
            message = f"a switch is joined to at most {self.switches - 1} others here, and the degree is {self.degree}"
            raise fault(message, at=("degree",))
        if self.degree == 1 and self.switches > 2:
            message = f"with one link each, {self.switches} switches are not connected; take a degree of 2 or more"
            raise fault(message, at=("degree",))
        return self

    def made(self) -> Network:
        link, access_link = self.link, self.access_link
        made = Network(
            [f"h{number}" for number in range(self.switches * self.hosts)],
            [f"s{number}" for number in range(self.switches)],
        )
        for a, b in self._edges():
            made.links[f"s{a}-s{b}"] = link(f"s{a}", f"s{b}")
        for number, host in enumerate(made.hosts):
            made.links[host] = access_link(host, f"s{number // self.hosts}")
        return made

    def _edges(self) -> list[tuple[int, int]]:
        """The first connected graph of a row of random ones."""
        for attempt in range(_TRIES):
            edges = _Growing(self.switches, self.degree, f"jellyfish {self.seed} {attempt}").edges()
            if _connected(self.switches, edges):
                return edges
        raise fault(f"no connected network of {self.switches} switches and degree {self.degree} was found")

    def picture(self) -> str:
        made = self.network
        return "\n".join(
            (
                f"s0 .. s{self.switches - 1}",
                f"   each to {self.degree} others, drawn by seed {self.seed}",
                f"   {self.hosts} host{'s' * (self.hosts > 1)} at each",
                f"h0 .. h{len(made.hosts) - 1}",
                f"{len(made.hosts)} hosts, {len(made.routers)} switches, {len(made.links)} links",
            )
        )


class _Growing:
    """Joins pairs of switches with free ports as long as there are any.

    A switch left with two ports is inserted into a link between two others, as in the source. Two neighbouring switches
    left with one port each do so together.
    """

    def __init__(self, switches: int, degree: int, stream: str) -> None:
        self._free = dict.fromkeys(range(switches), degree)
        self._near: list[set[int]] = [set() for _ in range(switches)]
        self._stream = stream
        self._drawn = 0

    def edges(self) -> list[tuple[int, int]]:
        while pair := self._pair():
            self._join(*pair)
        while len(ends := [switch for switch, ports in self._free.items() for _ in range(ports)]) >= 2:
            if not self._insert(ends[0], ends[1]):
                break
        return sorted((a, b) for a, near in enumerate(self._near) for b in near if a < b)

    def _below(self, count: int) -> int:
        self._drawn += 1
        return draws.below(count, f"{self._stream} {self._drawn}")

    def _pair(self) -> tuple[int, int] | None:
        open_ = [switch for switch, ports in self._free.items() if ports]
        for _ in range(2 * len(open_)):
            a, b = open_[self._below(len(open_))], open_[self._below(len(open_))]
            if self._apart(a, b):
                return a, b
        pairs = [(a, b) for a in open_ for b in open_ if a < b and self._apart(a, b)]
        return pairs[self._below(len(pairs))] if pairs else None

    def _apart(self, a: int, b: int) -> bool:
        return a != b and b not in self._near[a]

    def _join(self, a: int, b: int) -> None:
        for one, other in ((a, b), (b, a)):
            self._near[one].add(other)
            self._free[one] -= 1

    def _insert(self, one: int, other: int) -> bool:
        """Takes a link apart and joins its ends to the two given, which may be the same switch."""
        links = [(a, b) for a, near in enumerate(self._near) for b in sorted(near)]
        links = [(a, b) for a, b in links if self._apart(one, a) and self._apart(other, b)]
        if not links:
            return False
        a, b = links[self._below(len(links))]
        for near, far in ((a, b), (b, a)):
            self._near[near].remove(far)
            self._free[near] += 1
        self._join(one, a)
        self._join(other, b)
        return True


def _connected(switches: int, edges: list[tuple[int, int]]) -> bool:
    root = list(range(switches))

    def find(switch: int) -> int:
        while root[switch] != switch:
            root[switch] = root[root[switch]]
            switch = root[switch]
        return switch

    for a, b in edges:
        root[find(a)] = find(b)
    return len({find(switch) for switch in range(switches)}) == 1
