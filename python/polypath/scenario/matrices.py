"""Traffic matrices: the pairs of senders and receivers among all hosts. Each has a class, and a name in the union
below.

The pairs are drawn from the scenario's seed, so that each seed of a sweep has others.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Annotated, Literal

from pydantic import Field

from polypath.scenario import draws, kinds
from polypath.scenario.base import Model
from polypath.scenario.fields import Name, OrText, Share

Pair = tuple[str, str]
"""A client and a server."""

Near = Callable[[str], Sequence[str]]
"""Of a host those that are one switch away, or one link."""


class Matrix(Model):
    """Pairs of hosts, by the kind of traffic."""

    @abstractmethod
    def pairs(self, hosts: list[str], stream: str, near: Near) -> list[Pair]:
        """Client and server of each connection; what is random is drawn from `stream`. Raises ValueError for a network
        that is too small, with what it lacks."""


class Permutation(Matrix):
    """Every host is the client of one other and the server of one other."""

    kind: Literal["permutation"]

    def pairs(self, hosts: list[str], stream: str, near: Near) -> list[Pair]:
        servers = draws.permutation(len(hosts), stream)
        return [(client, hosts[server]) for client, server in zip(hosts, servers, strict=True)]


class OneToMany(Matrix):
    """Every host is the client of several others, drawn for each, as in a distributed file system."""

    kind: Literal["one-to-many"]
    receivers: int = Field(default=12, ge=1, le=10_000)
    """Servers of each host (12 in Raiciu et al., NSDI 2011)."""
    to: Literal["any", "neighbours"] = "any"
    """The hosts from which they are drawn: all others, or those one switch away."""

    def pairs(self, hosts: list[str], stream: str, near: Near) -> list[Pair]:
        _enough(hosts, self.receivers + 1)
        found: list[Pair] = []
        for number, client in enumerate(hosts):
            others = _others(hosts, client) if self.to == "any" else list(near(client))
            if len(others) < self.receivers:
                raise ValueError(f"it needs {self.receivers} neighbours, and {client} has {len(others)}")
            found += [(client, server) for server in draws.some(others, self.receivers, f"{stream} {number}")]
        return found


class Sparse(Matrix):
    """A share of the hosts are clients of one other each, which is drawn: several may have the same."""

    kind: Literal["sparse"]
    share: Share = 0.3
    """Fraction of the hosts that are clients (30 % in Raiciu et al., NSDI 2011)."""
    distinct: bool = False
    """Whether all servers are different: the pairs then belong to a permutation, as in htsim."""
    clients: Literal["drawn", "first"] = "drawn"
    """The clients: drawn from all hosts, or consecutive from the first on, as when jobs fill rack after rack."""

    def pairs(self, hosts: list[str], stream: str, near: Near) -> list[Pair]:
        if self.share == 0:
            raise ValueError("a share of 0 % is no host")
        count = max(1, round(self.share * len(hosts)))
        clients = hosts[:count] if self.clients == "first" else draws.some(hosts, count, f"{stream} clients")
        chosen = sorted(clients, key=hosts.index)
        if self.distinct:
            servers = draws.permutation(len(hosts), stream)
            return [(client, hosts[servers[hosts.index(client)]]) for client in chosen]
        return [(client, draws.some(_others(hosts, client), 1, f"{stream} {client}")[0]) for client in chosen]


class Incast(Matrix):
    """Many hosts send to one."""

    kind: Literal["incast"]
    senders: int | None = Field(default=None, ge=1, le=10_000)
    """Number of senders, drawn; default: all others."""
    receiver: Name | None = None
    """The receiving host; default: drawn."""

    def pairs(self, hosts: list[str], stream: str, near: Near) -> list[Pair]:
        if self.receiver is not None and self.receiver not in hosts:
            raise ValueError(f"there is no host '{self.receiver}' to receive")
        _enough(hosts, (self.senders or 1) + 1)
        receiver = self.receiver or hosts[draws.below(len(hosts), f"{stream} receiver")]
        others = _others(hosts, receiver)
        drawn = others if self.senders is None else draws.some(others, self.senders, f"{stream} senders")
        return [(client, receiver) for client in sorted(drawn, key=hosts.index)]


class Stride(Matrix):
    """Host i is the client of host i + step, counted round (Al-Fares et al., NSDI 2010)."""

    kind: Literal["stride"]
    step: int = Field(default=1, ge=1, le=10_000)
    """Distance from a host to its server."""

    def pairs(self, hosts: list[str], stream: str, near: Near) -> list[Pair]:
        if self.step % len(hosts) == 0:
            raise ValueError(f"a step of {self.step} among {len(hosts)} hosts leads from each to itself")
        return [(client, hosts[(number + self.step) % len(hosts)]) for number, client in enumerate(hosts)]


class AllToAll(Matrix):
    """Every host is the client of every other."""

    kind: Literal["all-to-all"]

    def pairs(self, hosts: list[str], stream: str, near: Near) -> list[Pair]:
        return list(itertools.permutations(hosts, 2))


def _others(hosts: list[str], host: str) -> list[str]:
    return [each for each in hosts if each != host]


def _enough(hosts: list[str], needed: int) -> None:
    if len(hosts) < needed:
        raise ValueError(f"it needs {needed} hosts, and there are {len(hosts)}")


_Kind = Annotated[Permutation | OneToMany | Sparse | Incast | Stride | AllToAll, Field(discriminator="kind")]

AnyMatrix = Annotated[
    _Kind,
    kinds.FROM_NAME,
    kinds.TO_NAME,
    OrText(kinds.names(_Kind), "permutation", "incast"),
]
"""A traffic matrix by its name, or with its parameters."""
