"""The common part of all topologies: equal links, and names of nodes and links that follow from the size."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

from polypath.scenario.network import Channel, Link


@dataclass
class Network:
    """What a topology makes. A host's interfaces are eth0, eth1, .. in the order of its links."""

    hosts: list[str] = field(default_factory=list)
    routers: list[str] = field(default_factory=list)
    links: dict[str, Link] = field(default_factory=dict)
    forwarding: bool = False
    """Whether the hosts forward for others."""


@dataclass(frozen=True)
class Way:
    """A way between two hosts, by the names of the links at its ends."""

    client: str
    server: str
    turns: tuple[tuple[str, str, str], ...] = ()
    """Hosts on the way for which shortest paths leave a choice, in order: each with its links on and back."""


class Topology(Channel):
    """A network by its kind and size; the keys of a link hold for all of its links."""

    source: ClassVar[str]
    """Where it is described."""
    access: Channel = Channel.empty()
    """What differs on the links of hosts."""

    @property
    def network(self) -> Network:
        """The hosts, routers and links; not to be changed, because equal topologies share them."""
        return _network(self)

    @abstractmethod
    def made(self) -> Network:
        """Makes the hosts, routers and links."""

    @abstractmethod
    def picture(self) -> str:
        """The topology as text, a few lines at any size."""

    @property
    def opens_subflows(self) -> bool:
        """Whether `between` says of connections which subflows they have."""
        return False

    def between(self, client: str, server: str) -> Sequence[Way]:
        """The ways that a connection between two of its hosts takes, the first subflow's first; none: it says nothing
        of them."""
        return ()

    @property
    def link(self) -> Links:
        """Makes the links between two routers."""
        return Links(self.given())

    @property
    def access_link(self) -> Links:
        """Makes the links to hosts."""
        return Links({**self.given(), **self.access.given()})


@lru_cache(maxsize=4)
def _network(topology: Topology) -> Network:
    return topology.made()


class Links:
    """Links that differ in their ends alone."""

    def __init__(self, channel: Mapping[str, object]) -> None:
        self._like = Link.model_construct(_fields_set={"ends", *channel}, **channel)

    def __call__(self, *ends: str) -> Link:
        """The link between two nodes."""
        return self._like.model_copy(update={"ends": list(ends)})
