"""Networks of tiers, such as fat-trees, VL2 and BCube: a row per tier, hosts at the bottom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from polypath.plan.overview.network import HEIGHT, WIDTH, Arrangement, Network, Note
from polypath.plan.places import distances

#: Inches from a row to the next, and from switches to their hosts.
_APART: Final = 1.15
_BELOW: Final = 0.42
#: Rows of hosts below a switch.
_MOST: Final = 8
#: Characters of a line at the left.
_LONG: Final = 20


def rows(network: Network) -> Arrangement | None:
    """None where a link joins nodes whose distances from hosts are not 1 apart."""
    tiers = _tiers(network)
    if tiers is None:
        return None
    apart = min(_APART, HEIGHT / max(1, len(tiers) - 1))
    made = Arrangement()
    for height, tier in enumerate(tiers):
        for node, x in zip(tier, _spread(network, tier), strict=True):
            made.places[node] = (x, height * apart)
    if not _has_host_row(network):
        slot = WIDTH / len(tiers[0])
        for node in tiers[0]:
            x, y = made.places[node]
            network.hang(made, node, (x, y - _BELOW), 0.86 * slot, _MOST)
    _tell(network, made, tiers, apart)
    return made


def _has_host_row(network: Network) -> bool:
    """Whether hosts stand in a row of their own, since some have several neighbours."""
    return bool(network.hosts & set(network.inner))


def _tiers(network: Network) -> list[list[int]] | None:
    """Nodes by their distance from hosts, the nearest first, without leaves, unless hosts have a row."""
    level = _levels(network)
    if level is None:
        return None
    found: dict[int, list[int]] = {}
    for node in range(len(network.names)) if _has_host_row(network) else network.inner:
        found.setdefault(level[node], []).append(node)
    return [found[each] for each in sorted(found)]


def _levels(network: Network) -> dict[int, int] | None:
    level = distances(network.near, network.hosts)
    if len(level) < len(network.names) or any(abs(level[a] - level[b]) != 1 for a, b in network.links):
        return None
    if not network.leaves and max(level.values()) == 1:  # servers with an interface for each level of switches
        return level | {
            node: 1 + min(network.interface(host, node) for host in network.near[node])
            for node in level
            if node not in network.hosts
        }
    return level


def _spread(network: Network, tier: Sequence[int]) -> list[float]:
    """Evenly over the width, with a gap between groups such as pods."""
    groups = [network.names[node].rpartition("-")[0] for node in tier]
    gap = 0.6 if len(set(groups)) > 1 else 0.0
    at, found = 0.0, []
    for number, group in enumerate(groups):
        at += 0 if number == 0 else 1 + (gap if group != groups[number - 1] else 0.0)
        found.append(at)
    across = at + 1 + gap
    return [WIDTH * ((each + (1 + gap) / 2) / across - 0.5) for each in found]


def _tell(network: Network, made: Arrangement, tiers: Sequence[Sequence[int]], apart: float) -> None:
    """What a row has at its left, what links between two rows are at their right."""
    left, right = -WIDTH / 2 - 0.15, WIDTH / 2 + 0.15
    for height, tier in enumerate(tiers):
        made.notes.append(Note((left, height * apart), _lines(network, tier), "right"))
        if height:
            below = set(tiers[height - 1])
            pairs = [pair for pair in network.links if _joins(pair, set(tier), below)]
            text = network.told_of_links(pairs)
            if text and pairs:
                made.notes.append(Note((right, (height - 0.5) * apart), text.replace(", ", "\n")))
    hosts = network.hanging
    if hosts and not _has_host_row(network):
        counts = {len(network.leaves.get(node, ())) for node in tiers[0]}
        each = f", {counts.pop()} at each" if len(counts) == 1 else ""
        low = (-_BELOW + made.corners[0][1]) / 2
        made.notes.append(Note((left, low), _lines(network, hosts, each), "right"))
        hanging = set(hosts)
        text = network.told_of_links(pair for pair in network.links if hanging & set(pair))
        if text:
            made.notes.append(Note((right, -_BELOW / 2), text.replace(", ", "\n")))


def _joins(pair: tuple[int, int], one: set[int], other: set[int]) -> bool:
    a, b = pair
    return (a in one and b in other) or (b in one and a in other)


def _lines(network: Network, nodes: Sequence[int], more: str = "") -> str:
    names = network.named(nodes)
    if len(names) > _LONG:
        names = names.replace(" .. ", " ..\n")
    return f"{network.counted(nodes)}{more}\n{names}"
