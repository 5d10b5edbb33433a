"""mininet.node: the classes of nodes and controllers. None is ever instantiated."""

from __future__ import annotations

from ._placeholder import NotRun
from ._placeholder import placeholder as __getattr__  # noqa: F401


class Node(metaclass=NotRun):
    """A node in a namespace of its own."""


class Host(Node):
    """A host."""


class CPULimitedHost(Host):
    """A host with a share of a processor."""


class Switch(Node):
    """A switch."""


class UserSwitch(Switch):
    """A switch in user space."""


class OVSSwitch(Switch):
    """Open vSwitch under a controller."""


class OVSBridge(OVSSwitch):
    """Open vSwitch as a learning switch."""


class IVSSwitch(Switch):
    """Indigo Virtual Switch."""


OVSKernelSwitch = OVSLegacyKernelSwitch = KernelSwitch = OVSSwitch


class Controller(Node):
    """A controller that learns addresses."""


class OVSController(Controller):
    """That of Open vSwitch's tests."""


class NullController(Controller):
    """None at all."""


class NOX(Controller):
    """NOX with modules of one's own."""


class Ryu(Controller):
    """Ryu with applications of one's own."""


class RemoteController(Controller):
    """One that runs elsewhere."""


DefaultController = Controller
