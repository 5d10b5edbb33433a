"""Probable mistakes in a valid plan: links without traffic, events without effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from polypath.plan.access import WAYS, setting, stack
from polypath.plan.routes import FIRST_PAIR, MULTIPATH, Route, idle_links
from polypath.units import SECOND

if TYPE_CHECKING:
    from polypath.plan.data import PlanData
    from polypath.plan.types import Action, Application, Attachment, DropTailQueue


def warnings(plan: PlanData, found: Sequence[Route]) -> list[str]:
    """A line for each; `found` are the plan's routes."""
    programs = plan.get("programs", ())
    # whom programs of the machine talk to nobody knows before
    idle = () if programs else idle_links(plan, found)
    silent = () if programs else _hosts(plan)
    network = (_idle(plan, idle), silent, _apart(plan), _media(plan), _queues(plan))
    parts = (_programs(plan), *network, _unbounded(plan, found), _cut(plan), _events(plan, idle))
    return list(dict.fromkeys(line for part in parts for line in part))


def _programs(plan: PlanData) -> Iterator[str]:
    for program in plan.get("programs", ()):
        yield f"application '{program['name']}' is a program of the machine: engines linux and live run it"


def _idle(plan: PlanData, idle: Sequence[int]) -> Iterator[str]:
    reason = _reason(plan)
    for index in idle:
        yield f"link '{plan['links'][index]['name']}' stays idle: no path of an application leads over it{reason}"


def _reason(plan: PlanData) -> str:
    """The path manager that leaves a multipath connection on its first pair of addresses."""
    for application in plan["applications"]:
        if application["transport"] not in MULTIPATH:
            continue
        settings = stack(plan, application, "client")
        if settings is not None and (manager := settings["path_manager"]["name"]) in FIRST_PAIR:
            name = plan["nodes"][application["client"]]["name"]
            return f" (path manager '{manager}' of '{name}' uses the first two addresses only)"
    return ""


def _hosts(plan: PlanData) -> Iterator[str]:
    busy = {application[side] for application in plan["applications"] for side in ("client", "server")}
    for index, node in enumerate(plan["nodes"]):
        if node["kind"] == "host" and index not in busy and not node.get("forwards"):
            yield f"host '{node['name']}' takes part in no application"


def _apart(plan: PlanData) -> Iterator[str]:
    for node in plan["nodes"]:
        if node["kind"] != "host" and not node["interfaces"]:
            yield f"{node['kind']} '{node['name']}' has no link"


def _media(plan: PlanData) -> Iterator[str]:
    ways = [link[way] for link in plan["links"] for way in WAYS]
    shared = {wifi.get("medium") for way in ways if (wifi := way.get("wifi"))}
    for index, medium in enumerate(plan.get("media", ())):
        if index not in shared:
            yield f"medium '{medium['name']}' has no link"


_UNLIMITED: DropTailQueue = {"kind": "drop-tail", "packets": None, "bytes": None}


def _rated(plan: PlanData) -> set[tuple[int, str]]:
    """The directions of links that have a rate at some time."""
    found: set[tuple[int, str]] = {
        (index, way) for index, link in enumerate(plan["links"]) for way in WAYS if link[way]["rate_bps"] is not None
    }
    for event in plan.get("events", ()):
        action = event["action"]
        if action["kind"] == "link" and action.get("rate_bps") is not None:
            found |= {(action["link"], way) for way in WAYS if action["direction"] in ("both", way)}
    return found


def _queues(plan: PlanData) -> Iterator[str]:
    rated = _rated(plan)
    for index, link in enumerate(plan["links"]):
        # What a link says of both directions is about the one that has a rate.
        used = [link[way]["queue"] for way in WAYS if (index, way) in rated]
        for way in WAYS:
            queue = link[way]["queue"]
            if (index, way) not in rated and queue not in used and queue != _UNLIMITED:
                yield f"link '{link['name']}' has a queue and no rate: packets take no time to send, so that none waits"


def _unbounded(plan: PlanData, found: Sequence[Route]) -> Iterator[str]:
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


def _cut(plan: PlanData) -> Iterator[str]:
    for application in plan["applications"]:
        end = _end_ns(application)
        if end is not None and end > plan["duration_ns"]:
            yield (
                f"application '{application['name']}' would end at {end / SECOND:g} s; "
                f"the run ends at {plan['duration_ns'] / SECOND:g} s"
            )


def _end_ns(application: Application) -> int | None:
    duration = setting(application["work"], "duration_ns")
    return None if duration is None else int(application["start_ns"]) + int(duration)


def _events(plan: PlanData, idle: Sequence[int]) -> Iterator[str]:
    ends = [_end_ns(application) for application in plan["applications"]]
    ends += [None for _ in plan.get("programs", ())]
    known = [end for end in ends if end is not None]
    last = max(known) if known and len(known) == len(ends) else None
    for event in plan.get("events", ()):
        at, action = f"the event at {event['at_ns'] / SECOND:g} s", event["action"]
        if last is not None and event["at_ns"] >= last:
            until = f"the last application sends until {last / SECOND:g} s, and the run ends with it"
            yield f"{at} may not happen: {until}"
        link = _link_of(plan, action)
        if link is not None and link in idle:
            yield f"{at} has no effect: link '{plan['links'][link]['name']}' stays idle"


def _link_of(plan: PlanData, action: Action) -> int | None:
    """The link that an event changes, or the one at its interface."""
    if action["kind"] == "link":
        return action["link"]
    if action["kind"] == "flush":
        return None
    here: Attachment = {"node": action["node"], "interface": action["interface"]}
    return next((index for index, link in enumerate(plan["links"]) if here in (link["a"], link["b"])), None)
