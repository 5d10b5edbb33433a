"""A run whose hosts have different kernels: a guest for each kernel, one virtual time for all."""

from polypath.engines.linux.several.parts import Part, parts
from polypath.engines.linux.several.together import started

__all__ = ["Part", "parts", "started"]
