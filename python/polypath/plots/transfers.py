"""Completion times of flow groups: their distribution, and multiples of the least possible by flow size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from math import ceil, nan
from typing import Final

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from polypath.plots.base import Canvas, Kind, drawing, put_legend
from polypath.plots.requests import distribution, label_decades
from polypath.plots.style import colour
from polypath.results import MetricError, Recording, completions, metrics
from polypath.results.completions import Flow

TIME: Final = "completion time (ms)"
SIZE: Final = "size of the flow"
_DASHES: Final = ("-", "--", ":", "-.")
#: Classes of sizes with as many flows each, where there are enough for a 99th percentile, as HPCC's figures have them.
_CLASSES: Final = 10
_LEAST_FLOWS: Final = 20
#: Markers tell them apart where all flows have one size.
_QUANTILES: Final = {"median": (0.5, "-", "o"), "99th percentile": (0.99, "--", "^")}
_SUFFIXES: Final = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B"))


def fct(
    recording: Recording,
    ax: Axes | None = None,
    *,
    label: str | None = None,
    color: str | None = None,
    legend: bool = True,
) -> Axes:
    """Cumulative distribution of the completion times (ms) of each group's flows; it ends below 1 where some did not
    finish. With `label` the curves of this run have one colour. Raises MetricError for a run without groups."""
    with drawing(ax) as axes:
        tint = Canvas.of(axes).run(label, color)
        found = _groups(recording)
        for number, ((name, flows), dash) in enumerate(zip(found.items(), cycle(_DASHES))):
            distribution(
                axes,
                completions.completions(name, flows).times,
                color=tint or colour(number),
                linestyle=dash if label is not None else _DASHES[0],
                label=_name(name, found, label),
                none="none finished",
            )
            _note_unfinished(axes, _name(name, found, label), flows)
        axes.set(xlabel=TIME, ylabel="part of the flows")
        axes.set_ylim(0, 1.02)
        put_legend(axes, legend)
        return axes


def slowdown(
    recording: Recording,
    ax: Axes | None = None,
    *,
    label: str | None = None,
    color: str | None = None,
    legend: bool = True,
) -> Axes:
    """Completion times as multiples of the least possible, over the flows' sizes.

    Each flow is a dot, with the median and 99th percentile of classes of sizes. A quantile that depends on unfinished
    flows is not drawn. With `label` there are no dots, and the curves of this run have one colour. Raises MetricError
    for a run without groups.
    """
    with drawing(ax) as axes:
        tint = Canvas.of(axes).run(label, color)
        found = _groups(recording)
        for number, (name, flows) in enumerate(found.items()):
            own, said = tint or colour(number), _name(name, found, label)
            known = [(flow.size_bytes, flow.slowdown) for flow in flows if flow.slowdown is not None]
            if label is None and known:
                axes.plot(*zip(*known, strict=True), ".", markersize=3, alpha=0.35, color=own, markeredgewidth=0)
            _note_unfinished(axes, said, flows)
            classes = list(_classes(flows))
            for what, (part, dash, marker) in _QUANTILES.items():
                values = [completions.completions("", each).slowdowns.quantile(part) for each in classes]
                if any(value is not None for value in values):
                    heights = [nan if value is None else value for value in values]
                    middles = [_middle(each) for each in classes]
                    axes.plot(middles, heights, dash, marker=marker, markersize=4, color=own, label=f"{said}, {what}")
        _logarithmic(axes)
        axes.set(xlabel=SIZE, ylabel="slowdown")
        put_legend(axes, legend)
        return axes


def _note_unfinished(axes: Axes, name: str, flows: Sequence[Flow]) -> None:
    if unfinished := sum(flow.time_ns is None for flow in flows):
        Canvas.of(axes).note(f"{name}: {unfinished} of {len(flows)} unfinished")


def _logarithmic(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: _size(size)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    label_decades(axes.yaxis)


def _size(size: float) -> str:
    scale, unit = next((each for each in _SUFFIXES if size >= each[0]), _SUFFIXES[-1])
    return f"{size / scale:g} {unit}"


def _classes(flows: Sequence[Flow]) -> Iterator[Sequence[Flow]]:
    """Flows of neighbouring sizes; those of one size are never in two classes."""
    ordered = sorted(flows, key=lambda flow: flow.size_bytes)
    least = max(_LEAST_FLOWS, ceil(len(ordered) / _CLASSES))
    begin = 0
    while begin < len(ordered):
        end = min(begin + least, len(ordered))
        while end < len(ordered) and ordered[end].size_bytes == ordered[end - 1].size_bytes:
            end += 1
        if len(ordered) - end < least // 2:
            end = len(ordered)
        yield ordered[begin:end]
        begin = end


def _middle(flows: Sequence[Flow]) -> int:
    return flows[len(flows) // 2].size_bytes


def _groups(recording: Recording) -> dict[str, list[Flow]]:
    found = completions.flows(recording)
    if not found:
        raise MetricError(f"{recording.metadata.scenario} has no flows of a group")
    return found


def _name(group: str, groups: dict[str, list[Flow]], label: str | None) -> str:
    if label is None:
        return group
    return f"{label}, {group}" if len(groups) > 1 else label


def shows(recording: Recording, of: metrics.Connection | None) -> bool:
    applications = recording.plan.get("applications", [])
    if of is not None:
        applications = [applications[of.application]]
    return any(each.get("group") is not None and each["work"].get("size_bytes") is not None for each in applications)


_FLOWS = "a group of flows"
KINDS = (
    Kind("fct", "cumulative distribution of the completion times", fct, shows, of="run", across=TIME, needs=_FLOWS),
    Kind(
        "slowdown", "completion times as multiples of the least", slowdown, shows, of="run", across=SIZE, needs=_FLOWS
    ),
)
