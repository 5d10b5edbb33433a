"""The wires between the hosts' interfaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from polypath.engines.base import EngineError
from polypath.engines.namespaces import shaping
from polypath.engines.namespaces.script import Script
from polypath.engines.namespaces.topology import LARGEST_MTU, WIRES, End, Network, namespace, wire_devices
from polypath.plan.access import ENDS, WAYS

if TYPE_CHECKING:
    from polypath.plan.types import Channel, Link, LinkAction


class Wires(Protocol):
    """Links between namespaces."""

    @property
    def whole(self) -> bool:
        """Whether all of the network is in this kernel that is not simulated."""
        ...

    @property
    def nodes(self) -> list[int]:
        """The nodes that have a namespace."""
        ...

    def namespaces(self) -> list[str]:
        """Namespaces of its own."""
        ...

    def lay(self, script: Script) -> None:
        """Makes the interfaces of all nodes, each in its node's namespace. Raises EngineError."""
        ...

    def observers(self, interval_ns: int) -> Iterator[str]:
        """Programs that sample the links, as helpers of the job."""
        ...

    def uncounted(self, link: int, direction: str) -> int:
        """The bytes of a packet's overhead that the samples of a link leave out."""
        ...

    def change(self, number: int, action: LinkAction, files: dict[str, str]) -> str | None:
        """The command that changes a link, with its files added; None if the change needs no command. Raises
        EngineError.
        """
        ...

    def bridges(self) -> Sequence[str]:
        """Programs that carry packets to other guests, as lines of the job."""
        ...

    def files(self) -> dict[str, str]:
        """Files of the run's folder that carry its packets, by name."""
        ...


