"""Ways to say a scenario otherwise that several relations need: other names, other addresses, whatever is explicit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl

from polypath.scenario.tables import Tables, attachments

from .compare import Change

Rename = Callable[[str], str]
Data = dict[str, Any]


def explicit_interfaces(data: Data, tables: Tables) -> None:
    """Names the interfaces at both ends of each link."""
    for name, pair in attachments(tables).items():
        if name in data.get("link", {}):
            data["link"][name]["ends"] = [f"{node}:{interface}" for node, interface in pair]


def relabel(data: Data, rename: Rename) -> None:
    """Renames all nodes, interfaces, links and media of a scenario without a topology, whose interfaces are named."""

    def end(text: str) -> str:
        return ":".join(map(rename, text.split(":")))

    for group in ("host", "router", "switch", "link", "medium"):
        if group in data:
            data[group] = {rename(name): table for name, table in data[group].items()}
    for node in [*data.get("host", {}).values(), *data.get("router", {}).values()]:
        if "interface" in node:
            node["interface"] = {rename(name): table for name, table in node["interface"].items()}
    for link in data.get("link", {}).values():
        link["ends"] = [end(each) for each in link["ends"]]
        for direction in (link, link.get("forward", {}), link.get("backward", {})):
            if "medium" in direction.get("wifi", {}):
                direction["wifi"]["medium"] = rename(direction["wifi"]["medium"])
    for route in data.get("route", []):
        route |= {key: rename(route[key]) for key in ("node", "interface")}
    for application in data.get("application", []):
        for side in ("client", "server"):
            application[side] = rename(application.get(side, side))
    for event in data.get("event", []):
        for key in ("link", "switch", "migrate_to"):
            if key in event:
                event[key] = rename(event[key])
        if "interface" in event:
            event["interface"] = end(event["interface"])


_FOUR = re.compile(r"(?<![\d.])10\.(\d+)\.(\d+\.\d+)")


def readdressed(data: Data, shift: int) -> Data:
    """All addresses of 10.0.0.0/8 and fd00::/16 moved, which keeps their order."""
    moved = _FOUR.sub(lambda found: f"10.{int(found[1]) + shift}.{found[2]}", json.dumps(data))
    made: Data = json.loads(moved.replace("fd00:", f"fd{shift:02x}:"))
    return made


def addresses_back(shift: int) -> Change:
    """The texts of a table with the addresses as they were before `readdressed`."""

    def back(text: str) -> str:
        found = _FOUR.sub(lambda found: f"10.{int(found[1]) - shift}.{found[2]}", text)
        return found.replace(f"fd{shift:02x}:", "fd00:")

    def change(table: pl.DataFrame) -> pl.DataFrame:
        texts = [name for name, kind in table.schema.items() if kind == pl.String]
        known = {text for name in texts for text in table[name].unique() if text is not None}
        names = {text: back(text) for text in known}
        return table.with_columns(pl.col(name).replace(names) for name in texts) if names else table

    return change


def directions(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Each direction of each link of a plan."""
    for link in plan["links"]:
        yield link["forward"]
        yield link["backward"]


def stacks(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every stack of a plan: of hosts and of applications' ends."""
    yield from (node["stack"] for node in plan["nodes"] if node["stack"])
    for application in plan["applications"]:
        yield from (stack for side in ("client", "server") if (stack := application[f"{side}_stack"]))


_DRAWING_QUEUES = ("red", "pie", "fq-pie", "dualpi2")


def draws_on_the_way(plan: Mapping[str, Any]) -> bool:
    """Whether the network makes random decisions about packets."""
    impairments = ("jitter_ns", "reorder", "duplicate", "corrupt", "wifi")
    changes = [event["action"] for event in plan["events"] if event["action"]["kind"] == "link"]
    return any(
        channel["loss"]["kind"] != "none"
        or channel["queue"]["kind"] in _DRAWING_QUEUES
        or any(channel.get(name) for name in impairments)
        for channel in directions(plan)
    ) or any(
        (change["loss"] or {"kind": "none"})["kind"] != "none" or (change["queue"] or {}).get("kind") in _DRAWING_QUEUES
        for change in changes
    )
