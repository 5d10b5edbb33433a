"""Which engines take an algorithm."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from polypath.engines.namespaces import algorithms, paths, shaping
from polypath.registry import Kind

#: The kinds that an engine may lack, with what engine linux has.
_LINUX: Final[Mapping[Kind, Collection[str]]] = {
    "scheduler": algorithms.SCHEDULERS,
    "congestion": algorithms.CONGESTION,
    "path-manager": paths.MANAGERS,
    "queue": shaping.QUEUES,
}


def engines(kind: Kind, name: str) -> tuple[str, ...]:
    """Engines by name; nothing for a kind that is not asked for so."""
    if kind not in _LINUX:
        return ()
    return ("sim", "linux") if name in _LINUX[kind] else ("sim",)
