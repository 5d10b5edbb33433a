"""The same plan's Recordings from several engines, figure by figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from polypath.measures import REGISTRY, Measure
from polypath.measures.measure import PART
from polypath.results import metrics
from polypath.results.recording import Recording

#: The measures that engines are compared by.
BESIDE: Final = tuple(each for each in REGISTRY.values() if each.beside)


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
        for measure in BESIDE:
            if measure.of != "subflow" and measure.applies(recording, connection):
                yield name, "", *_row(measure, measure.shown(recording, connection))
                if measure.name == "completion" and connection.finished is False:
                    yield name, "", "unfinished", "runs", 1.0
        seen: dict[str, int] = {}
        for subflow in metrics.subflows(recording, connection):
            path = f"{_address(subflow.source)} → {_address(subflow.destination)}"
            seen[path] = seen.get(path, 0) + 1
            subject = path if seen[path] == 1 else f"{path} ({seen[path]})"
            for measure in BESIDE:
                if measure.of == "subflow":
                    yield name, subject, *_row(measure, measure.shown(recording, connection, subflow))


def _row(measure: Measure, value: float | None) -> tuple[str, str, float | None]:
    """Its label, its unit and the value in it; parts in per cent."""
    if measure.unit is PART:
        return measure.label, PART.row, None if value is None else 100 * value
    return measure.label, measure.unit.shown or measure.unit.data, value


def _address(end: str) -> str:
    return end.rpartition(":")[0]
