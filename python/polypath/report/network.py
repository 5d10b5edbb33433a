"""The drawn network: nodes, links, and their changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from polypath.plan.overview import is_large, spread
from polypath.plan.places import parallel, places
from polypath.results import Recording

if TYPE_CHECKING:
    from polypath.plan.data import PlanData
    from polypath.plan.types import Channel

#: Of a large network: columns that the two nearest nodes are apart; how much farther apart columns are than rows.
_APART, _WIDER = 0.12, 300 / 190
#: Columns that a link bends off its straight line for a bend of 1.
_BEND = 56 / 300


def drawn(recording: Recording, paths: Mapping[str, int]) -> dict[str, Any] | None:
    """The network of a run, as `of_plan` has it."""
    return of_plan(recording.plan, paths)


def of_plan(plan: PlanData, paths: Mapping[str, int]) -> dict[str, Any] | None:
    """Places in columns (1 apart) and links with the bend that keeps parallel ones apart; None without a network.

    `paths` are numbers by the name of a link, which have colours.

    A large network is marked as such: its nodes have no names in the picture.
    """
    nodes, links = plan.get("nodes", []), plan.get("links", [])
    if not nodes or not links:
        return None
    large = is_large(plan)
    where, bent = spread(plan, _APART) if large else (places(plan), {})
    down = _WIDER if large else 1.0
    bends = {}
    for pair, group in parallel(links).items():
        for rank, link in enumerate(group):
            bends[id(link)] = (len(group) - 1) / 2 - rank + bent.get(pair, 0.0) / _BEND
    return {
        "nodes": [
            {
                "name": node["name"],
                "kind": node["kind"],
                "x": round(where[index][0], 4),
                "y": round(down * where[index][1], 4),
            }
            for index, node in enumerate(nodes)
        ],
        **({"large": True} if large else {}),
        "links": [
            {
                "name": link["name"],
                "a": link["a"]["node"],
                "b": link["b"]["node"],
                "bend": round(bends[id(link)], 4),
                "path": paths.get(link["name"]),
                "forward": _channel(link["forward"]),
                "backward": _channel(link["backward"]),
            }
            for link in links
        ],
    }


def _channel(channel: Channel) -> dict[str, Any]:
    queue, loss, trace = channel.get("queue"), channel.get("loss"), channel.get("trace")
    return {
        "rate_bps": channel.get("rate_bps"),
        "trace": trace and trace["name"],
        "wifi": "wifi" in channel,
        "delay_ns": channel.get("delay_ns", 0),
        "loss": loss["probability"] if loss and loss["kind"] == "random" else None,
        "queue_packets": queue.get("packets") if queue else None,
        "up": channel.get("up", True),
    }


def changes(recording: Recording) -> list[dict[str, Any]]:
    """When links go down and come up again."""
    return [
        {
            "t": event["at_ns"] / 1e9,
            "link": event["action"]["link"],
            "direction": event["action"]["direction"],
            "up": event["action"]["up"],
        }
        for event in recording.plan.get("events", [])
        if event["action"]["kind"] == "link" and event["action"].get("up") is not None
    ]
