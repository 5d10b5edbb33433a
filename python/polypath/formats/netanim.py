"""A run as ns-3's NetAnim plays it: the nodes, the links, and each packet on each link.

The format is that of `netanim-3.108` (ns-3, src/netanim/model/animation-interface.cc). It is made from captures on
links, which have the arrival of a packet's last bit. Its first bit left earlier, by the link's delay and serialisation
time.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO
from xml.sax.saxutils import quoteattr

from polypath.formats.pcapng import CaptureError, Frame, frames
from polypath.plan.access import ENDS, Way
from polypath.plan.places import places
from polypath.results import Recording, layout, reading

if TYPE_CHECKING:
    from polypath.plan.data import PlanData
    from polypath.plan.types import Attachment, Link

VERSION = "netanim-3.108"
#: Bytes of memory that a byte of a capture takes: itself, and its part of a packet's line.
_GROWS = 8
_COLUMN, _MARGIN = 30.0, 10.0
_ETHERNET = 14
_IP = (0x0800, 0x86DD)
_ADDRESSES = {"ip": 4, "ipv6": 6}
"""The element that lists a node's addresses of a version of IP."""
_LEAST_ETHERTYPE = 0x0600
"""Below it stands a length (IEEE 802.3), which frames of a spanning tree have."""
_PROTOCOLS = {1: "ICMP", 6: "TCP", 17: "UDP"}


def write(recording: Recording, captures: Path, out: TextIO) -> int:
    """Writes the animation; returns how many packets it has. Raises CaptureError where a link has no capture."""
    plan = recording.plan
    _require_room(plan, captures)
    out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<anim ver="{VERSION}" filetype="animation">\n')
    for line in _network(plan):
        out.write(line + "\n")
    count = 0
    for _, line in sorted(line for link in plan["links"] for line in _packets(plan, link, captures)):
        out.write(line + "\n")
        count += 1
    out.write("</anim>\n")
    return count


def _require_room(plan: PlanData, captures: Path) -> None:
    """Raises TooLarge, and CaptureError for what is no plain file."""
    paths = [path for link in plan["links"] if (path := _capture(link, captures)).exists()]
    try:
        reading.require_room(paths, _GROWS)
    except ValueError as error:
        raise CaptureError(f"{captures}: {error}") from error


def _capture(link: Link, captures: Path) -> Path:
    return captures / Path(layout.capture(link["name"])).name


def _network(plan: PlanData) -> Iterator[str]:
    where = places(plan)
    left, top = min(x for x, _ in where.values()), max(y for _, y in where.values())
    for number, node in enumerate(plan["nodes"]):
        x, y = where[number]
        across, down = _MARGIN + _COLUMN * (x - left), _MARGIN + _COLUMN * (top - y)
        yield f'<node id="{number}" sysId="0" locX="{across:.3f}" locY="{down:.3f}" />'
        yield f'<nu p="d" t="0" id="{number}" descr={quoteattr(node["name"])} />'
        addresses = [address for interface in node["interfaces"] for address in interface["addresses"]]
        for element, version in _ADDRESSES.items():
            own = [address for address in addresses if ipaddress.ip_address(address).version == version]
            if own:
                listed = "".join(f"<address>{address}</address>" for address in own)
                yield f'<{element} n="{number}">{listed}</{element}>'
    for link in plan["links"]:
        ends = f'fromId="{link["a"]["node"]}" toId="{link["b"]["node"]}"'
        described = [quoteattr(_end(plan, link[end])) for end in ENDS]
        yield f"<link {ends} fd={described[0]} td={described[1]} ld={quoteattr(_describe(link))} />"


def _end(plan: PlanData, end: Attachment) -> str:
    node = plan["nodes"][end["node"]]
    return f"{node['name']}:{node['interfaces'][end['interface']]['name']}"


def _describe(link: Link) -> str:
    rate = link["forward"]["rate_bps"]
    texts = [link["name"], "" if rate is None else f"{rate / 1e6:g} Mbps", f"{link['forward']['delay_ns'] / 1e6:g} ms"]
    return " ".join(text for text in texts if text)


