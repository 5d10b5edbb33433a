"""The interfaces of two hosts that face each other: links lead from one to the other past hosts that forward only."""

from __future__ import annotations

from collections.abc import Mapping

from polypath.scenario.fields import Address
from polypath.scenario.tables import End, Tables


def facing(tables: Tables, ends: Mapping[str, tuple[End, End]], host: str, peer: str) -> list[tuple[End, End]]:
    """Such pairs, in the order of the host's interfaces; of the peer's the nearest comes first."""
    forwards = {*tables.router, *tables.switch, *(name for name, each in tables.host.items() if each.forwards)}
    others: dict[str, list[tuple[End, End]]] = {}
    for one, two in ends.values():
        others.setdefault(one[0], []).append((one, two))
        others.setdefault(two[0], []).append((two, one))
    found: list[tuple[End, End]] = []
    for interface, first in sorted(others.get(host, []), key=lambda pair: _place(tables, pair[0])):
        seen, frontier = {host}, [first]
        while frontier:
            node, _ = end = frontier.pop(0)
            if node == peer:
                found.append((interface, end))
            if node == peer or node in seen or node not in forwards:
                continue
            seen.add(node)
            frontier += [far for _, far in others[node]]
    return found


def _place(tables: Tables, end: End) -> int:
    described = list(tables.host[end[0]].interface) if end[0] in tables.host else []
    return described.index(end[1]) if end[1] in described else len(described)


def addresses(
    tables: Tables, ends: Mapping[str, tuple[End, End]], host: str, peer: str
) -> tuple[list[Address], list[Address]]:
    """The addresses of those interfaces, the host's and the peer's, each once."""
    pairs = facing(tables, ends, host, peer)
    own = dict.fromkeys(mine for mine, _ in pairs)
    far = dict.fromkeys(theirs for _, theirs in pairs)
    return _of(tables, own), _of(tables, far)


def _of(tables: Tables, ends: Mapping[End, None]) -> list[Address]:
    return [at for node, name in ends for at in tables.host[node].interface[name].address or []]
