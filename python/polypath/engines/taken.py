"""Which engines and transports take an algorithm."""

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

#: The transports with congestion control.
_CONTROLLED: Final = ("tcp", "mptcp", "quic", "mpquic")


def engines(kind: Kind, name: str) -> tuple[str, ...]:
    """Engines by name; nothing for a kind that is not asked for so."""
    if kind not in _LINUX:
        return ()
    return ("sim", "linux") if name in _LINUX[kind] else ("sim",)


def transports(kind: Kind) -> tuple[str, ...]:
    """Transports by name that have each congestion control; nothing for another kind."""
    return _CONTROLLED if kind == "congestion" else ()
