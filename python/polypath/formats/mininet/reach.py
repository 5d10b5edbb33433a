"""Who reaches whom over the links of a topology."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

#: A node, and one of its interfaces as "node:interface".
End = tuple[str, str]


def joined(links: Sequence[Sequence[End]], through: set[str]) -> dict[str, str]:
    """For each interface the part of the network that it is in: what some nodes join, and others end."""
    root: dict[str, str] = {}

    def top(name: str) -> str:
        root.setdefault(name, name)
        while root[name] != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    for ends in links:
        first, second = (top(node if node in through else interface) for node, interface in ends)
        root[first] = second
    return {interface: top(node if node in through else interface) for ends in links for node, interface in ends}


def in_between(links: Sequence[Sequence[End]], kinds: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, str]]]:
    """The hosts that do not forward although two others have no path but through them, with such a pair."""
    parts = joined(links, {name for name, kind in kinds.items() if kind != "host"})
    own: dict[str, dict[str, None]] = {}
    for ends in links:
        for node, interface in ends:
            if kinds[node] == "host":
                own.setdefault(node, {})[parts[interface]] = None
    for host, touched in own.items():
        if len(touched) < 2:
            continue
        # hosts in the same parts are alike, so that the first of each kind stands for them
        near: dict[frozenset[str], str] = {}
        for name, at in own.items():
            if name != host and not touched.keys().isdisjoint(at):
                near.setdefault(frozenset(at), name)
        pairs = itertools.combinations(near.items(), 2)
        cut = next(((one, two) for (first, one), (second, two) in pairs if first.isdisjoint(second)), None)
        if cut is not None:
            yield host, cut
