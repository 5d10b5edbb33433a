"""Completion times of flows that count together: a group's flows by their size.

An unfinished flow is longer than any finished one. A quantile that depends on it is left out, and so is the mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf
from statistics import fmean
from typing import TYPE_CHECKING

from polypath.plan.access import setting
from polypath.results import metrics
from polypath.results.metrics import SECOND, Delays
from polypath.results.recording import Recording

if TYPE_CHECKING:
    from polypath.plan.data import PlanData
    from polypath.plan.types import Application, Work

#: Bounds of the classes of sizes, in bytes.
_CLASSES = (100_000, 1_000_000)
#: Of a handshake by version (RFC 5246 section 7.3, RFC 8446 section 2).
_TLS_ROUND_TRIPS = {None: 0, "1.2": 2, "1.3": 1}

#: Delay in ns and rate in bit/s of a link or a path.
_Way = tuple[float, float]


@dataclass(frozen=True)
class Flow:
    """A transfer of a group."""

    size_bytes: int
    #: From its connection's start to its last byte, or to its end where there was none to send; None where it did not
    #: finish, or was cut short.
    time_ns: int | None
    #: That time as a multiple of the least that it could take, see `_Least`; None also where that least is no time.
    slowdown: float | None


@dataclass(frozen=True)
class Completions:
    """Flows of a group, of one class of sizes or all."""

    sizes: str
    flows: int
    times: Delays
    """From a connection's start to its last byte, in ns."""
    slowdowns: Delays
    """Multiples, not times in ns; of the flows that finished, those that have one."""

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
        group = application.get("group")
        if group is None or setting(application["work"], "size_bytes") is None:
            continue
        size = _size_bytes(application["work"])
        time = _time_ns(connection, application["work"], size)
        possible = None if time is None or connection.last_byte_ns is None else least.time_ns(application)
        slowdown = time / possible if time is not None and possible else None
        found.setdefault(group, []).append(Flow(size, time, slowdown))
    return found


def _size_bytes(work: Work) -> int:
    """All that a transfer brings, to the server and to the client."""
    return int(setting(work, "size_bytes") * (setting(work, "count") or 1) + (setting(work, "reverse_bytes") or 0))


def _time_ns(of: metrics.Connection, work: Work, size: int) -> int | None:
    if setting(work, "duration_ns") is not None and of.bytes < size:
        return None
    if of.last_byte_ns is None and of.finished and of.end_ns is not None:
        return of.end_ns - of.start_ns
    return metrics.completion_ns(of)


def of_groups(recording: Recording) -> dict[str, list[Completions]]:
    """By group: all of its flows, then those of each class of sizes that has any."""
    return {name: [completions("all", of), *_by_size(of)] for name, of in flows(recording).items()}


def _by_size(flows: Sequence[Flow]) -> list[Completions]:
    found = []
    for low, high in zip((-1, *_CLASSES), (*_CLASSES, None), strict=True):
        own = [flow for flow in flows if flow.size_bytes > low and (high is None or flow.size_bytes <= high)]
        if high is None:
            title = f"above {_size(low)}"
        else:
            title = f"{_size(low)} to {_size(high)}" if low > 0 else f"up to {_size(high)}"
        if own and len(own) < len(flows):
            found.append(completions(title, own))
    return found


def _size(size: int) -> str:
    return f"{size // 1_000_000} MB" if size >= 1_000_000 else f"{size // 1000} kB"


def completions(title: str, flows: Sequence[Flow]) -> Completions:
    """The completion times of these flows, which count as one class."""
    times = Delays.of([flow.time_ns for flow in flows])
    slowdowns = [flow.slowdown for flow in flows if flow.slowdown is not None or flow.time_ns is None]
    return Completions(title, len(flows), times, Delays.of(slowdowns))


class _Least:
    """The least time of a transfer in an idle network over paths of fewest links. It is the time of its exchange plus
    that of its bytes, without headers, at the rate of the slowest link. The best such path counts. Several paths
    together may need less.

    SYN and SYN/ACK come first. The client's data is in the next packet; the server's waits for that packet.
    """

    def __init__(self, plan: PlanData) -> None:
        self._plan = plan
        self._found: dict[int, dict[int, Sequence[_Way]]] = {}

    def time_ns(self, application: Application) -> float | None:
        """None where no path leads from one to the other."""
        client, server, work = application["client"], application["server"], application["work"]
        there, back = self._from(client).get(server), self._from(server).get(client)
        if there is None or back is None:
            return None
        size, asking = int(setting(work, "size_bytes")), _arrival_ns(there, 0)
        handshake = asking + _arrival_ns(back, 0)
        if work["kind"] == "fetch":
            handshake *= 1 + _TLS_ROUND_TRIPS[work.get("tls")]
            count, parallel = work["count"] or 1, work.get("parallel", 1)
            in_turn = ceil(count / parallel) * (asking + _arrival_ns(back, size))
            return handshake + max(in_turn, asking + _arrival_ns(back, size * count))
        # Behind a pause is what comes after its first bytes.
        pause, first = int(setting(work, "pause_ns") or 0), int(setting(work, "first_bytes") or 0)
        handshake, size = handshake + pause, max(size - first, 0) if pause else size
        if setting(work, "reverse"):
            return handshake + asking + _arrival_ns(back, size)
        answer = setting(work, "reverse_bytes")
        both = _arrival_ns(there, size), 0 if answer is None else asking + _arrival_ns(back, answer)
        return handshake + max(both)

    @cached_property
    def _links(self) -> Mapping[int, Sequence[tuple[int, _Way]]]:
        """By node where they begin: where they end, and what they are."""
        found: dict[int, list[tuple[int, _Way]]] = {}
        for link in self._plan["links"]:
            a, b = link["a"]["node"], link["b"]["node"]
            for start, end, side in ((a, b, link["forward"]), (b, a, link["backward"])):
                found.setdefault(start, []).append((end, (side["delay_ns"], side["rate_bps"] or inf)))
        return found

    def _forwards(self, node: int) -> bool:
        described = self._plan["nodes"][node]
        return described["kind"] != "host" or bool(described.get("forwards"))

    def _from(self, start: int) -> dict[int, Sequence[_Way]]:
        """By node: of the paths of fewest links, those of which none other has both less delay and a higher rate."""
        if start in self._found:
            return self._found[start]
        found: dict[int, Sequence[_Way]] = {start: [(0, inf)]}
        reached = dict(found)
        while reached:
            onward: dict[int, set[_Way]] = {}
            for node, ways in reached.items():
                if node == start or self._forwards(node):
                    for other, (delay, rate) in self._links.get(node, ()):
                        if other not in found:
                            joined = {(before + delay, min(slowest, rate)) for before, slowest in ways}
                            onward.setdefault(other, set()).update(joined)
            reached = {node: list(_best(ways)) for node, ways in onward.items()}
            found |= reached
        self._found[start] = found
        return found


def _best(ways: Iterable[_Way]) -> Iterator[_Way]:
    highest = 0.0
    for delay, rate in sorted(ways, key=lambda way: (way[0], -way[1])):
        if rate > highest:
            yield delay, rate
            highest = rate


def _arrival_ns(ways: Sequence[_Way], size: int) -> float:
    return min(delay + size * 8 * SECOND / rate for delay, rate in ways)
