"""Stacks of QUIC against each other: test cases, and performance over drawn networks."""

from polypath.interop.cases import CASES, Case
from polypath.interop.matrix import Cell, play
from polypath.interop.networks import Network, drawn, measured
from polypath.interop.participants import PARTICIPANTS, Participant

__all__ = ["CASES", "PARTICIPANTS", "Case", "Cell", "Network", "Participant", "drawn", "measured", "play"]
