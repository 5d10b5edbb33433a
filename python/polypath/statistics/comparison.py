"""The same plan's Recordings from several engines, figure by figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from polypath.results import metrics, pages, video
from polypath.results.recording import Recording


@dataclass(frozen=True)
class Figure:
    """One figure of a connection or of a subflow; None if the engine lacks it."""

    connection: str
    subject: str
    measure: str
    unit: str
    values: Mapping[str, float | None]

    def ratio(self, engine: str, base: str) -> float | None:
        """This engine's figure over the base's; None where either is missing or the base's is 0."""
        value, reference = self.values[engine], self.values[base]
        return None if value is None or not reference else value / reference

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "values": dict(self.values)}


def compare(recordings: Mapping[str, Recording]) -> list[Figure]:
    """The figures of each connection, then of its subflows, matched by name, addresses and order among equals."""
    found: dict[tuple[str, str, str, str], dict[str, float | None]] = {}
    for engine, recording in recordings.items():
        for name, subject, measure, unit, value in _figures(recording):
            found.setdefault((name, subject, measure, unit), {})[engine] = value
    return [
        Figure(*key, values={engine: values.get(engine) for engine in recordings}) for key, values in _in_order(found)
    ]


def _in_order(
    found: Mapping[tuple[str, str, str, str], dict[str, float | None]],
) -> Iterator[tuple[tuple[str, str, str, str], dict[str, float | None]]]:
    """By connection in the order of its first appearance; the connection's own figures come first."""
    order = {name: index for index, name in enumerate(dict.fromkeys(key[0] for key in found))}
    yield from sorted(found.items(), key=lambda item: (order[item[0][0]], item[0][1]))


_Row = tuple[str, str, str, str, float | None]


def _figures(recording: Recording) -> Iterator[_Row]:
    for connection in metrics.connections(recording):
        name = connection.name
        goodput = metrics.goodput(recording, connection)
        yield name, "", "goodput", "Mbps", None if goodput is None else goodput / 1e6
        if connection.id is None:
            continue
        completion = metrics.completion_ns(connection)
        yield name, "", "completion", "s", None if completion is None else completion / 1e9
        if connection.finished is False:
            yield name, "", "unfinished", "runs", 1.0
        delays = metrics.Delays.of(metrics.delays(recording, connection))
        if delays.sent:
            median = delays.quantile(0.5)
            yield name, "", "median delay", "ms", None if median is None else median / 1e6
            yield name, "", "unanswered", "requests", delays.unanswered
        yield from ((name, "", *each) for each in _shown(recording, connection))
        subflows = metrics.subflows(recording, connection)
        yield name, "", "retransmitted", "kB", sum(each.retransmitted_bytes for each in subflows) / 1e3
        seen: dict[str, int] = {}
        for subflow in subflows:
            path = f"{_address(subflow.source)} → {_address(subflow.destination)}"
            seen[path] = seen.get(path, 0) + 1
            subject = path if seen[path] == 1 else f"{path} ({seen[path]})"
            yield name, subject, "share", "%", None if subflow.share is None else 100 * subflow.share
            samples = metrics.srtt_us(recording, connection, subflow)
            yield name, subject, "srtt", "ms", sum(samples) / len(samples) / 1e3 if samples else None


def _shown(recording: Recording, connection: metrics.Connection) -> Iterator[tuple[str, str, float | None]]:
    """What somebody sees of a video or a page; a page's first connection has it."""
    film = video.playback(recording, connection)
    if film is not None:
        yield "video", "Mbps", None if film.rate_bps is None else film.rate_bps / 1e6
        yield "first picture", "s", _seconds(film.startup_ns)
        yield "stalled", "s", _seconds(film.stalled_ns)
    page = pages.load(recording, connection) if pages.has_objects(recording, connection) else None
    if page is not None:
        yield "page load", "s", _seconds(page.load_ns)
        yield "first object", "s", _seconds(page.first_ns)


def _seconds(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / 1e9


def _address(end: str) -> str:
    return end.rpartition(":")[0]
