"""Completion times of the flows of a group."""

from __future__ import annotations

from collections.abc import Callable

from polypath.measures.measure import MILLISECONDS, Figure, Measure
from polypath.results import completions, metrics
from polypath.results.completions import Completions
from polypath.results.metrics import FEWEST
from polypath.results.recording import Recording


def _group(recording: Recording, group: str, sizes: str) -> Completions:
    found = completions.of_groups(recording)
    if group not in found:
        raise metrics.MetricError(f"there is no group '{group}' of flows; there is {', '.join(found) or 'none'}")
    for each in found[group]:
        if each.sizes == sizes:
            return each
    there = ", ".join(each.sizes for each in found[group])
    raise metrics.MetricError(f"group '{group}' has no sizes '{sizes}'; there is {there}")


def _time(name: str, key: str, least: str, heading: str, title: str, of: Callable[[Completions], Figure]) -> Measure:
    fewest = FEWEST[least]

    def time(recording: Recording, *, group: str, sizes: str = "all") -> Figure:
        found = _group(recording, group, sizes)
        if found.flows < fewest:
            raise metrics.MetricError(f"measure 'flow_{name}' needs {fewest} flows, and there are {found.flows}")
        return of(found)

    return Measure(
        f"flow_{name}",
        MILLISECONDS,
        "flows",
        title,
        f"{title} of a group, from a connection's start to its last byte; an unfinished flow is longer than any",
        time,
        source="docs/workloads.md",
        heading=heading,
        kept=("completion_s", key),
        needs=("flows", fewest),
        unfinished=lambda row: bool(row["flows_unfinished"]) and row["flows"] >= fewest,
    )


FIGURES = (
    _time("mean", "mean", "p50", "flow ms", "mean completion time of the flows", lambda found: found.mean_ns()),
    _time(
        "median",
        "p50",
        "p50",
        "flow 50 % ms",
        "median completion time of the flows",
        lambda found: found.times.quantile(0.5),
    ),
    _time(
        "p95",
        "p95",
        "p95",
        "flow 95 % ms",
        "95th percentile of the flows' completion times",
        lambda found: found.times.quantile(0.95),
    ),
    _time(
        "p99",
        "p99",
        "p99",
        "flow 99 % ms",
        "99th percentile of the flows' completion times",
        lambda found: found.times.quantile(0.99),
    ),
)
