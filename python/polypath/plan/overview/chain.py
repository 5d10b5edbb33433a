"""Routers in a row with hosts at them, such as dumbbells and parking lots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from polypath.plan.overview.network import HEIGHT, WIDTH, Arrangement, Network, Note, Place, Stack

#: Inches: the least between two routers, and the most; from a line to the next, from a router to its hosts.
_STEP: Final = 0.16
_WIDEST: Final = 1.6
_LINE: Final = 0.95
_AWAY: Final = 0.3
#: Between two routers at the least where nodes have their names.
_NAMED: Final = 0.6
#: Between the routers of a short row, from its ends to their hosts, between these; from a node to its name.
_LONG: Final = 2.0
_FAN: Final = 1.4
_APART: Final = 0.24
_BESIDE: Final = 0.12
#: Routers of a short row; hosts that fan out from an end: more are a stack.
_SHORT: Final = 3
_MOST: Final = 16
#: Hosts above or below a router: more are a stack.
_FEW: Final = 3


def chain(network: Network) -> Arrangement | None:
    """None where the inner nodes are no row, each linked to the next."""
    order = _order(network)
    if order is None:
        return None
    between = any(network.leaves.get(node) for node in order[1:-1])
    return _in_lines(network, order) if between or len(order) > _SHORT else _with_fans(network, order)


def _in_lines(network: Network, order: Sequence[int]) -> Arrangement:
    """From left to right and back again, clients above and others below."""
    lines = math.ceil((len(order) - 1) * _STEP / WIDTH)
    each = math.ceil(len(order) / lines)
    step = min(WIDTH / max(1, each - 1), _WIDEST)
    line = min(_LINE, HEIGHT / lines)
    away = min(_AWAY, 0.36 * line)
    made = Arrangement()
    for number, node in enumerate(order):
        row, place = divmod(number, each)
        x, y = (place if row % 2 == 0 else each - 1 - place) * step, -row * line
        made.places[node] = (x, y)
        own = network.leaves.get(node, ())
        above = [host for host in own if host in network.clients or network.names[host].startswith("client")]
        below = [host for host in own if host not in above]
        if lines == 1 and number in (0, len(order) - 1):
            crowded = max(above, below, key=len)
            if len(crowded) > 1:  # the first of them stands beyond the end
                made.places[crowded.pop(0)] = (x + (away if number else -away), y)
        _put(made, node, above, (x, y + away), step)
        _put(made, node, below, (x, y - away), step)
        if step >= _NAMED:
            made.notes.append(Note((x + 0.06, y + 0.11), network.names[node]))
            for host in own:
                if len(above) <= 1 and len(below) <= 1:
                    across, up = made.places[host]
                    made.notes.append(Note((across, up + (0.14 if up > y else -0.14)), network.names[host], "middle"))
    made.tell_below(network.told())
    return made


def _put(made: Arrangement, at: int, hosts: Sequence[int], place: Place, step: float) -> None:
    if len(hosts) > _FEW:
        made.stacks.append(Stack(at, len(hosts), place))
        return
    for number, host in enumerate(hosts):
        beside = (number - (len(hosts) - 1) / 2) * 0.8 * step / max(2, len(hosts))
        made.places[host] = (place[0] + beside, place[1])


def _with_fans(network: Network, order: Sequence[int]) -> Arrangement:
    """A short row, with the hosts of its ends at its left and right."""
    made = Arrangement()
    for number, node in enumerate(order):
        made.places[node] = (number * _LONG, 0.0)
        made.notes.append(Note((number * _LONG, -0.17), network.names[node], "middle"))
    for node, side in ((order[0], -1), (order[-1], 1)):
        x = made.places[node][0] + side * _FAN
        hosts = network.leaves.get(node, ())
        if len(hosts) > _MOST:
            made.stacks.append(Stack(node, len(hosts), (x, 0.0)))
            made.notes.append(Note((x, -0.32), network.named(hosts), "middle"))
            continue
        for number, host in enumerate(hosts):
            y = ((len(hosts) - 1) / 2 - number) * _APART
            made.places[host] = (x, y)
            made.notes.append(Note((x + side * _BESIDE, y), network.names[host], "right" if side < 0 else "left"))
    for a, b in pairwise(order):
        middle = (made.places[a][0] + made.places[b][0]) / 2
        made.notes.append(Note((middle, 0.14), network.told_of_links([(min(a, b), max(a, b))]), "middle"))
    hanging = set(network.hanging)
    if text := network.told_of_links(pair for pair in network.links if hanging & set(pair)):
        made.tell_below([f"hosts' links: {text}"])
    return made


def _order(network: Network) -> list[int] | None:
    inner = network.inner
    near = {node: network.inside(node) for node in inner}
    ends = [node for node in inner if len(near[node]) == 1]
    if len(ends) != 2 or any(len(own) > 2 for own in near.values()) or network.hosts & set(inner):
        return None
    order, before = [ends[0]], -1
    while following := [node for node in near[order[-1]] if node != before]:
        before = order[-1]
        order.append(following[0])
    return order if len(order) == len(inner) else None
