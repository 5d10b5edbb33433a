"""The places of the nodes of a large network: in bounded size, hosts at their switch, without labels at each link.

An arrangement is a function that places a network or gives None where it does not suit it; the first that does is
taken. Places are in inches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from polypath.plan.overview.chain import chain
from polypath.plan.overview.columns import columns
from polypath.plan.overview.grid import grid
from polypath.plan.overview.network import Arrangement, Network, Note, Pair, Stack, nearest
from polypath.plan.overview.ring import ring
from polypath.plan.overview.rows import rows
from polypath.plan.places import Places, places

if TYPE_CHECKING:
    from polypath.plan.data import PlanData

#: In the order in which they are asked; the last suits any network.
ARRANGEMENTS: Final[Sequence[Callable[[Network], Arrangement | None]]] = (grid, chain, rows, ring, columns)

#: Nodes of a column, and columns, that are drawn with words at each link.
_MOST_ROWS: Final = 6
_MOST_COLUMNS: Final = 8


def is_large(plan: PlanData) -> bool:
    """Whether a plan's network is too large for words at each node and link."""
    columns = Counter(x for x, _ in places(plan).values())
    return len(columns) > _MOST_COLUMNS or max(columns.values()) > _MOST_ROWS


def spread(plan: PlanData, apart: float) -> tuple[Places, Mapping[Pair, float]]:
    """The places of all nodes, and bends of links, on a scale on which the two nearest nodes are `apart`."""
    made = arranged(plan)
    found = dict(made.places)
    for stack in made.stacks:
        found |= dict.fromkeys(Network.of(plan).leaves[stack.at], stack.place)
    scale = apart / min(nearest(list(dict.fromkeys(found.values())), apart))
    return (
        {node: (x * scale, y * scale) for node, (x, y) in found.items()},
        {pair: bend * scale for pair, bend in made.bends.items()},
    )


def arranged(plan: PlanData) -> Arrangement:
    """The places of a plan's nodes, in inches."""
    network = Network.of(plan)
    return next(found for each in ARRANGEMENTS if (found := each(network)) is not None)


__all__ = ["ARRANGEMENTS", "Arrangement", "Network", "Note", "Stack", "arranged", "is_large", "spread"]
