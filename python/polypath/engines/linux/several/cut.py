"""The wires of one of several guests: links to nodes of others end at a bridge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from polypath.engines.base import EngineError
from polypath.engines.namespaces import shaping
from polypath.engines.namespaces.script import Script
from polypath.engines.namespaces.topology import WIRES, End, Network, namespace, wire_devices
from polypath.engines.namespaces.wires import NO_IPV6, Netem, changes
from polypath.plan.access import ENDS, WAYS

if TYPE_CHECKING:
    from polypath.plan.data import PlanData
    from polypath.plan.types import Channel, LinkAction

#: The namespace whose devices stand for nodes of other guests.
FAR: Final = "x"
_WAYS: Final = {"forward": ("a", "b"), "backward": ("b", "a")}
#: In ns: what a guest can wait for the others, and what it need not.
_SHORTEST, _LONGEST = 200_000, 10_000_000
#: Jitter is a normal distribution: what is that many deviations below the delay does not happen.
_DEVIATIONS: Final = 4


class Cut(Netem):
    """The part of the network that is of some nodes. A direction of a link is shaped where it begins."""

    whole = False

    def __init__(self, network: Network, nodes: frozenset[int], lookahead_ns: int) -> None:
        super().__init__(network)
        self._own = nodes
        self.nodes = sorted(nodes)
        self._lookahead_ns = lookahead_ns

    def namespaces(self) -> list[str]:
        return [WIRES, FAR]

    def lay(self, script: Script) -> None:
        links, far, rules, ups = [], [], [], []
        for index, link in enumerate(self.network.links):
            if not self._is_here(index):
                continue
            names = wire_devices(index)
            self._require_one_mtu(link)
            for side, name, way in zip(ENDS, names, WAYS, strict=True):
                end, mtu = End(link[side]["node"], link[side]["interface"]), self._wire_mtu(link[way])
                peer = f"peer name {name} netns {WIRES} mtu {mtu}"
                if end.node in self._own:
                    links.append(
                        f"link add {self.network.device(end)} netns {namespace(end.node)} address {end.mac}"
                        f" mtu {self.network.interface_mtu(end)} type veth {peer}"
                    )
                else:
                    links.append(f"link add {_far(index)} netns {FAR} mtu {mtu} type veth {peer}")
                    far.append(f"link set {_far(index)} up")
                ups.append(f"link set {name} up")
            for direction, (begin, end_) in _WAYS.items():
                source, sink = (names["ab".index(side)] for side in (begin, end_))
                rules.append(f"qdisc add dev {source} clsact")
                rules.append(f"filter add dev {source} ingress matchall action mirred egress redirect dev {sink}")
                if self._begins_here(index, direction):
                    rules += shaping.commands(sink, self._shortened(index, direction), packet=self._packet)
        script.ip(None, links, "links")
        for space in (WIRES, FAR):
            script.inside(space, [NO_IPV6], "sysctl")
        script.ip(WIRES, ups, "up")
        script.ip(FAR, far, "far")
        script.batch("tc", WIRES, rules, "shape.batch")
        for node in sorted(set(self.network.host_queues().values()) & self._own):
            self._lay_in_host(script, node)
        for node in self.nodes:
            devices = " ".join(self.network.device(end) for end in self.network.ends(node))
            if self.network.speaks_ip(node) and devices:
                script.lines.append(f"ip netns exec {namespace(node)} ./guest offload checksums {devices}")

    def observers(self, interval_ns: int) -> Iterator[str]:
        mine = {f"{namespace(node)} " for node in self._own} | {f"{WIRES} "}
        return (line for line in super().observers(interval_ns) if line.partition(" ")[0] + " " in mine)

    def change(self, number: int, action: LinkAction, files: dict[str, str]) -> str | None:
        link, changed = action["link"], changes(action)
        lines: list[str] = []
        for direction, device in zip(("backward", "forward"), wire_devices(link), strict=True):
            if action["direction"] not in ("both", direction) or not self._begins_here(link, direction):
                continue
            before = shaping.shape(self._channels[link, direction])
            channel = self._changed(link, direction, changed)
            verb = "change" if shaping.shape(channel) == before else "replace"
            lines += shaping.commands(device, self._shortened(link, direction), verb, self._packet)
        if not lines:
            return None
        name = f"event-{number}.batch"
        files[name] = "\n".join(lines) + "\n"
        return f"tc -n {WIRES} -batch {name}"

    def bridges(self) -> Sequence[str]:
        ends = [f"{_far(index)}:{index}" for index in range(len(self.network.links)) if self._is_cut(index)]
        return (" ".join([FAR, "bridge", f"lookahead={self._lookahead_ns}", "peers=peers", *ends]),)

    def _nodes(self, link: int) -> dict[str, int]:
        return {side: self.network.links[link][side]["node"] for side in ENDS}

    def _is_here(self, link: int) -> bool:
        return not self._own.isdisjoint(self._nodes(link).values())

    def _is_cut(self, link: int) -> bool:
        return self._is_here(link) and not self._own.issuperset(self._nodes(link).values())

    def _begins_here(self, link: int, direction: str) -> bool:
        return self._nodes(link)[_WAYS[direction][0]] in self._own

    def _shortened(self, link: int, direction: str) -> Channel:
        """Less the delay that the bridge has."""
        channel = self._channels[link, direction]
        return {**channel, "delay_ns": channel["delay_ns"] - self._lookahead_ns} if self._is_cut(link) else channel


def lookahead(network: Network, parts: list[frozenset[int]]) -> int:
    """In ns: no packet is faster from one part to another, ever. Raises EngineError where that is too little."""
    place = {node: number for number, nodes in enumerate(parts) for node in nodes}
    least = _LONGEST
    for index, link in enumerate(network.links):
        if place[link["a"]["node"]] == place[link["b"]["node"]]:
            continue
        if any(link[direction]["reorder"] for direction in WAYS):
            raise EngineError(f"link {link['name']} reorders packets, which a link between two kernels does not")
        if (ahead := fastest(network.plan, index)) < _SHORTEST:
            jitter = any(link[direction]["jitter_ns"] for direction in WAYS)
            raise EngineError(
                f"link {link['name']} joins two kernels, which takes a delay of 200 us at least at any time"
                + (", and 4 times the jitter more" if jitter else "")
            )
        least = min(least, ahead)
    return least


def fastest(plan: PlanData, link: int) -> int:
    """In ns, of the packets on a link in either direction, at any time."""
    found = []
    for direction in WAYS:
        channel = plan["links"][link][direction]
        delays = (int(channel["delay_ns"]), *_later(plan, link, direction))
        found.append(min(delays) - _DEVIATIONS * int(channel["jitter_ns"]))
    return min(found)


def _later(plan: PlanData, link: int, direction: str) -> Iterator[int]:
    for event in plan["events"]:
        action = event["action"]
        if action["kind"] != "link" or action["link"] != link or action["direction"] not in ("both", direction):
            continue
        if action["delay_ns"] is not None:
            yield action["delay_ns"]


def _far(link: int) -> str:
    return f"x{link}"