def _packets(plan: PlanData, link: Link, captures: Path) -> Iterator[tuple[int, str]]:
    path = _capture(link, captures)
    if not path.exists():
        raise CaptureError(f"{path} is not there; the run needs `--pcap links`")
    forward, backward = _Channel(plan, link, "forward"), _Channel(plan, link, "backward")
    arrives = {_end(plan, link["b"]): forward, _end(plan, link["a"]): backward}
    for frame in frames(path):
        if frame.inbound:
            channel = arrives.get(frame.interface)
            if channel is None:
                raise CaptureError(f"{path} is of another link: {frame.interface} is no end of {link['name']}")
            first, last, sent = channel.times(frame)
            seconds = [f"{time / 1e9:.9f}" for time in (first, last, sent, frame.time_ns)]
            ends = f'fId="{channel.source}" fbTx="{seconds[0]}" lbTx="{seconds[1]}"'
            ends += f' tId="{channel.target}" fbRx="{seconds[2]}" lbRx="{seconds[3]}"'
            try:
                about = _meta(frame)
            except (IndexError, ValueError, struct.error) as error:
                raise CaptureError(f"{path}: a frame is damaged") from error
            yield first, f"<p {ends} meta-info={quoteattr(about)} />"


class _Channel:
    """One direction of a link, with the rate and delay that it has at a time."""

    def __init__(self, plan: PlanData, link: Link, direction: Way) -> None:
        nodes = link["a"]["node"], link["b"]["node"]
        self.source, self.target = nodes if direction == "forward" else nodes[::-1]
        channel = link[direction]
        self._overhead = channel["overhead_bytes"]
        self._states: list[tuple[int, int | None, int]] = [(0, channel["rate_bps"], channel["delay_ns"])]
        number = plan["links"].index(link)
        for event in plan["events"]:
            action = event["action"]
            if action["kind"] != "link":
                continue
            if action["link"] == number and action["direction"] in (direction, "both"):
                _, rate, delay = self._states[-1]
                changed = action["rate_bps"] or rate, delay if action["delay_ns"] is None else action["delay_ns"]
                self._states.append((event["at_ns"], *changed))

    def times(self, frame: Frame) -> tuple[int, int, int]:
        """When the first bit left, when the last bit left, and when the first bit arrived, in ns."""
        _, rate, delay = next(state for state in reversed(self._states) if state[0] <= frame.time_ns)
        bits = 8 * (frame.length - _ETHERNET + self._overhead)
        serialisation = 0 if rate is None else round(bits * 1e9 / rate)
        last = max(frame.time_ns - delay, 0)
        return max(last - serialisation, 0), last, max(frame.time_ns - serialisation, 0)


def _meta(frame: Frame) -> str:
    """Protocol, addresses, ports, TCP's sequence number and length, as far as the frame has them."""
    kind = struct.unpack_from(">H", frame.data, _ETHERNET - 2)[0]
    if kind not in _IP:
        return "BPDU" if kind < _LEAST_ETHERTYPE else f"EtherType {kind:#06x}"
    version = frame.data[_ETHERNET] >> 4
    if version == 4:
        protocol, head = frame.data[_ETHERNET + 9], 4 * (frame.data[_ETHERNET] & 15)
        ends = frame.data[_ETHERNET + 12 : _ETHERNET + 20]
        total = struct.unpack_from(">H", frame.data, _ETHERNET + 2)[0]
    else:
        protocol, head = frame.data[_ETHERNET + 6], 40
        ends = frame.data[_ETHERNET + 8 : _ETHERNET + 40]
        total = head + struct.unpack_from(">H", frame.data, _ETHERNET + 4)[0]
    half = len(ends) // 2
    source, target = (str(ipaddress.ip_address(end)) for end in (ends[:half], ends[half:]))
    at = _ETHERNET + head
    if protocol not in (6, 17):
        return f"{_PROTOCOLS.get(protocol, str(protocol))} {source} > {target}"
    ports = struct.unpack_from(">HH", frame.data, at)
    text = f"{_PROTOCOLS[protocol]} {source}:{ports[0]} > {target}:{ports[1]}"
    if protocol == 6:
        sequence = struct.unpack_from(">I", frame.data, at + 4)[0]
        payload = total - head - 4 * (frame.data[at + 12] >> 4)
        text += f" seq {sequence} len {payload}"
    return text
