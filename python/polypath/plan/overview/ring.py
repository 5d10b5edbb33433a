"""Switches joined at random or to a ring, such as Jellyfish: around a circle, their hosts outside."""

from __future__ import annotations

from math import cos, pi, sin
from typing import Final

from polypath.plan.overview.network import PITCH, Arrangement, Network, Stack

_RADIUS: Final = 2.4
_AWAY: Final = 0.22
#: Hosts that stand one behind the other.
_MOST: Final = 4
#: Links of a switch to others, on average, from which there is no better order.
_LINKS: Final = 2


def ring(network: Network) -> Arrangement | None:
    """None where nodes are no switches, or have fewer links than a ring."""
    inner = network.inner
    if network.hosts & set(inner) or sum(len(network.inside(node)) for node in inner) < _LINKS * len(inner):
        return None
    made = Arrangement()
    for number, node in enumerate(inner):
        angle = pi / 2 - 2 * pi * number / len(inner)
        outward = cos(angle), sin(angle)
        made.places[node] = (_RADIUS * outward[0], _RADIUS * outward[1])
        hosts = network.leaves.get(node, ())
        if len(hosts) > _MOST:
            away = _RADIUS + _AWAY
            made.stacks.append(Stack(node, len(hosts), (away * outward[0], away * outward[1])))
            continue
        for place, host in enumerate(hosts):
            away = _RADIUS + _AWAY + place * 1.3 * PITCH
            made.places[host] = (away * outward[0], away * outward[1])
    made.tell_below(network.told())
    return made
