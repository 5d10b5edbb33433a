"""The guest's kernel: where it is kept, how it is built, whether one is there."""

from polypath.engines.linux.kernel.cache import Installed, KernelError, chosen, find
from polypath.engines.linux.kernel.make import build, supported
from polypath.engines.linux.kernel.wheel import pack

__all__ = ["Installed", "KernelError", "build", "chosen", "find", "pack", "supported"]
