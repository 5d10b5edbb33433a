"""A network as arrangements see it, and their result."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

from polypath.plan.places import parallel

if TYPE_CHECKING:
    from polypath.plan.data import PlanData

Place = tuple[float, float]
Pair = tuple[int, int]

#: Inches: how wide the nodes of a picture stand, how high at most, and the least between two hosts.
WIDTH: Final = 6.4
HEIGHT: Final = 5.6
PITCH: Final = 0.075
_WIDEST: Final = 2.5 * PITCH
_HIGHEST: Final = 1.5 * PITCH
#: Kinds of names that are told apart.
_MOST_GROUPS: Final = 3
#: Inches from a line of words to the next.
LINE: Final = 0.18
#: Places before and behind one, by height and by width, of which one is the nearest.
_LOOKED_AT: Final = 4


@dataclass(frozen=True)
class Stack:
    """Hosts at the same node that are drawn as one mark."""

    at: int
    count: int
    place: Place


@dataclass(frozen=True)
class Note:
    """Words beside the nodes."""

    place: Place
    text: str
    #: Whether the place is their left end, their middle or their right end.
    side: str = "left"


@dataclass
class Arrangement:
    """Places in inches."""

    places: dict[int, Place] = field(default_factory=dict)
    stacks: list[Stack] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    #: How far the middle of a link lies off its straight line, where that would cross other nodes.
    bends: dict[Pair, float] = field(default_factory=dict)
    #: What is left free around all nodes.
    room: float = 0.3

    def tell_below(self, lines: Sequence[str]) -> None:
        """Puts lines of words below everything."""
        (left, bottom), _ = self.corners
        bottom = min([bottom, *(note.place[1] for note in self.notes)])
        for number, text in enumerate(lines):
            self.notes.append(Note((left, bottom - self.room - LINE * number), text))

    @property
    def corners(self) -> tuple[Place, Place]:
        """The left lower and the right upper corner of all places."""
        xs, ys = zip(*self.places.values(), *(stack.place for stack in self.stacks), strict=True)
        return (min(xs), min(ys)), (max(xs), max(ys))


@dataclass(frozen=True)
class Network:
    """Nodes by number. A leaf is a host with one neighbour; the others are inner nodes."""

    names: Sequence[str]
    #: Of each node host, router or switch.
    kinds: Sequence[str]
    #: Of each node its neighbours, in the plan's order.
    near: Sequence[Sequence[int]]
    #: What links are like, by the pair of nodes that they join.
    links: Mapping[Pair, Sequence[Mapping[str, Any]]]
    #: Those that open connections.
    clients: frozenset[int]

    @classmethod
    def of(cls, plan: PlanData) -> Self:
        nodes, links = plan["nodes"], parallel(plan["links"])
        near: list[list[int]] = [[] for _ in nodes]
        for a, b in links:
            near[a].append(b)
            near[b].append(a)
        return cls(
            [str(node["name"]) for node in nodes],
            [str(node["kind"]) for node in nodes],
            near,
            links,
            frozenset(each["client"] for each in plan.get("applications", [])),
        )

    @cached_property
    def hosts(self) -> frozenset[int]:
        return frozenset(number for number, kind in enumerate(self.kinds) if kind == "host")

    @cached_property
    def leaves(self) -> Mapping[int, Sequence[int]]:
        """By inner node the hosts that hang at it alone."""
        found: dict[int, list[int]] = {}
        for host in sorted(self.hosts):
            if len(self.near[host]) == 1 and self.near[host][0] not in self.hosts:
                found.setdefault(self.near[host][0], []).append(host)
        return found

    @cached_property
    def inner(self) -> Sequence[int]:
        hanging = {host for own in self.leaves.values() for host in own}
        return [node for node in range(len(self.names)) if node not in hanging]

    def inside(self, node: int) -> list[int]:
        """The neighbours of a node that are inner nodes."""
        return [other for other in self.near[node] if other in self._inner]

    @cached_property
    def _inner(self) -> frozenset[int]:
        return frozenset(self.inner)

    def interface(self, host: int, other: int) -> int:
        """The number of the host's interface towards a neighbour."""
        link = self.links[min(host, other), max(host, other)][0]
        return int(next(link[end]["interface"] for end in ("a", "b") if link[end]["node"] == host))

    @property
    def hanging(self) -> list[int]:
        """All leaves."""
        return [host for own in self.leaves.values() for host in own]

    def hang(self, made: Arrangement, at: int, place: Place, room: float, most: int) -> None:
        """Puts a node's leaves below a place: in rows, or as a stack where these would be more than `most`."""
        own = self.leaves.get(at, ())
        each = max(1, int(room / PITCH + 0.01))
        high = math.ceil(len(own) / each)
        if high > most:
            made.stacks.append(Stack(at, len(own), place))
            return
        across = math.ceil(len(own) / max(1, high))
        pitch = min(room / max(1, across), _WIDEST)
        for number, host in enumerate(own):
            row, column = divmod(number, across)
            wide = min(across, len(own) - row * across)
            down = row * min(max(pitch, PITCH), _HIGHEST)
            made.places[host] = (place[0] + (column - (wide - 1) / 2) * pitch, place[1] - down)

    def counted(self, nodes: Sequence[int]) -> str:
        """How many there are: "16 routers"."""
        kinds = {self.kinds[node] for node in nodes}
        kind = kinds.pop() if len(kinds) == 1 else "node"
        plural = kind if len(nodes) == 1 else f"{kind}es" if kind == "switch" else f"{kind}s"
        return f"{len(nodes)} {plural}"

    def named(self, nodes: Sequence[int]) -> str:
        """Names from the first to the last: "h0 .. h15"."""
        groups: dict[str, list[str]] = {}
        for node in nodes:
            groups.setdefault(re.sub(r"\d+", "", self.names[node]), []).append(self.names[node])
        if len(groups) > _MOST_GROUPS:
            groups = {"": [self.names[node] for node in nodes]}
        ends = [(min(names, key=_numbers), max(names, key=_numbers)) for names in groups.values()]
        return ", ".join(" .. ".join(dict.fromkeys(each)) for each in ends)

    def told(self) -> list[str]:
        """The whole network in a few lines."""
        hosts = self.hanging
        each = {len(self.leaves.get(node, ())) for node in self.inner}
        at_each = f", {each.pop()} at each" if len(each) == 1 else ""
        lines = [f"{self.counted(self.inner)} {self.named(self.inner)}"]
        lines += [f"{self.counted(hosts)} {self.named(hosts)}{at_each}"] if hosts else []
        links = self.told_of_links(self.links)
        return lines + ([f"links of {links}"] if links else [])

    def told_of_links(self, pairs: Iterable[Pair]) -> str:
        """What links between nodes have in common: how many there are of each, their rate and delay."""
        groups = [self.links[pair] for pair in pairs]
        counts = {len(group) for group in groups}
        beside = f"{counts.pop()} links each" if len(counts) == 1 and max(counts) > 1 else ""
        every = [link[way] for group in groups for link in group for way in ("forward", "backward")]
        rates, delays = ({each.get(key) for each in every} for key in ("rate_bps", "delay_ns"))
        parts = [beside, *_range(rates, "Mbps"), *_range(delays, "ms")]
        return ", ".join(filter(None, parts))


def _range(values: set[int | None], unit: str) -> list[str]:
    """Values in millions, from the least to the greatest; none where one is not known or nothing."""
    if not values or not all(values):
        return []
    ends = sorted(value for value in values if value)
    return [" to ".join(dict.fromkeys(f"{value / 1e6:g}" for value in (ends[0], ends[-1]))) + f" {unit}"]


def _numbers(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]


def nearest(places: Sequence[Place], most: float) -> list[float]:
    """How far each place is from the next one, `most` at most; it is looked for among a few of like height or width."""
    found = [most] * len(places)
    for order in (sorted(range(len(places)), key=lambda one: places[one][way:] + places[one][:way]) for way in (0, 1)):
        for apart in range(1, _LOOKED_AT + 1):
            for one, other in zip(order, order[apart:], strict=False):
                distance = math.dist(places[one], places[other])
                found[one], found[other] = min(found[one], distance), min(found[other], distance)
    return found
