"""A plan as the scenario that produces it: a failure that a campaign kept, or a result's plan.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from polypath import _core, registry, units
from polypath.scenario import Plan, Scenario, ScenarioError, declared, quic
from polypath.scenario.fields import is_fixed
from polypath.scenario.frequency import OFF
from polypath.scenario.models import BASES
from polypath.scenario.network import ETHERNET_BYTES
from polypath.scenario.script import NAME as SCRIPT
from polypath.scenario.stack import ALGORITHMS, BUFFERS, DEFAULT_PROFILE, of_profile
from polypath.scenario.traces import Opportunities
from polypath.scenario.wifi import highest_rate_bps

Data = Mapping[str, Any]

_SHARES: Final = frozenset({"error", "reorder", "duplicate", "corrupt", "safety"})
_KINDS: Final = ("host", "router", "switch")


def load(path: Path) -> Scenario:
    """The scenario of a plan's file.

    Raises ScenarioError where the file is no plan or one that the simulator refuses, and where no scenario has this
    plan, with the first difference.
    """
    return scenario_of(Plan.load(path), str(path))


def scenario_of(plan: Plan, filename: str) -> Scenario:
    """The scenario whose plan it is; `filename` is for errors. Raises ScenarioError as `load`, and for a plan that the
    simulator refuses."""
    if "capture" in plan.data:
        raise ScenarioError("no scenario has this plan: captures tell neither rates nor delays of links", filename)
    try:
        given = normal(plan.data)
        scenario = Scenario.from_data(_Writer(given).data())
    except ScenarioError as error:
        raise ScenarioError(f"no scenario has this plan: {error.message}", filename) from error
    except KeyError as error:
        raise ScenarioError(f"this is no whole plan: {error} is missing", filename) from error
    except (TypeError, IndexError, AttributeError, ValueError, ArithmeticError) as error:
        raise ScenarioError("this is no whole plan: something in it is not of its kind", filename) from error
    made = normal(scenario.plan().data)
    for one, other in zip(given["applications"], made["applications"], strict=True):
        # Where no address is given the engine takes the first, as a scenario does.
        one.update({end: other[end] for end in ("source", "destination") if one.get(end) is None})
    for place, wanted, found in _differences(given, made):
        raise ScenarioError(f"no scenario has this plan: {place} is {wanted!r}, and would be {found!r}", filename)
    network = Plan({name: value for name, value in plan.data.items() if name not in ("programs", "kernels")})
    if problem := _core.check(network.json()):
        raise ScenarioError(f"the simulator cannot run this plan: {problem}", filename)
    return scenario


def normal(plan: Data) -> dict[str, Any]:
    """A plan of the same run in normal form: without settings that change nothing, and with the parameters of every
    algorithm. Its nodes are in order of their kinds.
    """
    order = sorted(range(len(plan["nodes"])), key=lambda index: _KINDS.index(plan["nodes"][index]["kind"]))
    place = {old: new for new, old in enumerate(order)}

    def moved(owner: Data, *keys: str) -> dict[str, Any]:
        return {**owner, **{key: place[owner[key]] for key in keys if key in owner}}

    return {
        **plan,
        "nodes": [{**plan["nodes"][old], "stack": _normal_stack(plan["nodes"][old].get("stack"))} for old in order],
        "links": [
            {
                **link,
                "a": moved(link["a"], "node"),
                "b": moved(link["b"], "node"),
                "forward": _normal_channel(link["forward"]),
                "backward": _normal_channel(link["backward"]),
                "middleboxes": [_normal_choice("middlebox", each) for each in link.get("middleboxes", [])],
            }
            for link in plan["links"]
        ],
        "routes": [moved(route, "node") for route in plan.get("routes", []) if not _is_own(route, plan["nodes"])],
        "applications": [
            {
                **moved(each, "client", "server"),
                **{
                    f"{side}_stack": _own_stack(each, side, plan["nodes"][each[side]]["stack"])
                    for side in ("client", "server")
                },
            }
            for each in plan["applications"]
        ],
        "events": [
            {**event, "action": moved(event["action"], "node")} for event in plan["events"] if _changes(event["action"])
        ],
    }


def _is_own(route: Data, nodes: Sequence[Data]) -> bool:
    """Whether it is the rule of a multihomed host for an address of its own, which the engine has anyway."""
    interfaces = nodes[route["node"]]["interfaces"]
    everywhere = route["destination"]["length"] == 0
    source = route["source"]
    return everywhere and source is not None and source["address"] in interfaces[route["interface"]]["addresses"]


def _own_stack(application: Data, side: str, host: Data) -> dict[str, Any] | None:
    """The stack of an application's end, without what its transport has no use of; None where it is the host's."""
    own, usual = _normal_stack(application.get(f"{side}_stack")), _normal_stack(host)
    if own is None or usual is None:
        return own
    unused = quic.without_effect(application["transport"])
    own |= {name: value for name, value in usual.items() if name.removesuffix("_ns") in unused}
    if own["keepalive"] and unused & {"keepalive_interval", "keepalive_probes"}:
        probing = usual["keepalive"] or _probing(usual["profile"])
        own["keepalive"] = {**probing, "time_ns": own["keepalive"]["time_ns"]}
    return None if own == usual else own


def _normal_stack(stack: Data | None) -> dict[str, Any] | None:
    if stack is None:
        return None
    chosen = {name: _normal_choice(kind, stack[name]) for name, kind in ALGORITHMS.items()}
    known = registry.find("profile", stack["profile"]).parameters
    left_out = {each.field: each.default for each in known if stack.get(each.field) is None}
    asked = {"max_delay_ns": None, **(stack.get("ack_frequency") or OFF.planned())}
    return {**stack, **chosen, **left_out, "send_paths": stack.get("send_paths") or [], "ack_frequency": asked}


def _normal_choice(kind: registry.Kind, choice: Data) -> dict[str, Any]:
    if choice["name"] == SCRIPT:
        raise ScenarioError("it has an algorithm in Python, whose file is not known")
    return {"name": choice["name"], "parameters": registry.resolve(kind, choice["name"], choice.get("parameters", {}))}


def _normal_channel(channel: Data) -> dict[str, Any]:
    if channel.get("trace") is not None:
        overhead = channel.get("overhead_bytes", ETHERNET_BYTES)
        mean = _opportunities(channel["trace"]).mean_rate_bps(overhead)
        return {**channel, "rate_bps": channel.get("rate_bps") or mean}
    if channel.get("wifi") is not None:
        return {**channel, "rate_bps": channel.get("rate_bps") or highest_rate_bps(channel["wifi"])}
    if channel.get("rate_bps") is None:
        return {name: value for name, value in channel.items() if name != "queue_at"}
    return dict(channel)


def _changes(action: Data) -> bool:
    """An event of a link may change nothing of it."""
    return action["kind"] != "link" or any(
        value is not None for name, value in action.items() if name not in ("kind", "link", "direction")
    )


class _Writer:
    """Says what a plan has by position by its names."""

    def __init__(self, plan: Data) -> None:
        self.plan = plan
        self.nodes = plan["nodes"]
        self.links = plan["links"]

    def data(self) -> dict[str, Any]:
        plan = self.plan
        if "controller" in plan:
            raise ScenarioError("its controller is not turned into a scenario")
        if "bridging" in plan:
            raise ScenarioError("its bridges are not turned into a scenario")
        by_kind = {kind: [node for node in self.nodes if node["kind"] == kind] for kind in _KINDS}
        written = {
            "name": _name(plan["name"]),
            "seed": plan["seed"],
            "duration": units.TIME.format(plan["duration_ns"]),
            "routing": plan.get("routing"),
            "host": {node["name"]: self._host(node) for node in by_kind["host"]},
            "router": {node["name"]: _interfaces(node) for node in by_kind["router"]},
            "switch": {node["name"]: {} for node in by_kind["switch"]},
            "medium": {medium["name"]: {} for medium in plan.get("media", ())},
            "link": {link["name"]: self._link(link) for link in self.links},
            "route": [self._route(route) for route in plan["routes"]],
            "application": [
                *(self._application(each) for each in plan["applications"]),
                *(self._program(each) for each in plan.get("programs", ())),
            ],
            "event": [self._event(each) for each in plan["events"]],
            "record": _fields(plan["record"]),
        }
        return {name: value for name, value in written.items() if value not in (None, {}, [])}

    def _host(self, node: Data) -> dict[str, Any]:
        forwards = {"forwards": True} if node.get("forwards") else {}
        chosen = self.plan.get("kernels", {}).get(node["name"])
        kernel = {} if chosen is None else {"kernel": chosen}
        return {**_stack(node["stack"]), **kernel, **forwards, **_interfaces(node)}

    def _end(self, end: Data) -> str:
        node = self.nodes[end["node"]]
        return f"{node['name']}:{node['interfaces'][end['interface']]['name']}"

    def _link(self, link: Data) -> dict[str, Any]:
        forward, backward = (self._channel(link[side]) for side in ("forward", "backward"))
        both = {name: value for name, value in forward.items() if name in backward and backward[name] == value}
        own = {
            "forward": {name: value for name, value in forward.items() if name not in both},
            "backward": {name: value for name, value in backward.items() if name not in both},
        }
        boxes = [_algorithm(each) for each in link.get("middleboxes", [])]
        return {
            "ends": [self._end(link["a"]), self._end(link["b"])],
            **both,
            **({"middlebox": boxes} if boxes else {}),
            **({"price_per_gb": link["price_per_gb"]} if link.get("price_per_gb") is not None else {}),
            **({"cap": units.SIZE.format(link["cap_bytes"])} if link.get("cap_bytes") is not None else {}),
            **{side: value for side, value in own.items() if value},
        }

    def _channel(self, channel: Data) -> dict[str, Any]:
        written = _channel(channel)
        wifi = written.pop("wifi", None)
        return written if wifi is None else {**written, "wifi": _wifi(wifi, self.plan.get("media", ()))}

    def _route(self, route: Data) -> dict[str, Any]:
        node = self.nodes[route["node"]]
        source = {} if route["source"] is None else {"source": _prefix(route["source"])}
        return {
            "node": node["name"],
            **source,
            "destination": _prefix(route["destination"]),
            "interface": node["interfaces"][route["interface"]]["name"],
        }

    def _application(self, application: Data) -> dict[str, Any]:
        plain = ("name", "transport", "source", "destination", "port", "program", "group")
        work = application["work"]
        return {
            "kind": work["kind"],
            **{name: value for name in plain if (value := application.get(name)) is not None},
            "client": self.nodes[application["client"]]["name"],
            "server": self.nodes[application["server"]]["name"],
            "start": units.TIME.format(application["start_ns"]),
            **self._work(work),
            **{
                f"{side}_stack": _settings(_beyond(stack, self.nodes[application[side]]["stack"]))
                for side in ("client", "server")
                if (stack := application[f"{side}_stack"]) is not None
            },
        }

    def _work(self, work: Data) -> dict[str, Any]:
        if work["kind"] != "tunnel":
            return _work(work, self.plan["applications"])
        if work["link"] >= len(self.links):
            raise ScenarioError("a tunnel carries packets of a link that there is not")
        settings = declared.written(registry.find("application", "tunnel"), work)
        return {**settings, "link": self.links[work["link"]]["name"]}

    def _program(self, program: Data) -> dict[str, Any]:
        if program["files"]:
            raise ScenarioError(f"program '{program['name']}' is given files, which stand beside a scenario")
        own = {name: value for name, value in program.items() if name not in ("files", "start_ns")}
        return {
            **own,
            "kind": "command",
            "host": self.nodes[program["host"]]["name"],
            "start": units.TIME.format(program["start_ns"]),
        }

    def _event(self, event: Data) -> dict[str, Any]:
        action = dict(event["action"])
        at = {"at": units.TIME.format(event["at_ns"])}
        kind = action.pop("kind")
        if kind == "link":
            link = self.links[action.pop("link")]["name"]
            return {**at, "link": link, **_fields(action)}
        node = self.nodes[action["node"]]
        if kind == "flush":
            return {**at, "host": node["name"], "flush_endpoints": True}
        where = self._end(action)
        if kind == "migrate":
            return {**at, "interface": where, "migrate_to": node["interfaces"][action["to"]]["name"]}
        change = {"priority": "backup", "interface": "up", "fullmesh": "fullmesh", "endpoint": "endpoint"}[kind]
        return {**at, "interface": where, change: action[change]}


def _name(name: str) -> str:
    return "".join(each if each.isalnum() or each in "_-" else "-" for each in name)[:63]


def _interfaces(node: Data) -> dict[str, Any]:
    return {
        "interface": {
            interface["name"]: {
                **({"address": interface["addresses"]} if interface["addresses"] else {}),
                **({"backup": True} if interface.get("backup") else {}),
            }
            for interface in node["interfaces"]
        }
    }


def _prefix(prefix: Data) -> str:
    return f"{prefix['address']}/{prefix['length']}"


def _algorithm(choice: Data) -> str | dict[str, Any]:
    return {"kind": choice["name"], **choice["parameters"]} if choice["parameters"] else str(choice["name"])


def _work(work: Data, applications: Sequence[Data]) -> dict[str, Any]:
    match work["kind"]:
        case "page":
            return _page(work, applications)
        case "relay":
            return {"of": _named(work["of"], applications, "a relay goes on with an application that there is not")}
        case "video":
            return _video(work)
        case kind:
            return declared.written(registry.find("application", kind), work)


def _video(work: Data) -> dict[str, Any]:
    own = {name: value for name, value in work.items() if name not in ("kind", "segments")}
    segments = work["segments"]
    return _fields({**own, "length_ns": None if segments is None else segments * work["segment_ns"]})


def _named(place: int, applications: Sequence[Data], fault: str) -> str:
    if place >= len(applications):
        raise ScenarioError(fault)
    return str(applications[place]["name"])


def _page(work: Data, applications: Sequence[Data]) -> dict[str, Any]:
    if work.get("of") is not None:
        return {"of": _named(work["of"], applications, "a page has the objects of an application that there is not")}
    names = [each["name"] for each in work["objects"]]
    return {
        "objects": [
            {
                "name": each["name"],
                "path": each["path"],
                "size": units.SIZE.format(each["size_bytes"]),
                "after": [names[place] for place in each["after"]],
                "think": units.TIME.format(each["think_ns"]),
            }
            for each in work["objects"]
        ]
    }


def _fields(values: Data) -> dict[str, Any]:
    """A plan's values by a scenario's names, as text with units; without those that are null."""
    written: dict[str, Any] = {}
    for key, value in values.items():
        if value is None:
            continue
        stem, _, unit = key.rpartition("_")
        if key in BASES:
            written[key] = BASES[key].written(value)
        elif key == "rule":
            written[key] = {"kind": value["kind"]} | _fields({k: v for k, v in value.items() if k != "kind"})
        elif key == "overhead_bytes":
            written[stem] = value
        elif key in _SHARES:
            written[key] = units.format_share(value)
        elif key == "packets":
            written[key] = units.PACKETS.format(int(value))
        elif unit in units.BY_SUFFIX and key != "bytes":
            written[stem] = _measured(unit, value)
        elif key == "bytes":
            written[key] = units.SIZE.format(value)
        else:
            written[key] = value
    return written


def _measured(unit: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_measured(unit, each) for each in value]
    return units.BY_SUFFIX[unit].format(value)


def _channel(channel: Data) -> dict[str, Any]:
    """What differs from a link of which nothing is said."""
    usual = _usual(DEFAULT_PROFILE)["links"][0]["forward"]
    own = {name: value for name, value in channel.items() if value != usual.get(name) or name == "queue"}
    trace = own.pop("trace", None)
    if "wifi" in own:
        return _fields({**own, "overhead_bytes": channel["overhead_bytes"], "rate_bps": None})
    if trace is None:
        return _fields(own)
    rate = {"trace": trace["name"], "gaps_ms": _opportunities(trace).text()}
    return {**_fields({**own, "overhead_bytes": channel["overhead_bytes"], "rate_bps": None}), "rate": rate}


def _wifi(wifi: Data, media: Sequence[Data]) -> dict[str, Any]:
    medium = wifi.get("medium")
    bounds = {"packets": wifi["packets"], "bytes": wifi["aggregate_bytes"], "airtime_ns": wifi["airtime_ns"]}
    return {
        "standard": wifi["standard"],
        "states": [
            {
                **_fields({"mcs": state["mcs"], "error": state["error"], "dwell_ns": state.get("dwell_ns")}),
                **({"next": [units.format_share(each) for each in state["next"]]} if state.get("next") else {}),
            }
            for state in wifi["states"]
        ],
        **({} if medium is None else {"medium": media[medium]["name"]}),
        "width": f"{wifi['width_mhz']} MHz",
        "streams": wifi["streams"],
        "guard": "400 ns" if wifi["short_guard"] else "800 ns",
        **({} if wifi["standard"] == "802.11a" else {"aggregate": _fields(bounds)}),
        "attempts": wifi["attempts"],
    }


def _opportunities(trace: Data) -> Opportunities:
    return Opportunities(tuple((int(gap), int(count)) for gap, count in trace["gaps_ms"]))


def _stack(stack: Data) -> dict[str, Any]:
    base = {name: stack[name] for name in ("profile", "stack") if name in stack}
    return {**base, **_settings(_own(stack, _profile(stack)))}


def _beyond(stack: Data, host: Data) -> dict[str, Any]:
    """What an application says of its stack at a host."""
    own = _own(stack, _profile(stack) | _own(host, _profile(host)))
    return own if stack["profile"] == host["profile"] else {"profile": stack["profile"], **own}


def _own(stack: Data, usual: Data) -> dict[str, Any]:
    """The settings of a stack that differ from others."""
    own = {name: value for name, value in stack.items() if name != "profile" and value != usual.get(name)}
    if "receive_buffer" in own and is_fixed(own["receive_buffer"]):
        own["autotuning"] = stack["autotuning"]  # else it is off
    return own


def _profile(stack: Data) -> dict[str, Any]:
    """What a host has that says no more than this stack's profile, and whose stack it is."""
    return _normal_stack(_usual(stack["profile"], stack.get("stack"))["nodes"][0]["stack"]) or {}


