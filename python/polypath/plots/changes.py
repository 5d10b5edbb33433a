"""What the plan changes during a run, marked on time axes: links and interfaces that fail, come back, get slower."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import polars as pl
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from polypath.plots.base import Canvas, put_legend
from polypath.results import Recording, metrics

#: Kinds of events that are scheduled (docs/recording.md).
KINDS: Final = ("link-changed", "interface-changed")
#: More than these have lines and no words.
_MOST_WORDS: Final = 6
_TINT: Final = "#444444"
#: Part of the axis in which words stand on the other side of their line.
_NEAR_THE_EDGE: Final = 0.08


#: Whether scheduled events are marked: with their words, as lines alone, not at all.
Events = bool | Literal["lines"]


@dataclass(frozen=True)
class Change:
    """Something that happened to links or interfaces at a time."""

    time_s: float
    text: str


def changes(recording: Recording) -> list[Change]:
    """The scheduled events that came to pass, those of a time as one."""
    happened = set(recording.table("events").filter(pl.col("kind").is_in(KINDS))["time_ns"])
    found: dict[int, list[str]] = {}
    for event in recording.plan.get("events", []):
        if event["at_ns"] in happened:
            found.setdefault(event["at_ns"], []).append(_text(recording.plan, event["action"]))
    return [Change(time / metrics.SECOND, _joined(texts)) for time, texts in sorted(found.items())]


def mark(ax: Axes, found: Sequence[Change], *, words: bool = True, tint: str = _TINT) -> None:
    """A dashed line for each change, with its words along it unless there are too many."""
    if not found:
        return
    lines = LineCollection(
        [[(each.time_s, 0.0), (each.time_s, 1.0)] for each in found],
        colors=tint,
        linestyles="dashed",
        linewidths=0.9,
        transform=ax.get_xaxis_transform(),
        zorder=2.6,
        label="_changes",
    )
    ax.add_collection(lines, autolim=False)
    if not words:
        return
    if len(found) > _MOST_WORDS:
        Canvas.of(ax).note(f"dashed: {len(found)} changes of links or interfaces")
        return
    left, right = ax.get_xlim()
    for each in found:
        last = right - each.time_s < _NEAR_THE_EDGE * (right - left)
        ax.annotate(
            each.text,
            (each.time_s, 1.0),
            (-2 if last else 2, -2),
            xycoords=ax.get_xaxis_transform(),
            textcoords="offset points",
            rotation=90,
            ha="right" if last else "left",
            va="top",
            fontsize="x-small",
            color=tint,
            annotation_clip=True,
            bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.75},
            zorder=2.7,
        ).set_in_layout(False)


def finish(ax: Axes, recording: Recording, label: str | None, events: Events, legend: bool) -> Axes:
    """What plots over time have in common: scheduled events, in the colour of a run with a label, and the legend."""
    if events:
        tint = _TINT if label is None else Canvas.of(ax).runs[label]
        mark(ax, changes(recording), words=events != "lines", tint=tint)
    put_legend(ax, legend)
    return ax


def _joined(texts: Sequence[str]) -> str:
    shown = list(dict.fromkeys(texts))
    return ", ".join(shown[:2]) + (f" and {len(shown) - 2} more" if len(shown) > 2 else "")


def _text(plan: Mapping[str, Any], action: Mapping[str, Any]) -> str:
    if action["kind"] == "link":
        way = "" if action["direction"] == "both" else f" {action['direction']}"
        return f"{plan['links'][action['link']]['name']}{way}: {', '.join(_of_a_link(action))}"
    node = plan["nodes"][action["node"]]
    names = [interface["name"] for interface in node["interfaces"]]
    name = f"{node['name']} {names[action['interface']]}"
    if action["kind"] == "migrate":
        return f"{name}: migrates to {names[action['to']]}"
    if action["kind"] == "interface":
        return f"{name}: {'up' if action['up'] else 'down'}"
    return f"{name}: {'backup' if action['backup'] else 'normal'}"


def _of_a_link(action: Mapping[str, Any]) -> Iterator[str]:
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