class Netem:
    """Every node is a namespace; each link passes through one more, whose queue disciplines shape it."""

    whole = True

    def __init__(self, network: Network) -> None:
        _check_traces(network.links)
        self.network = network
        self.nodes = list(range(len(network.nodes)))
        self._packet = max(shaping.PACKET, network.longest_packet() + shaping.ETHERNET)
        self._channels: dict[tuple[int, str], Channel] = {
            (index, direction): link[direction] for index, link in enumerate(network.links) for direction in WAYS
        }
        if network.plan["routing"] != "shortest-path":
            raise EngineError(
                f"Linux's routers know one path to an address: there is no routing '{network.plan['routing']}'"
            )

    def namespaces(self) -> list[str]:
        return [WIRES]

    def lay(self, script: Script) -> None:
        links, rules, ups = [], [], []
        for index, link in enumerate(self.network.links):
            names = wire_devices(index)
            self._require_one_mtu(link)
            for side, name, way in zip(ENDS, names, WAYS, strict=True):
                end = End(link[side]["node"], link[side]["interface"])
                links.append(
                    f"link add {self.network.device(end)} netns {namespace(end.node)} address {end.mac}"
                    f" mtu {self.network.interface_mtu(end)} type veth"
                    f" peer name {name} netns {WIRES} mtu {self._wire_mtu(link[way])}"
                )
                ups.append(f"link set {name} up")
            for direction, (source, sink) in zip(WAYS, (names, names[::-1]), strict=True):
                rules.append(f"qdisc add dev {source} clsact")
                rules.append(f"filter add dev {source} ingress matchall action mirred egress redirect dev {sink}")
                rules += shaping.commands(sink, link[direction], packet=self._packet)
        script.ip(None, links, "links")
        script.inside(WIRES, [NO_IPV6], "sysctl")
        script.ip(WIRES, ups, "up")
        script.batch("tc", WIRES, rules, "shape.batch")
        for node in sorted(set(self.network.host_queues().values())):
            self._lay_in_host(script, node)

    def _require_one_mtu(self, link: Link) -> None:
        if link["forward"]["mtu"] != link["backward"]["mtu"]:
            raise EngineError(f"Linux's interfaces have one MTU for both directions, and link {link['name']} has two")

    def _wire_mtu(self, channel: Channel) -> int:
        """The longest packet that the far end of an interface accepts; longer ones are lost on a link without ICMP.

        Otherwise this is the longest packet that any host sends, and no more. A larger value would switch disciplines
        off. codel, fq_codel and pie drop nothing from a queue of one or two packets of the MTU (`psched_mtu`).
        """
        mtu = channel["mtu"]
        return (
            mtu - _GRACE
            if mtu is not None and not channel["icmp"]
            else min(self._packet - shaping.ETHERNET, LARGEST_MTU)
        )

    def _lay_in_host(self, script: Script, node: int) -> None:
        lines, rules = [], []
        for (index, direction), owner in self.network.host_queues().items():
            if owner == node:
                device = self.network.device(self.network.sender(index, direction))
                channel = self._channels[index, direction]
                if not shaping.keeps_owner(channel):
                    # netem counts packets, not the buffers of several that leave the stack together; tbf cuts those
                    lines.append(f"link set dev {device} gso_max_segs 1")
                rules += shaping.host_commands(device, channel, packet=self._packet)
        script.ip(namespace(node), lines, "whole")
        script.batch("tc", namespace(node), rules, f"shape-{node}.batch")

    def observers(self, interval_ns: int) -> Iterator[str]:
        yield f"{WIRES} links log=out/links interval={interval_ns}"
        for node in sorted(set(self.network.host_queues().values())):
            yield f"{namespace(node)} links log=out/links-{node} interval={interval_ns}"

    def uncounted(self, link: int, direction: str) -> int:
        """A device counts frames of Ethernet, whatever overhead its queue discipline sends them at."""
        return self._channels[link, direction]["overhead_bytes"] - shaping.ETHERNET

    def change(self, number: int, action: LinkAction, files: dict[str, str]) -> str | None:
        link = action["link"]
        changed = changes(action)
        lines: list[str] = []
        for direction, device in zip(("backward", "forward"), wire_devices(link), strict=True):
            if action["direction"] not in ("both", direction):
                continue
            before = shaping.shape(self._channels[link, direction])
            channel = self._changed(link, direction, changed)
            verb = "change" if shaping.shape(channel) == before else "replace"
            if (link, direction) in self.network.host_queues() and not changed.keys().isdisjoint(("rate_bps", "queue")):
                raise EngineError("an event cannot change the rate or the queue on a host's own interface")
            lines += shaping.commands(device, channel, verb, self._packet)
        name = f"event-{number}.batch"
        files[name] = "\n".join(lines) + "\n"
        return f"tc -n {WIRES} -batch {name}"

    def _changed(self, link: int, direction: str, changed: Mapping[str, Any]) -> Channel:
        """A direction of a link after an event."""
        now = cast("Channel", {**self._channels[link, direction], **changed})
        self._channels[link, direction] = now
        return now

    def bridges(self) -> Sequence[str]:
        return ()

    def files(self) -> dict[str, str]:
        return {}


def _check_traces(links: Iterable[Link]) -> None:
    for link in links:
        for direction in WAYS:
            if trace := link[direction].get("trace"):
                raise EngineError(
                    f"link {link['name']} follows the trace {trace['name']} {direction}: Linux shapes at a rate, not by"
                    " opportunities to deliver (engine sim does); 'conditions' of a CSV file give it a rate over time"
                )


#: Bytes beyond its MTU that a device of a pair takes (VLAN_HLEN, `__is_skb_forwardable`).
_GRACE = 4


#: Keeps the kernel from speaking IPv6 of its own accord where a namespace only forwards frames.
NO_IPV6: Final = "for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 > $f; done"

_OF_A_LINK: Final = ("rate_bps", "delay_ns", "loss", "queue", "up")


def changes(action: LinkAction) -> dict[str, Any]:
    """What an event changes of a link."""
    return {name: value for name, value in action.items() if name in _OF_A_LINK and value is not None}
