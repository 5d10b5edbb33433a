"""The plan's changes during a run: links and interfaces that fail, come back or change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from polypath.results import metrics
from polypath.results.recording import Recording

if TYPE_CHECKING:
    from polypath.plan.data import PlanData
    from polypath.plan.types import Action, LinkAction

#: Kinds of events that are scheduled (docs/recording.md).
KINDS: Final = ("link-changed", "interface-changed")


@dataclass(frozen=True)
class Change:
    """Something that happened to links or interfaces at a time."""

    time_ns: int
    text: str

    @property
    def time_s(self) -> float:
        return self.time_ns / metrics.SECOND


def changes(recording: Recording) -> list[Change]:
    """The scheduled events that came to pass, those of a time as one."""
    return recording.once("changes", lambda: _changes(recording))


def _changes(recording: Recording) -> list[Change]:
    happened = set(recording.table("events").filter(pl.col("kind").is_in(KINDS))["time_ns"])
    return [change for change in planned(recording.plan) if change.time_ns in happened]


def planned(plan: PlanData) -> list[Change]:
    """The scheduled events of a plan, those of a time as one."""
    found: dict[int, list[str]] = {}
    for event in plan.get("events", []):
        found.setdefault(event["at_ns"], []).append(_text(plan, event["action"]))
    return [Change(time, _joined(texts)) for time, texts in sorted(found.items())]


def _joined(texts: Sequence[str]) -> str:
    shown = list(dict.fromkeys(texts))
    return ", ".join(shown[:2]) + (f" and {len(shown) - 2} more" if len(shown) > 2 else "")


def _text(plan: PlanData, action: Action) -> str:
    if action["kind"] == "link":
        way = "" if action["direction"] == "both" else f" {action['direction']}"
        return f"{plan['links'][action['link']]['name']}{way}: {', '.join(_of_a_link(action))}"
    node = plan["nodes"][action["node"]]
    if action["kind"] == "flush":
        return f"{node['name']}: endpoints flushed"
    names = [interface["name"] for interface in node["interfaces"]]
    name = f"{node['name']} {names[action['interface']]}"
    if action["kind"] == "migrate":
        return f"{name}: migrates to {names[action['to']]}"
    if action["kind"] == "interface":
        return f"{name}: {'up' if action['up'] else 'down'}"
    if action["kind"] == "fullmesh":
        return f"{name}: {'fullmesh' if action['fullmesh'] else 'no fullmesh'}"
    if action["kind"] == "endpoint":
        return f"{name}: {'endpoint' if action['endpoint'] else 'no endpoint'}"
    assert action["kind"] == "priority"
    return f"{name}: {'backup' if action['backup'] else 'normal'}"


def _of_a_link(action: LinkAction) -> Iterator[str]:
    if (up := action.get("up")) is not None:
        yield "up" if up else "down"
    if (rate := action.get("rate_bps")) is not None:
        yield f"{rate / 1e6:g} Mbps"
    if (delay := action.get("delay_ns")) is not None:
        yield f"{delay / 1e6:g} ms"
    if (loss := action.get("loss")) is not None:
        yield f"{loss['probability'] * 100:g} % loss" if loss["kind"] == "random" else f"loss {loss['kind']}"
    if action.get("queue") is not None:
        yield "another queue"
