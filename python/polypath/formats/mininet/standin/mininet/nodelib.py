"""mininet.nodelib: a bridge, and network address translation."""

from __future__ import annotations

from ._placeholder import placeholder as __getattr__  # noqa: F401
from .node import Node, Switch


class LinuxBridge(Switch):
    """The kernel's bridge."""


class NAT(Node):
    """A gateway to the world outside."""
