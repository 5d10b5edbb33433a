"""mininet.link: the classes of links and their interfaces. None is ever instantiated."""

from __future__ import annotations

from ._placeholder import NotRun
from ._placeholder import placeholder as __getattr__  # noqa: F401


class Intf(metaclass=NotRun):
    """An interface."""


class TCIntf(Intf):
    """One that tc shapes."""


class OVSIntf(Intf):
    """A patch between switches of Open vSwitch."""


class Link(metaclass=NotRun):
    """A pair of virtual Ethernet interfaces."""


class TCLink(Link):
    """One whose interfaces tc shapes."""


class TCULink(TCLink):
    """The same without checksum offload."""


class OVSLink(Link):
    """A patch between switches of Open vSwitch."""
