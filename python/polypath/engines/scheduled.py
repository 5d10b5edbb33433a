"""Scheduled events in a Recording: the plan's changes and their times, entered once for every engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from polypath.plan.data import PlanData
    from polypath.plan.types import Action, LinkAction


#: What an event says of a link, in this order.
_OF_A_LINK = {"up": "", "rate_bps": " bit/s", "delay_ns": " ns", "loss": "", "queue": ""}


def entered(frames: Mapping[str, pl.DataFrame], plan: PlanData, end_ns: int) -> dict[str, pl.DataFrame]:
    """The tables of a run that ended at `end_ns` with the events of its plan, each before what happened at its time."""
    events = frames["events"]
    rows = [row for row in _rows(plan) if row["time_ns"] < end_ns]
    if not rows:
        return dict(frames)
    own = pl.DataFrame(rows, schema=events.schema, orient="row")
    return {**frames, "events": pl.concat([own, events]).sort("time_ns", maintain_order=True)}


def _rows(plan: PlanData) -> Iterator[dict[str, Any]]:
    for event in plan["events"]:
        action = event["action"]
        row = {"time_ns": event["at_ns"], "host": "", "connection": None, "subflow": None, "link": None, "value": None}
        if action["kind"] == "link":
            detail = f"{action['direction']}: {', '.join(_changes(action))}"
            yield {**row, "kind": "link-changed", "link": action["link"], "detail": detail}
            continue
        node = plan["nodes"][action["node"]]
        if action["kind"] == "flush":
            yield {**row, "kind": "interface-changed", "host": node["name"], "detail": "endpoints flushed"}
            continue
        names = [interface["name"] for interface in node["interfaces"]]
        detail = f"{names[action['interface']]} {_state(action, names)}"
        yield {**row, "kind": "interface-changed", "host": node["name"], "detail": detail}


def _state(action: Action, names: Sequence[str]) -> str:
    if action["kind"] == "migrate":
        return f"migrates to {names[action['to']]}"
    if action["kind"] == "interface":
        return "up" if action["up"] else "down"
    if action["kind"] == "fullmesh":
        return "fullmesh" if action["fullmesh"] else "no fullmesh"
    if action["kind"] == "endpoint":
        return "endpoint" if action["endpoint"] else "no endpoint"
    assert action["kind"] == "priority"
    return "backup" if action["backup"] else "normal"


def _changes(action: LinkAction) -> Iterator[str]:
    for key, unit in _OF_A_LINK.items():
        value = action.get(key)
        if value is None:
            continue
        name = key.partition("_")[0]
        if key == "up":
            yield "up" if value else "down"
        elif isinstance(value, Mapping):
            parts = (str(part) if what == "kind" else f"{what} {part}" for what, part in value.items())
            yield " ".join([name, *parts])
        else:
            yield f"{name} {value}{unit}"