def _shortened(name: str, value: Any) -> Any:
    """An algorithm without the parameters that are its defaults."""
    if name not in ALGORITHMS:
        return value
    defaults = {each.name: each.default for each in registry.find(ALGORITHMS[name], value["name"]).parameters}
    kept = {key: each for key, each in value["parameters"].items() if each != defaults.get(key)}
    return {"name": value["name"], "parameters": kept}


def _settings(values: Data) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for key, value in values.items():
        if value is None:
            if key == "keepalive":
                written[key] = False
        elif key in ALGORITHMS:
            written[key] = _algorithm(_shortened(key, value))
        elif key in BUFFERS:
            written[key] = [units.SIZE.format(size) for size in value]
        elif key == "keepalive":
            written[key] = True
            written |= {f"keepalive_{name}": each for name, each in _fields(value).items()}
        elif key == "ack_frequency":
            # Its packets are a number, without a unit.
            written[key] = {**_fields(value), "packets": value["packets"]}
        else:
            written |= _fields({key: value})
    return written


def _probing(profile: str) -> dict[str, Any]:
    settings = of_profile(profile)
    return {"interval_ns": settings["keepalive_interval"], "probes": settings["keepalive_probes"]}


@lru_cache(maxsize=8)
def _usual(profile: str, stack: str | None = None) -> Data:
    """The plan of a network of which nothing is said but the profile, and whose the hosts' stacks are."""
    own = {"profile": profile} | ({} if stack is None else {"stack": stack})
    hosts: dict[str, Data] = {name: {} for name in ("client", "server")}
    link = {"usual": {"ends": ["client", "server"]}}
    return Scenario.from_data({"defaults": own, "host": hosts, "link": link}).plan().view


def _differences(given: Any, made: Any, place: str = "the plan") -> Iterator[tuple[str, Any, Any]]:
    """Where two plans differ, first to last. What one leaves out is as if it were null, false or empty."""
    if isinstance(given, dict) and isinstance(made, dict):
        for key in given | made:
            if key == "name" and place == "the plan":
                continue
            yield from _differences(given.get(key), made.get(key), key if place == "the plan" else f"{place}.{key}")
    elif isinstance(given, list) and isinstance(made, list) and len(given) == len(made):
        for index, (one, other) in enumerate(zip(given, made, strict=True)):
            yield from _differences(one, other, f"{place}[{index}]")
    elif given != made and (given or made):
        yield place, given, made
