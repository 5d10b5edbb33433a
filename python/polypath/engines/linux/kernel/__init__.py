"""The guest's kernel: its place, its build, and its state."""

from polypath.engines.linux.kernel import named, own
from polypath.engines.linux.kernel.cache import Installed, KernelError, chosen, find
from polypath.engines.linux.kernel.make import build, supported
from polypath.engines.linux.kernel.wheel import pack

__all__ = ["Installed", "KernelError", "build", "chosen", "find", "named", "own", "pack", "supported"]
