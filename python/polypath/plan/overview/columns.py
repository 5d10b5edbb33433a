"""Any other network: columns by distance from the nodes that open connections, as for small ones."""

from __future__ import annotations

from typing import Final

from polypath.plan.overview.network import HEIGHT, WIDTH, Arrangement, Network
from polypath.plan.places import distances

#: Inches from a column to the next, and from a node to the next, at most.
_ACROSS: Final = 1.6
_DOWN: Final = 0.5


def columns(network: Network) -> Arrangement:
    level = distances(network.near, network.clients or {0})
    found: dict[int, list[int]] = {}
    for node in range(len(network.names)):
        found.setdefault(level.get(node, len(level)), []).append(node)
    across = min(_ACROSS, WIDTH / max(1, len(found) - 1))
    down = min(_DOWN, HEIGHT / max(1, max(map(len, found.values())) - 1))
    made = Arrangement()
    for number, place in enumerate(sorted(found)):
        for row, node in enumerate(found[place]):
            made.places[node] = (number * across, ((len(found[place]) - 1) / 2 - row) * down)
    made.tell_below(network.told())
    return made
