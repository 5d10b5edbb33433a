"""The machine's own Linux stack, in real time."""

from polypath.engines.live.engine import LiveEngine

__all__ = ["LiveEngine"]
