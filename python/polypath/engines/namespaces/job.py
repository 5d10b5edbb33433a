"""The run as a job file for the guest: what starts and changes at which time."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from polypath.engines.base import Captures, EngineError
from polypath.engines.namespaces import applications, commands, paths
from polypath.engines.namespaces.kernel import Kernel
from polypath.engines.namespaces.paths import NUMBER, Endpoint, Paths
from polypath.engines.namespaces.setup import Setup
from polypath.engines.namespaces.topology import End, Network, namespace
from polypath.engines.namespaces.wires import Wires, changes
from polypath.plan.access import ENDS, WAYS
from polypath.results import layout

if TYPE_CHECKING:
    from polypath.plan.types import EndpointAction, Event, FullmeshAction, InterfaceAction, LinkAction, PriorityAction

#: Servers and observers are started so long before the origin.
_BEFORE = -500_000_000


@dataclass(frozen=True)
class Capture:
    """A file and the devices whose packets it gets: namespace, device, name."""

    file: str
    taps: tuple[tuple[str, str, str], ...]


class Job:
    """Files for the run's folder, by name. Raises EngineError."""

    def __init__(self, network: Network, wires: Wires, setup: Setup, kernel: Kernel, captures: Captures) -> None:
        self.network = network
        self.plan = network.plan
        self.wires = wires
        self.setup = setup
        self.kernel = kernel
        self._there = {*map(namespace, wires.nodes), *wires.namespaces()}
        self.captures = list(_captures(network, captures))
        self._require_devices()
        #: For each link's direction, when it had which rate: (time in ns, bit/s).
        self.rates: dict[tuple[int, str], list[tuple[int, int | None]]] = {}
        self._down: set[End] = set()
        #: Interfaces that are down and whose addresses the path manager kept.
        self._kept: set[End] = set()
        #: Of interfaces whose endpoints changed, whether they have a flag.
        self._flags: dict[End, dict[str, bool]] = {}
        #: Interfaces whose endpoints were added again, perhaps with other numbers.
        self._again: set[End] = set()
        #: Interfaces whose endpoints were flushed, until they come back.
        self._flushed: set[End] = set()
        self.files: dict[str, str] = commands.files(self.plan) | applications.files(self.plan, kernel)
        lines = [*self._observers(), *self._applications(), *self._events()]
        if any(program["ends_run"] for program in commands.used(self.plan)):
            lines = [(at, "helper" if kind == "app" else kind, rest) for at, kind, rest in lines]
        lines += commands.lines(self.plan)
        lines = [line for line in lines if self._is_here(*line[1:])]
        lines.sort(key=lambda line: line[0])
        # servers alone run to the end
        waited = sum(kind == "app" for _, kind, _ in lines) or len(commands.used(self.plan))
        for words in self.wires.bridges():
            lines.insert(0, (_BEFORE, "bridge", words if waited else f"{words} over=1"))
            waited += 1
        text = [f"end {self.plan['duration_ns']} {waited}", *(f"{kind} {at} {rest}" for at, kind, rest in lines)]
        self.files["job"] = "\n".join(text) + "\n"
        self.files["collect.sh"] = self._collect()

    def _is_here(self, kind: str, rest: str) -> bool:
        """Whether a line of the job is for one of the namespaces that there are."""
        words = rest.split()
        if words[0] == "-":
            return all(tap.partition(":")[0] in self._there for tap in words[3:])
        return words[2 if kind == "event" else 0] in self._there

    def _require_devices(self) -> None:
        """Raises EngineError for a capture at a node that is no namespace."""
        if not self.wires.whole:
            return
        for capture in self.captures:
            if any(space not in self._there for space, _, _ in capture.taps):
                raise EngineError(
                    f"{capture.file} would be captured at a router, which is simulated here; there is --pcap hosts"
                )

    def take_captures(self, out: Path, directory: Path | None) -> None:
        """Copies the captures that the run left in `out`."""
        if directory is None:
            return
        for index, capture in enumerate(self.captures):
            written = out / f"capture-{index}"
            if written.is_file():
                shutil.copyfile(written, directory / capture.file)

    def captured(self, out: Path) -> list[Path]:
        """The captures that the run left in `out`."""
        return [path for index in range(len(self.captures)) if (path := out / f"capture-{index}").is_file()]

    def _observers(self) -> Iterator[tuple[int, str, str]]:
        interval = self.plan["record"]["interval_ns"]
        for observer in self.wires.observers(interval):
            yield _BEFORE, "helper", observer
        for node, table in enumerate(self.network.nodes):
            if table["kind"] == "host":
                options = paths.of_host(self.network, self.kernel, node).userspace
                yield _BEFORE, "helper", f"{namespace(node)} paths log=out/paths-{node} {options}".rstrip()
        for index, capture in enumerate(self.captures):
            taps = " ".join(":".join(tap) for tap in capture.taps)
            yield _BEFORE, "helper", f"- capture out/capture-{index} {taps}"

    def managers(self) -> Iterator[tuple[int, str, str]]:
        """Those of the observers that manage the paths of their host."""
        for node, table in enumerate(self.network.nodes):
            if table["kind"] == "host" and (options := paths.of_host(self.network, self.kernel, node).userspace):
                yield _BEFORE, "helper", f"{namespace(node)} paths log=out/paths-{node} {options}"

    def _applications(self) -> Iterator[tuple[int, str, str]]:
        for index, application in enumerate(self.plan["applications"]):
            transport = application["transport"]
            if transport != "icmp":
                kind = "helper" if transport == "udp" else "app"
                command = applications.command(self.plan, self.kernel, index, "server")
                yield _BEFORE, kind, f"{namespace(application['server'])} {command}"
            if client := applications.client(self.plan, self.kernel, index):
                yield application["start_ns"], "app", f"{namespace(application['client'])} {client}"

    def _events(self) -> Iterator[tuple[int, str, str]]:
        for index, link in enumerate(self.network.links):
            for direction in ("forward", "backward"):
                self.rates[index, direction] = [(0, link[direction]["rate_bps"])]
        for number, event in sorted(enumerate(self.plan["events"]), key=lambda each: each[1]["at_ns"]):
            if command := self.change(number, event):
                yield event["at_ns"], "event", command

    def change(self, number: int, event: Event) -> str | None:
        """The command that executes an event of the Plan, with its files added; None if the event needs no command.
        Raises EngineError.
        """
        action, at = event["action"], event["at_ns"]
        match action["kind"]:
            case "link":
                return self._change_link(number, at, action)
            case "interface":
                return self._change_interface(number, action)
            case "flush":
                return self._flush(action["node"])
            case "priority":
                return self._change_flag(number, action, "backup", action["backup"])
            case "fullmesh":
                return self._change_flag(number, action, "fullmesh", action["fullmesh"])
            case "endpoint":
                return self._change_endpoints(number, action)
            case "migrate":
                return None

    def _change_link(self, number: int, at: int, action: LinkAction) -> str | None:
        link, changed = action["link"], changes(action)
        for direction in WAYS:
            if "rate_bps" in changed and action["direction"] in ("both", direction):
                self.rates[link, direction].append((at, changed["rate_bps"]))
        return self.wires.change(number, action, self.files)

    def _change_interface(self, number: int, action: InterfaceAction) -> str | None:
        end = End(action["node"], action["interface"])
        if action["up"] == (end not in self._down):
            return None
        self._down ^= {end}
        device = self.network.device(end)
        of_host = self._paths(end.node)
        if end in self._down and of_host.keeps_last and not self._others_up(end):
            self._kept.add(end)
        leaving = [each for each in self._endpoints(end) if each.leaves and end not in self._kept]
        if end in self._flushed:
            leaving = leaving if action["up"] else []
            self._flushed -= {end} if action["up"] else set()
        if end not in self._kept:
            self._require_endpoints(end.node)
        if action["up"]:
            self._kept.discard(end)
            found = [self._batch(end, number, [f"link set {device} up", *self.setup.revival[end]])]
            found += [self._add_again(end, number, leaving)]
        elif end in self._again:
            found = [self._delete(end, number, leaving), self._batch(end, number, [f"link set {device} down"])]
        else:
            deleted = [endpoint.delete() for endpoint in leaving]
            found = [self._batch(end, number, [*deleted, f"link set {device} down"])]
        return self._one_after_the_other(end, found)

    def _require_endpoints(self, node: int) -> None:
        """Raises EngineError where a host's connections would not be told of an event."""
        of = [each for each in self.plan["applications"] if node in (each["client"], each["server"])]
        single = of and all(each["transport"] != "mptcp" for each in of) and not self.plan.get("programs")
        table = self.network.nodes[node]
        if not table["stack"] or single or not paths.of_host(self.network, self.kernel, node).userspace:
            return
        name = table["stack"]["path_manager"]["name"]
        raise EngineError(
            f"{name} of host {table['name']} is a path manager in user space here, which does not follow interfaces"
            " that change (engine sim's does); fullmesh with one subflow for a pair of addresses is the kernel's own"
        )

    def _others_up(self, end: End) -> bool:
        return any(other != end and other not in self._down for other in self.network.ends(end.node))

    def _paths(self, node: int) -> Paths:
        """Those of a host; a router has none."""
        routes = not self.network.nodes[node]["stack"]
        return Paths(0) if routes else paths.of_host(self.network, self.kernel, node)

    def _endpoints(self, end: End) -> list[Endpoint]:
        """Those of an interface with the flags of now, in the order of its addresses as in the simulator."""
        addresses = self.network.nodes[end.node]["interfaces"][end.interface]["addresses"]
        endpoints = sorted(self._paths(end.node).endpoints.get(end, []), key=lambda each: addresses.index(each.address))
        return [endpoint.changed(self._flags.get(end, {})) for endpoint in endpoints]

    def _flush(self, node: int) -> str:
        self._flushed.update(end for end in self.network.ends(node) if end not in self._down)
        return f"ip -n {namespace(node)} mptcp endpoint flush"

    def _change_endpoints(self, number: int, action: EndpointAction) -> str | None:
        end = End(action["node"], action["interface"])
        endpoints = [each for each in self._endpoints(end) if each.leaves]
        if action["endpoint"] == (end not in self._flushed) or end in self._down or not endpoints:
            return None
        self._flushed ^= {end}
        change = self._add_again if action["endpoint"] else self._delete
        return self._one_after_the_other(end, [change(end, number, endpoints)])

    def _one_after_the_other(self, end: End, commands: Sequence[str]) -> str | None:
        """A command of these; None at a node that is not here."""
        return " && ".join(filter(None, commands)) if end.node in self.wires.nodes else None

    def _batch(self, end: End, number: int, lines: Sequence[str]) -> str:
        name = f"event-{number}.batch"
        self.files[name] = "\n".join(lines) + "\n"
        return f"ip -n {namespace(end.node)} -force -batch {name}"

    def _script(self, end: End, number: int, lines: Iterable[str]) -> str:
        name = f"event-{number}.sh"
        self.files[name] = "\n".join(["set -e", NUMBER, *lines]) + "\n"
        return f"sh {name} {namespace(end.node)}"

    def _add_again(self, end: End, number: int, endpoints: Sequence[Endpoint]) -> str:
        if not endpoints:
            return ""
        self._again.add(end)
        return self._script(end, number, (each.add_again(f"ip -n {namespace(end.node)}") for each in endpoints))

    def _delete(self, end: End, number: int, endpoints: Sequence[Endpoint]) -> str:
        if not endpoints:
            return ""
        if end not in self._again:
            return self._batch(end, number, [each.delete() for each in endpoints])
        return self._script(end, number, (each.delete_again(f"ip -n {namespace(end.node)}") for each in endpoints))

    def _change_flag(self, number: int, action: PriorityAction | FullmeshAction, flag: str, is_set: bool) -> str | None:
        end = End(action["node"], action["interface"])
        self._require_endpoints(end.node)
        self._flags.setdefault(end, {})[flag] = is_set
        # Those that have left return as asked for here.
        gone = end in (self._down - self._kept) | self._flushed
        endpoints = [each for each in self._endpoints(end) if not (gone and each.leaves)]
        if not endpoints:
            return None
        ip = f"ip -n {namespace(end.node)}"
        if end in self._again:
            return self._script(end, number, (endpoint.change_again(ip) for endpoint in endpoints))
        return self._batch(end, number, [endpoint.change() for endpoint in endpoints])

    def _collect(self) -> str:
        hosts = [node for node in self.wires.nodes if self.network.is_host(node)]
        return "".join(
            f"ip netns exec {namespace(node)} cat /proc/net/snmp /proc/net/netstat > out/counters-{node}\n"
            for node in hosts
        )


def _captures(network: Network, captures: Captures) -> Iterator[Capture]:
    if captures == "hosts":
        for node, table in enumerate(network.nodes):
            if table["kind"] == "host":
                taps = tuple(_tap(network, end) for end in network.ends(node))
                if taps:
                    yield Capture(layout.capture(table["name"]), taps)
    elif captures == "links":
        for link in network.links:
            ends = (End(link[side]["node"], link[side]["interface"]) for side in ENDS)
            yield Capture(layout.capture(link["name"]), tuple(_tap(network, end, True) for end in ends))


def _tap(network: Network, end: End, qualified: bool = False) -> tuple[str, str, str]:
    device = network.device(end)
    name = f"{network.nodes[end.node]['name']}-{device}" if qualified else device
    return namespace(end.node), device, "".join(letter if letter.isalnum() else "-" for letter in name)
