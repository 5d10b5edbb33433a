"""An os-ken application as the controller of a simulated network, in a separate process and in simulated time."""

from polypath.engines.openflow.program import Program

__all__ = ["Program"]
