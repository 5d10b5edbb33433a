"""What all topologies have in common: links alike, nodes and links with names that follow from the size."""

from __future__ import annotations

from abc import abstractmethod
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

    def link(self, *ends: str) -> Link:
        """A link between two routers."""
        return _link(ends, {name: getattr(self, name) for name in Channel.model_fields})

    def access_link(self, *ends: str) -> Link:
        """A link to a host."""
        common = {name: getattr(self, name) for name in Channel.model_fields}
        own = {name: value for name in Channel.model_fields if (value := getattr(self.access, name)) is not None}
        return _link(ends, {**common, **own})


@lru_cache(maxsize=4)
def _network(topology: Topology) -> Network:
    return topology.made()


def _link(ends: tuple[str, ...], channel: dict[str, object]) -> Link:
    given = {name: value for name, value in channel.items() if value is not None}
    return Link.model_construct(_fields_set={"ends", *given}, ends=list(ends), **given)
