"""Switches with coordinates in their names, such as those of a torus: two directions of a page, others as blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import Final

from polypath.plan.overview.network import HEIGHT, PITCH, WIDTH, Arrangement, Network

_NAME: Final = re.compile(r"([A-Za-z_]*)(\d+(?:-\d+)+)")
#: Between two blocks, in places of a block; inches of a place at most.
_GAP: Final = 0.8
_MOST: Final = 0.9
#: How far a link that closes a ring swings out, in places.
_SWING: Final = 0.32
_DOWN, _ACROSS = 0, 1


def grid(network: Network) -> Arrangement | None:
    """None where not all inner nodes have as many coordinates, or a link joins two that differ in several."""
    places = _coordinates(network)
    if places is None:
        return None
    sizes = [1 + max(own) for own in zip(*places.values(), strict=True)]
    if prod(sizes) != len(places):
        return None
    strides, spans = _strides(sizes)
    cell = min(_MOST, WIDTH / max(1.0, spans[_ACROSS]), HEIGHT / max(1.0, spans[_DOWN]))
    made = Arrangement()
    for node, own in places.items():
        at = [0.0, 0.0]
        for axis, number in enumerate(own):
            at[_way(axis)] += number * strides[axis] * cell
        made.places[node] = (at[_ACROSS], -at[_DOWN])
        below = at[_ACROSS] + 0.34 * cell, -at[_DOWN] - 0.26 * cell
        network.hang(made, node, below, 0.42 * cell, max(1, int(0.5 * cell / PITCH)))
    for a, b in network.links:
        if a in places and b in places:
            axis = next(axis for axis in range(len(sizes)) if places[a][axis] != places[b][axis])
            if abs(places[a][axis] - places[b][axis]) > 1 or axis > 1:
                # above those from left to right, at the left of others: hosts are below and at the right
                made.bends[a, b] = _SWING * cell * (1 if _way(axis) == _ACROSS else -1)
    first, *others = network.told()
    made.tell_below([f"{first}, {' × '.join(map(str, sizes))}", *others])
    return made


def _coordinates(network: Network) -> dict[int, tuple[int, ...]] | None:
    found: dict[int, tuple[int, ...]] = {}
    stems = set()
    for node in network.inner:
        match = _NAME.fullmatch(network.names[node])
        if match is None or node in network.hosts:
            return None
        stems.add(match[1])
        found[node] = tuple(map(int, match[2].split("-")))
    if len(stems) != 1 or len({len(own) for own in found.values()}) != 1:
        return None
    for a, b in network.links:
        if a in found and b in found and sum(one != other for one, other in zip(found[a], found[b], strict=True)) != 1:
            return None
    return found


def _way(axis: int) -> int:
    """Whether a direction goes down or across: down, across, across, down, and so on."""
    return _ACROSS if axis % 4 in (1, 2) else _DOWN


def _strides(sizes: Sequence[int]) -> tuple[list[float], list[float]]:
    """Per direction, the number of places from one coordinate to the next; and the extent of all places, down and
    across.
    """
    strides, spans = [], [0.0, 0.0]
    for axis, size in enumerate(sizes):
        way = _way(axis)
        strides.append(spans[way] + 1 + (_GAP if axis > 1 else 0.0))
        spans[way] += (size - 1) * strides[-1]
    return strides, spans
