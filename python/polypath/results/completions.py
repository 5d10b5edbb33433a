"""Completion times of flows that count together: a group's flows by their size.

A flow that did not finish is longer than any that did: where a quantile depends on one, there is none, and there is no
mean over those that are left.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from polypath.results import metrics
from polypath.results.metrics import SECOND, Delays
from polypath.results.recording import Recording

#: Bounds of the classes of sizes, in bytes.
_CLASSES = (100_000, 1_000_000)


@dataclass(frozen=True)
class Flow:
    """A transfer of a group."""

    size_bytes: int
    #: From its connection's start to its last byte; None where it did not finish.
    time_ns: int | None
    #: That time as a multiple of the least that it could take, see `_Least`.
    slowdown: float | None


@dataclass(frozen=True)
class Completions:
    """Flows of a group, of one class of sizes or all."""

    sizes: str
    flows: int
    times: Delays
    """From a connection's start to its last byte, in ns."""
    slowdowns: Delays
    """Multiples, not times in ns."""

    @property
    def unfinished(self) -> int:
        return self.times.unanswered

    def mean_ns(self) -> float | None:
        """Nothing where some flow is unfinished."""
        return fmean(self.times.answered) if self.times.answered and not self.unfinished else None

    def mean_slowdown(self) -> float | None:
        """Nothing where some flow is unfinished."""
        return fmean(self.slowdowns.answered) if self.slowdowns.answered and not self.unfinished else None


def flows(recording: Recording) -> dict[str, list[Flow]]:
    """The flows of each group, in order."""
    applications = recording.plan.get("applications", [])
    least = _Least(recording.plan)
    found: dict[str, list[Flow]] = {}
    for connection in metrics.connections(recording):
        application = applications[connection.application]
        size = application["work"].get("size_bytes")
        if application.get("group") is None or size is None:
            continue
        time = metrics.completion_ns(connection)
        slowdown = None if time is None else time / least.time_ns(application, size)
        found.setdefault(application["group"], []).append(Flow(size, time, slowdown))
    return found


def of_groups(recording: Recording) -> dict[str, list[Completions]]:
    """By group: all of its flows, then those of each class of sizes that has any."""
    return {name: [completions("all", of), *_by_size(of)] for name, of in flows(recording).items()}


def _by_size(flows: Sequence[Flow]) -> list[Completions]:
    found = []
    for low, high in zip((0, *_CLASSES), (*_CLASSES, None), strict=True):
        own = [flow for flow in flows if flow.size_bytes > low and (high is None or flow.size_bytes <= high)]
        if high is None:
            title = f"above {_size(low)}"
        else:
            title = f"{_size(low)} to {_size(high)}" if low else f"up to {_size(high)}"
        if own and len(own) < len(flows):
            found.append(completions(title, own))
    return found


def _size(size: int) -> str:
    return f"{size // 1_000_000} MB" if size >= 1_000_000 else f"{size // 1000} kB"


def completions(title: str, flows: Sequence[Flow]) -> Completions:
    """Of these flows, which count as one class."""
    times = Delays.of([flow.time_ns for flow in flows])
    slowdowns = sorted(flow.slowdown for flow in flows if flow.slowdown is not None)
    return Completions(title, len(flows), times, Delays(len(flows), tuple(slowdowns)))


class _Least:
    """The least time of a transfer in an idle network: SYN, SYN/ACK and the last byte over a path of fewest links, and
    its bytes, without headers, at the rate of the slowest of these links. Several paths together may need less."""

    def __init__(self, plan: Mapping[str, Any]) -> None:
        self._plan = plan
        self._trees: dict[int, dict[int, list[int]]] = {}

    def time_ns(self, application: Mapping[str, Any], size: int) -> float:
        rate, delay = self._path(application["client"], application["server"], bool(application["work"].get("reverse")))
        return 3 * delay + (0 if rate is None else size * 8 * SECOND / rate)

    @cached_property
    def _graph(self) -> Any:
        import networkx as nx

        graph = nx.MultiDiGraph()
        for link in self._plan["links"]:
            a, b = link["a"]["node"], link["b"]["node"]
            for start, end, side in ((a, b, link["forward"]), (b, a, link["backward"])):
                graph.add_edge(start, end, rate=side["rate_bps"], delay=side["delay_ns"])
        return graph

    def _path(self, client: int, server: int, reverse: bool) -> tuple[float | None, float]:
        import networkx as nx

        start, end = (server, client) if reverse else (client, server)
        if start not in self._trees:
            self._trees[start] = nx.single_source_shortest_path(self._graph, start)
        nodes = self._trees[start][end]
        links = [
            max(self._graph[one][other].values(), key=lambda link: link["rate"] or float("inf"))
            for one, other in itertools.pairwise(nodes)
        ]
        rates = [link["rate"] for link in links if link["rate"] is not None]
        return min(rates, default=None), sum(link["delay"] for link in links)
