"""BCube, whose servers forward."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from polypath.scenario.fields import fault
from polypath.scenario.topologies.base import Network, Topology, Way

_MOST_HOSTS = 10_000


class BCube(Topology):
    """n^(k+1) servers with k+1 links each, one to a switch of each level; servers forward, switches join n servers."""

    kind: Literal["bcube"]
    source: ClassVar[str] = "Guo et al., SIGCOMM 2009, section 3"
    n: int = Field(default=4, ge=2, le=64)
    """Ports of a switch."""
    k: int = Field(default=1, ge=0, le=7)
    """The highest level; a server has k+1 links and as many disjoint paths to any other."""
    ways: int = Field(default=0, ge=0, le=64)
    """Subflows of a connection between two servers, instead of a path manager. The first k+1 take the paths of the
    source's BuildPathSet, shortest first, which share no link. Further ones use the other pairs of interfaces. A
    single-path connection takes the first. 0: addresses and subflows are unaffected."""

    @model_validator(mode="after")
    def _size(self) -> BCube:
        if (hosts := self.n ** (self.k + 1)) > _MOST_HOSTS:
            raise fault(f"a BCube of n = {self.n} and k = {self.k} has {hosts:,} servers; at most {_MOST_HOSTS:,}")
        if self.ways > (pairs := (self.k + 1) ** 2):
            raise fault(f"two servers have {self.k + 1} interfaces each, and so {pairs} ways, not {self.ways}")
        return self

    def made(self) -> Network:
        n, levels = self.n, range(self.k + 1)
        hosts = n ** (self.k + 1)
        made = Network(
            [f"h{host}" for host in range(hosts)],
            [f"level{level}-switch{number}" for level in levels for number in range(n**self.k)],
            forwarding=True,
        )
        for host in range(hosts):
            for level in levels:
                above, below = divmod(host, n ** (level + 1))
                switch = above * n**level + below % n**level
                made.links[f"h{host}-eth{level}"] = self.access_link(f"h{host}", f"level{level}-switch{switch}")
        return made

    @property
    def opens_subflows(self) -> bool:
        return self.ways > 0

    def between(self, client: str, server: str) -> Sequence[Way]:
        if not self.ways:
            return ()
        here, there = int(client[1:]), int(server[1:])
        levels = range(self.k, -1, -1)
        differing = [level for level in levels if self._digit(here, level) != self._digit(there, level)]
        found: dict[tuple[int, int], tuple[int, Way]] = {}
        for first in levels:
            order = [level % (self.k + 1) for level in range(first, first - self.k - 1, -1)]
            if first in differing:
                order = [level for level in order if level in differing]
                found[first, order[-1]] = (len(order), self._corrected(here, there, order))
            else:  # over a neighbour of that level, and back to it at the end
                found[first, first] = (len(differing) + 2, Way(f"{client}-eth{first}", f"{server}-eth{first}"))
        ways = [way for _, way in sorted(found.values(), key=lambda one: one[0])]
        others = [(first, last) for first in levels for last in levels if (first, last) not in found]
        others.sort(key=lambda pair: _hops(pair, differing))
        ways += [Way(f"{client}-eth{first}", f"{server}-eth{last}") for first, last in others]
        return ways[: self.ways]

    def _digit(self, host: int, level: int) -> int:
        below: int = self.n**level
        return host // below % self.n

    def _corrected(self, here: int, there: int, order: Sequence[int]) -> Way:
        """The way that corrects one digit after the other. With three or less no other is as short."""
        turns = []
        host = here
        for back, on in itertools.pairwise(order):
            host += (self._digit(there, back) - self._digit(here, back)) * self.n**back
            turns.append((f"h{host}", f"h{host}-eth{on}", f"h{host}-eth{back}"))
        return Way(f"h{here}-eth{order[0]}", f"h{there}-eth{order[-1]}", tuple(turns) if len(order) > 3 else ())

    def picture(self) -> str:
        made = self.network
        each = self.n**self.k
        lines = [
            f"level{level}-switch0 .. {each - 1}   {self.n} servers each, whose numbers"
            f" in base {self.n} differ in digit {level} alone"
            for level in reversed(range(self.k + 1))
        ]
        lines += [
            f"h0 .. h{len(made.hosts) - 1}   eth0 to level 0"
            + (f" .. eth{self.k} to level {self.k}" if self.k else ""),
            f"{len(made.hosts)} servers that forward, {len(made.routers)} switches, {len(made.links)} links",
        ]
        return "\n".join(lines)


def _hops(pair: tuple[int, int], differing: Sequence[int]) -> int:
    """How many switches the shortest way passes that begins and ends at these levels."""
    first, last = pair
    wrong = sum(level not in differing for level in pair)
    if first == last:
        return len(differing) + 1
    return len(differing) + (3 if wrong == 1 and len(differing) == 1 else 2 * wrong)
