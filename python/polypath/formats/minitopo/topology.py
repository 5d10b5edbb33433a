"""The topology file."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from polypath.formats.minitopo.lines import Line, count, not_negative, positive, read_lines, switch
from polypath.scenario.errors import ScenarioError
from polypath.units import nearest

PACKET_BYTES = 1500
TYPES = ("MultiIf", "MultiIfMultiClient")
SIDES = ("c2r", "r2s")
_KEYS = ("topoType", "leftSubnet", "rightSubnet", "changeNetem", "desc")
_EXAMPLES = ("path_c2r_0", "path_r2s_0", "netemAt_c2r_0", "netemAt_r2s_0")
_NUMBERED = re.compile(r"(?P<what>path|netemAt)_(?P<side>c2r|r2s)_(?P<number>[0-9]{1,4})")
_SUBNET = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}\.")


@dataclass(frozen=True)
class NetemAt:
    """A change of netem's parameters."""

    at: float
    """Seconds on a clock that starts before the client does."""
    cmd: str
    """netem's arguments."""
    line: Line


@dataclass
class Link:
    """A shaped link, the same in both directions."""

    type: str
    """`c2r` (client to router) or `r2s` (router to server)."""
    id: int
    delay_ms: float
    """One-way delay."""
    queue_pkts: int
    bw_mbps: float
    loss_pct: float = 0.0
    backup: int = 0
    netem_at: list[NetemAt] = field(default_factory=list)
    line: Line | None = None

    @property
    def tbf_limit_bytes(self) -> float:
        """The token bucket's limit: packets of a bandwidth-delay product, and what the queue's whole milliseconds hold.

        The same operations in the same order as minitopo's, so that the doubles round alike.
        """
        queue_ms = max(int(self.queue_pkts * PACKET_BYTES * 8.0 * 1000.0 / (self.bw_mbps * 1024 * 1024)), 1)
        return 1500.0 * packets_of_round_trip(self.delay_ms, self.bw_mbps) + self.bw_mbps * 1000.0 * queue_ms / 8


def packets_of_round_trip(delay_ms: float, bw_mbps: float) -> int:
    """The bandwidth-delay product in packets of 1500 bytes, rounded up."""
    return math.ceil(bw_mbps * 125000.0 * (2 * delay_ms / 1000.0) / PACKET_BYTES)


@dataclass
class Topology:
    """A topology file's content."""

    file: str
    topo_type: str
    left_subnet: str
    right_subnet: str
    links: list[Link]
    """Client side first, each side by its numbers."""
    warnings: list[str]

    def side(self, side: str) -> list[Link]:
        """The links of a side, in the order of their numbers."""
        return [link for link in self.links if link.type == side]


def parse_topo(text: str, file: str) -> Topology:
    """Reads a topology file; raises ScenarioError with every fault found."""
    single: dict[str, Line] = {}
    paths: list[Line] = []
    changes: list[Line] = []
    errors: list[ScenarioError] = []
    warnings: list[str] = []
    for line in read_lines(text, file):
        numbered = _NUMBERED.fullmatch(line.key)
        if line.key in _KEYS and line.key in single:
            errors.append(line.error(f"'{line.key}' is given twice"))
        elif line.key in _KEYS:
            single[line.key] = line
        elif numbered is None:
            warnings.append(line.unknown([*_KEYS, *_EXAMPLES]))
        else:
            (paths if numbered["what"] == "path" else changes).append(line)
    links: dict[tuple[str, int], Link] = {}
    for line in paths:
        try:
            link = _link(line)
            if (link.type, link.id) in links:
                raise line.error(f"'{line.key}' is given twice")
            links[link.type, link.id] = link
        except ScenarioError as error:
            errors.append(error)
    try:
        switched_on = "changeNetem" in single and single["changeNetem"].value == "yes"
        _changes(changes, links, switched_on=switched_on)
        topology = _topology(file, single, links)
    except ScenarioError as error:
        errors.append(error)
    if errors:
        raise ScenarioError.collect(errors)
    topology.warnings.extend(warnings)
    if changes and not switched_on:
        topology.warnings.append(f"{changes[0].key} has no effect without changeNetem:yes")
    return topology


def _topology(file: str, single: dict[str, Line], links: dict[tuple[str, int], Link]) -> Topology:
    kind = single.get("topoType")
    if kind is None:
        raise ScenarioError("'topoType' is missing", file)
    if kind.value not in TYPES:
        hint = nearest(kind.value, TYPES)
        message = f"unknown topoType '{kind.value}'"
        raise kind.error(message if hint else f"{message}; there is {', '.join(TYPES)}", hint)
    subnets = {"leftSubnet": "10.1.", "rightSubnet": "10.2."}
    for key in subnets:
        if key in single:
            subnets[key] = single[key].value
            if not _SUBNET.fullmatch(subnets[key]):
                raise single[key].error(
                    f"{key}: {subnets[key]!r} is not the first two bytes of an address, as in '10.0.'"
                )
    ordered = [links[key] for key in sorted(links)]
    for side in SIDES:
        numbers = [link.id for link in ordered if link.type == side]
        if numbers != list(range(len(numbers))):
            raise ScenarioError(f"the paths {side} must be numbered from 0 without gaps, not {numbers}", file)
    if not any(link.type == "c2r" for link in ordered):
        raise ScenarioError("there is no path_c2r_0: the client has no link", file)
    return Topology(file, kind.value, subnets["leftSubnet"], subnets["rightSubnet"], ordered, [])


def _link(line: Line) -> Link:
    match = _NUMBERED.fullmatch(line.key)
    assert match is not None
    parts = line.value.split(",")
    if not 2 <= len(parts) <= 5:
        raise line.error(f"{line.key}: expected delay,queue,rate[,loss[,backup]] or delay,rate, not {line.value!r}")
    delay = line.read(not_negative, "a delay in milliseconds", parts[0])
    rate = line.read(positive, "a rate in Mbps greater than zero", parts[1 if len(parts) == 2 else 2])
    if len(parts) == 2:
        queue = packets_of_round_trip(delay, rate)
    else:
        queue = line.read(count, "a queue length in packets", parts[1])
    loss = line.read(_percentage, "a loss in percent", parts[3]) if len(parts) > 3 else 0.0
    backup = line.read(switch, "0 or 1 for backup", parts[4]) if len(parts) > 4 else False
    return Link(match["side"], int(match["number"]), delay, queue, rate, loss, int(backup), line=line)


def _percentage(text: str) -> float:
    number = not_negative(text)
    if number > 100:
        raise ValueError(text)
    return number


def _changes(lines: list[Line], links: dict[tuple[str, int], Link], *, switched_on: bool) -> None:
    for line in lines:
        match = _NUMBERED.fullmatch(line.key)
        assert match is not None
        link = links.get((match["side"], int(match["number"])))
        if link is None:
            known = [f"netemAt_{side}_{number}" for side, number in links]
            raise line.error(
                f"{line.key}: there is no path_{match['side']}_{match['number']}", nearest(line.key, known)
            )
        at, comma, arguments = line.value.partition(",")
        if not comma:
            raise line.error(f"{line.key}: expected seconds,netem arguments, not {line.value!r}")
        seconds = line.read(not_negative, "a time in seconds", at)
        if link.netem_at and seconds <= link.netem_at[-1].at:
            raise line.error(f"{line.key}: {at} s is not after the change before it")
        if switched_on:
            link.netem_at.append(NetemAt(seconds, arguments, line))
