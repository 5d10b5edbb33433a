"""Conversion of a resolved scenario to the Plan: names become positions, text becomes SI numbers."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polypath import registry
from polypath.plan import shared
from polypath.plan.access import SIDES
from polypath.plan.access import stack as stack_of
from polypath.scenario import declared, script
from polypath.scenario.algorithms import resolved
from polypath.scenario.errors import ScenarioError
from polypath.scenario.links import has_rate_of_its_own, rates_given
from polypath.scenario.models import Discipline, LossModel
from polypath.scenario.network import ETHERNET_BYTES, Channel, Host, Interface, Link
from polypath.scenario.reading import read_text
from polypath.scenario.stack import ALGORITHMS, BUFFERS, OURS, SETTINGS, Stack, settings
from polypath.scenario.tables import Tables, attachments, between_hosts, commands, directions, split_end
from polypath.scenario.traces import DeliveryTrace
from polypath.scenario.traffic import QUIC, Application, Event, MeasuredApplication, Page, Relay, Tunnel
from polypath.scenario.wifi import Medium, highest_rate_bps, overhead_bytes

if TYPE_CHECKING:
    from polypath.plan.data import PlanData

VERSION = 1
DEFAULT_QUEUE_PACKETS = 1000
ANYWHERE = {4: "0.0.0.0", 6: "::"}


class Plan:
    """The only input of an engine, as JSON data that nobody changes any more."""

    def __init__(self, data: dict[str, Any]) -> None:
        encoded = partial(json.dumps, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        self._text, self._parts = shared.written(data, encoded)

    @property
    def data(self) -> Any:
        """The plan as the engine reads it; a copy, to be changed at will."""
        return json.loads(self.json())

    @cached_property
    def view(self) -> PlanData:
        """The plan as the engine reads it, read once: for those who change nothing in it."""
        read: PlanData = shared.read(self._text, self._parts)
        return read

    def __getstate__(self) -> dict[str, Any]:
        return {"_text": self._text, "_parts": self._parts}

    @property
    def has_quic(self) -> bool:
        """Whether some application runs over QUIC."""
        return any(application["transport"] in QUIC for application in self.view["applications"])

    @property
    def stacks_by_others(self) -> tuple[str, ...]:
        """The names of the stacks by others that ends of QUIC are, in order of name."""
        names = {
            found.get("stack")
            for application in self.view["applications"]
            if application["transport"] in QUIC
            for side in SIDES
            if (found := stack_of(self.view, application, side)) is not None
        }
        return tuple(sorted(name for name in names if name is not None and name != OURS))

    def json(self) -> str:
        """Canonical JSON: sorted keys, no spaces."""
        return shared.whole(self._text, self._parts)

    def sha256(self) -> str:
        """The hash of the canonical JSON, in hexadecimal."""
        return hashlib.sha256(self.json().encode()).hexdigest()

    def save(self, path: Path) -> None:
        """Writes the canonical JSON; the file appears whole or not at all. Raises OSError."""
        beside = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            beside.write_text(self.json() + "\n", encoding="utf-8")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: Path) -> Plan:
        """Reads a saved plan; raises ScenarioError when it is none. The engine judges what is in it."""
        text = read_text(path, "plan")
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            line = error.lineno if isinstance(error, json.JSONDecodeError) else None
            raise ScenarioError("this is no plan: not JSON", str(path), line) from error
        version = data.get("version") if isinstance(data, dict) else None
        if version != VERSION:
            raise ScenarioError(f"this is no plan of version {VERSION}", str(path))
        try:
            return cls(data)
        except ValueError as error:
            raise ScenarioError("this is no plan: a number is not finite", str(path)) from error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and other.json() == self.json()

    def __hash__(self) -> int:
        return hash(self.json())

    def __repr__(self) -> str:
        return f"Plan({self.view['name']!r}, sha256={self.sha256()[:12]})"


def build(tables: Tables) -> Plan:
    """The plan of a resolved scenario."""
    return Plan(_Builder(tables).data())


def actions(tables: Tables, event: Event) -> list[dict[str, Any]]:
    """The changes that an event means, as a plan has them."""
    return _Builder(tables).actions(event)


class _Builder:
    """Knows the position of each name."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.kinds = {
            **dict.fromkeys(tables.host, "host"),
            **dict.fromkeys(tables.router, "router"),
            **dict.fromkeys(tables.switch, "switch"),
        }
        self.node = {name: index for index, name in enumerate(self.kinds)}
        self.link = {name: index for index, name in enumerate(tables.link)}
        self.given_rates = rates_given(tables)
        self.interfaces: dict[str, dict[str, Interface]] = {
            **{name: host.interface for name, host in tables.host.items()},
            **{name: router.interface for name, router in tables.router.items()},
            **{name: {} for name in tables.switch},
        }
        for link in tables.link.values():
            for node, interface in map(split_end, link.ends):
                assert interface is not None
                self.interfaces[node].setdefault(interface, Interface.empty())
        self.stacks: dict[tuple[int, ...], dict[str, Any]] = {}
        self.interface = {name: {one: i for i, one in enumerate(group)} for name, group in self.interfaces.items()}

    def data(self) -> dict[str, Any]:
        tables = self.tables
        return {
            "version": VERSION,
            "name": tables.name,
            "seed": tables.seed,
            "duration_ns": tables.duration,
            "nodes": [self._node(name) for name in self.node],
            "links": [
                {
                    "name": name,
                    "a": self._end(link.ends[0]),
                    "b": self._end(link.ends[1]),
                    **self._directions(name, link),
                    **_middleboxes(link),
                    **_contract(link),
                }
                for name, link in tables.link.items()
            ],
            **({"media": [{"name": name} for name in tables.medium]} if tables.medium else {}),
            "routes": self._routes() + self._source_routes(),
            "routing": tables.routing,
            **self._kernels(),
            **({} if tables.controller is None else {"controller": tables.controller.plan()}),
            **({} if tables.bridging is None else {"bridging": tables.bridging.plan(self.node)}),
            "applications": [self._application(application) for _, application in between_hosts(tables)],
            **self._programs(),
            "events": self._events(),
            "record": {
                "interval_ns": tables.record.interval,
                "segments": tables.record.segments,
                "decisions": tables.record.decisions,
                **({"account": True} if tables.record.account else {}),
                "memory_bytes": tables.record.memory,
                **({"snaplen": tables.record.snaplen} if tables.record.snaplen is not None else {}),
            },
        }

    def _kernels(self) -> dict[str, dict[str, str]]:
        """Hosts with kernels of their own, by name; a plan without them does not name them."""
        found = {name: host.kernel for name, host in self.tables.host.items() if host.kernel is not None}
        return {"kernels": found} if found else {}

    def _node(self, name: str) -> dict[str, Any]:
        host = self.tables.host.get(name)
        return {
            "name": name,
            "kind": self.kinds[name],
            **({"forwards": True} if host is not None and host.forwards else {}),
            "interfaces": [
                {
                    "name": interface,
                    "addresses": [str(address) for address in table.address or []],
                    "backup": table.backup,
                }
                for interface, table in self.interfaces[name].items()
            ],
            "stack": None if host is None else self._host_stack(host),
        }

    def _host_stack(self, host: Host) -> dict[str, Any]:
        """Hosts that share all settings share what is made of them."""
        key = tuple(id(getattr(host, name)) for name in SETTINGS)
        if key not in self.stacks:
            self.stacks[key] = _stack(host)
        return self.stacks[key]

    def _directions(self, name: str, link: Link) -> dict[str, dict[str, Any]]:
        pairs = zip(("forward", "backward"), link.ends, directions(link), strict=True)
        return {
            key: {
                **_channel(side, self.tables.medium, (name, key) in self.given_rates),
                **self._place_of_queue(end, side),
            }
            for key, end, side in pairs
        }

    def _place_of_queue(self, begin: str, channel: Channel) -> dict[str, str]:
        where = channel.queue_at or "link"
        at_host = where != "link" and split_end(begin)[0] in self.tables.host
        return {"queue_at": where} if at_host else {}

    def _end(self, end: str) -> dict[str, int]:
        node, interface = split_end(end)
        assert interface is not None
        return {"node": self.node[node], "interface": self.interface[node][interface]}

    def _routes(self) -> list[dict[str, Any]]:
        return [
            {
                "node": self.node[route.node],
                "source": None
                if route.source is None
                else _prefix(route.source.network_address, route.source.prefixlen),
                "destination": _prefix(route.destination.network_address, route.destination.prefixlen),
                "interface": self.interface[route.node][route.interface],
            }
            for route in self.tables.route
        ]

    def _source_routes(self) -> list[dict[str, Any]]:
        """What a multihomed host has as policy rules: packets leave by the interface that owns their source address."""
        return [
            {
                "node": self.node[name],
                "source": _prefix(address, address.max_prefixlen),
                "destination": _prefix(ANYWHERE[address.version], 0),
                "interface": index,
            }
            for name, host in self.tables.host.items()
            if len(host.interface) > 1
            for index, interface in enumerate(host.interface.values())
            for address in interface.address or []
        ]

    def _programs(self) -> dict[str, Any]:
        """The machine's programs; a plan without them does not name them."""
        found = [
            {
                "name": program.name,
                "host": self.node[program.host],
                "transport": program.transport,
                "command": ["sh", "-c", program.command] if isinstance(program.command, str) else program.command,
                "start_ns": program.start,
                "background": program.background,
                "ends_run": program.ends_run,
                "environment": program.environment,
                "files": script.texts(program.files),
            }
            for _, program in commands(self.tables)
        ]
        return {"programs": found} if found else {}

    def _application(self, application: Application) -> dict[str, Any]:
        stacks = (application.client_stack, application.server_stack)
        return {
            "name": application.name,
            "client": self.node[application.client],
            "server": self.node[application.server],
            "transport": application.transport,
            "source": str(application.source),
            "destination": str(application.destination),
            "port": application.port,
            "start_ns": application.start,
            **{
                f"{side}_stack": _stack(stack) if settings(stack) else None
                for side, stack in zip(("client", "server"), stacks, strict=True)
            },
            **_program(application),
            **({} if application.group is None else {"group": application.group}),
            "work": {"kind": application.kind, **self._work(application)},
        }

    def _work(self, application: Application) -> dict[str, Any]:
        if isinstance(application, Page):
            return self._page(application)
        if isinstance(application, Relay):
            return {"of": self._place(application.of)}
        planned = application.planned(self.tables.duration - application.start)
        return planned | {"link": self.link[application.link]} if isinstance(application, Tunnel) else planned

    def _place(self, name: str) -> int:
        """Where an application stands in the plan."""
        return [application.name for _, application in between_hosts(self.tables)].index(name)

    def _page(self, page: Page) -> dict[str, Any]:
        if page.of is not None:
            return {"of": self._place(page.of)}
        objects = page.wanted()
        place = {each.name: number for number, each in enumerate(objects)}
        return {
            "objects": [
                {
                    "name": each.name,
                    "path": each.path,
                    "size_bytes": each.size,
                    "after": sorted({place[name] for name in each.after}),
                    "think_ns": each.think_ns,
                }
                for each in objects
            ]
        }

    def _events(self) -> list[dict[str, Any]]:
        own = [(event.at, action) for event in self.tables.event for action in self.actions(event)]
        events = [*self._conditions(), *own]
        return [{"at_ns": at, "action": action} for at, action in sorted(events, key=lambda event: event[0])]

    def _conditions(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """What CSV files say of links, as changes; both directions in one where they are alike."""
        for name, link in self.tables.link.items():
            forward, backward = (side.conditions for side in directions(link))
            alike = forward == backward
            ways = (("both", forward),) if alike else (("forward", forward), ("backward", backward))
            for way, conditions in ways:
                for row in conditions.changes(self.tables.duration) if conditions is not None else ():
                    loss = row.values.get("loss")
                    changed = dict(row.values) | ({} if loss is None else {"loss": random_loss(loss)})
                    change = {**_UNCHANGED, "up": None, **changed}
                    yield row.time_ns, {"kind": "link", "link": self.link[name], "direction": way, **change}

    def actions(self, event: Event) -> list[dict[str, Any]]:
        if event.link is not None:
            return [
                {
                    "kind": "link",
                    "link": self.link[event.link],
                    "direction": event.direction,
                    "rate_bps": event.rate,
                    "delay_ns": event.delay,
                    "loss": None if event.loss is None else _loss(event.loss),
                    "queue": None if event.queue is None else event.queue.planned(),
                    "up": event.up,
                }
            ]
        if event.switch is not None:
            ends = attachments(self.tables)
            own = [name for name, pair in ends.items() if event.switch in (node for node, _ in pair)]
            change = {"kind": "link", "direction": "both", "up": event.up, **_UNCHANGED}
            return [{**change, "link": self.link[name]} for name in own]
        if event.host is not None:
            return [{"kind": "flush", "node": self.node[event.host]}]
        assert event.interface is not None
        end = self._end(event.interface)
        actions: list[dict[str, Any]] = []
        if event.migrate_to is not None:
            to = self._end(f"{split_end(event.interface)[0]}:{event.migrate_to}")["interface"]
            actions.append({"kind": "migrate", **end, "to": to})
        if event.backup is not None:
            actions.append({"kind": "priority", **end, "backup": event.backup})
        if event.fullmesh is not None:
            actions.append({"kind": "fullmesh", **end, "fullmesh": event.fullmesh})
        if event.endpoint is not None:
            actions.append({"kind": "endpoint", **end, "endpoint": event.endpoint})
        if event.up is not None:
            actions.append({"kind": "interface", **end, "up": event.up})
        return actions


_UNCHANGED = {"rate_bps": None, "delay_ns": None, "loss": None, "queue": None}


def _prefix(address: object, length: int) -> dict[str, Any]:
    return {"address": str(address), "length": length}


def _program(application: Application) -> dict[str, str]:
    """Who plays it, where it is not the project's own program."""
    if isinstance(application, MeasuredApplication) and application.program is not None:
        return {"program": application.program}
    return {}


def _middleboxes(link: Link) -> dict[str, Any]:
    return {"middleboxes": [resolved("middlebox", each) for each in link.middlebox]} if link.middlebox else {}


def _contract(link: Link) -> dict[str, Any]:
    """What its bytes cost and how many are included; a plan does not name what a link leaves out."""
    terms = {"price_per_gb": link.price_per_gb, "cap_bytes": link.cap}
    return {name: value for name, value in terms.items() if value is not None}


def _stack(stack: Stack) -> dict[str, Any]:
    assert stack.profile is not None
    profile = registry.find("profile", stack.profile)
    probing = {
        "time_ns": stack.keepalive_time,
        "interval_ns": stack.keepalive_interval,
        "probes": stack.keepalive_probes,
    }
    asked = stack.ack_frequency
    return {
        # A plan names only who is not Polypath.
        **({"stack": stack.stack} if stack.stack not in (None, OURS) else {}),
        "profile": stack.profile,
        **{name: resolved(kind, getattr(stack, name)) for name, kind in ALGORITHMS.items()},
        **{name: getattr(stack, name) for name in BUFFERS},
        **declared.planned(profile, {each.name: getattr(stack, each.name) for each in profile.parameters}),
        "keepalive": probing if stack.keepalive else None,
        "send_paths": stack.send_paths,
        **({"ack_frequency": asked.planned()} if asked is not None and asked.packets else {}),
    }


_NO_LOSS: Mapping[str, Any] = {"kind": "none"}


def _channel(channel: Channel, media: Mapping[str, Medium], given_rate: bool) -> dict[str, Any]:
    queue, conditions = channel.queue, channel.conditions
    usual_packets = DEFAULT_QUEUE_PACKETS if given_rate or has_rate_of_its_own(channel) else None
    initial = {} if conditions is None else conditions.initial()
    wifi = {} if channel.wifi is None else {"wifi": channel.wifi.plan(media)}
    usual = 0 if channel.trace else ETHERNET_BYTES
    if channel.wifi is not None:
        usual = overhead_bytes(channel.wifi.of(media))
    overhead = usual if channel.overhead is None else channel.overhead
    trace = {} if channel.trace is None else {"trace": channel.trace.plan()}
    return {
        "rate_bps": highest_rate_bps(wifi["wifi"]) if wifi else initial.get("rate_bps", mean_rate_bps(channel)),
        **trace,
        **wifi,
        **({"bypass_bytes": channel.bypass} if channel.bypass else {}),
        "delay_ns": initial.get("delay_ns", channel.delay or 0),
        "overhead_bytes": overhead,
        "burst_bytes": channel.burst or 0,
        "queue": queue.planned() if queue else Discipline.plan_of("drop-tail", packets=usual_packets),
        "loss": random_loss(initial["loss"]) if "loss" in initial else _loss(channel.loss),
        "jitter_ns": channel.jitter or 0,
        "reorder": channel.reorder or 0.0,
        "duplicate": channel.duplicate or 0.0,
        "corrupt": channel.corrupt or 0.0,
        "mtu": channel.mtu,
        "icmp": channel.icmp is not False,
        "up": channel.up is not False,
    }


def mean_rate_bps(channel: Channel) -> int | None:
    """The rate of a direction, or what its trace gives on average."""
    if isinstance(channel.rate, DeliveryTrace):
        return channel.rate.opportunities().mean_rate_bps(channel.overhead or 0)
    return channel.rate


def random_loss(share: float) -> Mapping[str, Any]:
    """What a plan says of a share of packets lost at random."""
    return LossModel.plan_of("random", probability=share) if share else _NO_LOSS


def _loss(loss: LossModel | None) -> Mapping[str, Any]:
    found = _NO_LOSS if loss is None else loss.planned()
    return _NO_LOSS if found.get("probability") == 0 else found
