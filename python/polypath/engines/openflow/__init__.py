"""An os-ken application as the controller of a simulated network: a process of its own, in simulated time."""

from polypath.engines.openflow.program import Program

__all__ = ["Program"]
