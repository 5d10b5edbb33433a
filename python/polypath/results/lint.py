"""Probable mistakes in a valid plan: links without traffic, events without effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from polypath.results.metrics import SECOND
from polypath.results.routes import FIRST_PAIR, MULTIPATH, Route, idle_links, stack


def warnings(plan: Mapping[str, Any], found: Sequence[Route]) -> list[str]:
    """A line for each; `found` are the plan's routes."""
    programs = plan.get("programs", ())
    # whom programs of the machine talk to nobody knows before
    idle = () if programs else idle_links(plan, found)
    silent = () if programs else _hosts(plan)
    network = (_idle(plan, idle), silent, _apart(plan), _media(plan), _queues(plan))
    parts = (_programs(plan), *network, _unbounded(plan, found), _cut(plan), _events(plan, idle))
    return list(dict.fromkeys(line for part in parts for line in part))


def _programs(plan: Mapping[str, Any]) -> Iterator[str]:
    for program in plan.get("programs", ()):
        yield f"application '{program['name']}' is a program of the machine: engines linux and live run it"


def _idle(plan: Mapping[str, Any], idle: Sequence[int]) -> Iterator[str]:
    reason = _reason(plan)
    for index in idle:
        yield f"link '{plan['links'][index]['name']}' stays idle: no path of an application leads over it{reason}"


def _reason(plan: Mapping[str, Any]) -> str:
    """The path manager that leaves a multipath connection on its first pair of addresses."""
    for application in plan["applications"]:
        if application["transport"] not in MULTIPATH:
            continue
        manager = (stack(plan, application, "client") or {}).get("path_manager", {}).get("name")
        if manager in FIRST_PAIR:
            name = plan["nodes"][application["client"]]["name"]
            return f" (path manager '{manager}' of '{name}' uses the first two addresses only)"
    return ""


def _hosts(plan: Mapping[str, Any]) -> Iterator[str]:
    busy = {application[side] for application in plan["applications"] for side in ("client", "server")}
    for index, node in enumerate(plan["nodes"]):
        if node["kind"] == "host" and index not in busy and not node.get("forwards"):
            yield f"host '{node['name']}' takes part in no application"


def _apart(plan: Mapping[str, Any]) -> Iterator[str]:
    for node in plan["nodes"]:
        if node["kind"] != "host" and not node["interfaces"]:
            yield f"{node['kind']} '{node['name']}' has no link"


def _media(plan: Mapping[str, Any]) -> Iterator[str]:
    ways = [link[way] for link in plan["links"] for way in ("forward", "backward")]
    shared = {(way.get("wifi") or {}).get("medium") for way in ways}
    for index, medium in enumerate(plan.get("media", ())):
        if index not in shared:
            yield f"medium '{medium['name']}' has no link"


_WAYS = ("forward", "backward")
_UNLIMITED = {"kind": "drop-tail", "packets": None, "bytes": None}


def _rated(plan: Mapping[str, Any]) -> set[tuple[int, str]]:
    """The directions of links that have a rate at some time."""
    found = {
        (index, way) for index, link in enumerate(plan["links"]) for way in _WAYS if link[way]["rate_bps"] is not None
    }
    for event in plan.get("events", ()):
        action = event["action"]
        if action["kind"] == "link" and action.get("rate_bps") is not None:
            found |= {(action["link"], way) for way in _WAYS if action["direction"] in ("both", way)}
    return found


def _queues(plan: Mapping[str, Any]) -> Iterator[str]:
    rated = _rated(plan)
    for index, link in enumerate(plan["links"]):
        # What a link says of both directions is about the one that has a rate.
        used = [link[way]["queue"] for way in _WAYS if (index, way) in rated]
        for way in _WAYS:
            queue = link[way]["queue"]
            if (index, way) not in rated and queue not in used and queue != _UNLIMITED:
                yield f"link '{link['name']}' has a queue and no rate: packets take no time to send, so that none waits"


def _unbounded(plan: Mapping[str, Any], found: Sequence[Route]) -> Iterator[str]:
    rated = _rated(plan)
    for route in found:
        if route.there is None or route.back is None:
            continue
        if not any((hop.link, hop.direction) in rated for path in (route.there, route.back) for hop in path.hops):
            name = plan["applications"][route.application]["name"]
            yield (
                f"application '{name}': no link between {route.source} and {route.destination} has a rate, "
                "so windows alone limit it"
            )


def _cut(plan: Mapping[str, Any]) -> Iterator[str]:
    for application in plan["applications"]:
        end = _end_ns(application)
        if end is not None and end > plan["duration_ns"]:
            yield (
                f"application '{application['name']}' would end at {end / SECOND:g} s; "
                f"the run ends at {plan['duration_ns'] / SECOND:g} s"
            )


def _end_ns(application: Mapping[str, Any]) -> int | None:
    duration = application["work"].get("duration_ns")
    return None if duration is None else int(application["start_ns"]) + int(duration)


def _events(plan: Mapping[str, Any], idle: Sequence[int]) -> Iterator[str]:
    ends = [_end_ns(application) for application in plan["applications"]]
    ends += [None for _ in plan.get("programs", ())]
    known = [end for end in ends if end is not None]
    last = max(known) if known and len(known) == len(ends) else None
    for event in plan.get("events", ()):
        at, action = f"the event at {event['at_ns'] / SECOND:g} s", event["action"]
        if last is not None and event["at_ns"] >= last:
            until = f"the last application sends until {last / SECOND:g} s, and the run ends with it"
            yield f"{at} may not happen: {until}"
        link = action.get("link")
        if "interface" in action:
            link = _link_at(plan, action["node"], action["interface"])
        if link in idle:
            yield f"{at} has no effect: link '{plan['links'][link]['name']}' stays idle"


def _link_at(plan: Mapping[str, Any], node: int, interface: int) -> int | None:
    here = {"node": node, "interface": interface}
    return next((index for index, link in enumerate(plan["links"]) if here in (link["a"], link["b"])), None)
