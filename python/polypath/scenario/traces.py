"""Traces of delivery opportunities, in the format of Mahimahi's mm-link.

A file has a line for each opportunity, its time in whole milliseconds; the last one is the period. An opportunity
carries 1500 bytes of IP and what `overhead` says besides (docs/traces.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Tag, model_validator

from polypath.scenario.base import Model
from polypath.scenario.errors import ScenarioError
from polypath.scenario.fields import Rate, fault
from polypath.scenario.reading import read_text

OPPORTUNITY_BYTES = 1500
LONGEST_MS = 1_000_000_000
"""As the engine has it."""

_NUMBER = re.compile(r"[0-9]+", re.ASCII)
_RUN = re.compile(r"(?P<gap>[0-9]+)(?:x(?P<count>[0-9]+))?", re.ASCII)


@dataclass(frozen=True)
class Opportunities:
    """When a link may deliver: runs of a gap in ms and how many opportunities follow one another at it."""

    runs: tuple[tuple[int, int], ...]

    @classmethod
    def at(cls, times_ms: Iterable[int]) -> Opportunities:
        """From times that do not decrease."""
        gaps = _gaps(times_ms)
        return cls(tuple((gap, sum(1 for _ in group)) for gap, group in groupby(gaps)))

    @property
    def count(self) -> int:
        """Opportunities of a period."""
        return sum(count for _, count in self.runs)

    @property
    def period_ms(self) -> int:
        """The time of the last one, in ms."""
        return sum(gap * count for gap, count in self.runs)

    def times_ms(self) -> Iterator[int]:
        """Their times within a period, in ms."""
        time = 0
        for gap, count in self.runs:
            for _ in range(count):
                time += gap
                yield time

    def mean_rate_bps(self, overhead: int = 0) -> int:
        """Bit/s if all are used, headers and overhead included, rounded down but at least 1."""
        bits = self.count * (OPPORTUNITY_BYTES + overhead) * 8
        return max(1, bits * 1000 // self.period_ms)

    def text(self) -> str:
        """The runs as text, "12 1x40 0x3": gaps in ms, with the number of opportunities."""
        return " ".join(str(gap) if count == 1 else f"{gap}x{count}" for gap, count in self.runs)


def _gaps(times_ms: Iterable[int]) -> Iterator[int]:
    before = 0
    for time in times_ms:
        yield time - before
        before = time


def parse(text: str, filename: str) -> Opportunities:
    """The opportunities of a file's text. Raises ScenarioError that names file and line."""
    times: list[int] = []
    before = 0
    number = 0
    for number, line in enumerate(text.splitlines(), 1):
        word = line.strip()
        if not _NUMBER.fullmatch(word):
            raise ScenarioError(_no_time(word), filename, number)
        time = int(word) if len(word) < 20 else LONGEST_MS + 1
        if time < before:
            raise ScenarioError("the time is less than that of the line before", filename, number)
        if time > LONGEST_MS:
            raise ScenarioError(f"the time is beyond {LONGEST_MS} ms", filename, number)
        times.append(time)
        before = time
    if not times:
        raise ScenarioError("the file is empty: a trace has a time in ms on each line", filename)
    if before == 0:
        raise ScenarioError("the last time is 0 ms: it is the trace's period and must be more", filename, number)
    return Opportunities.at(times)


def _no_time(word: str) -> str:
    wanted = "a line has one whole number of milliseconds"
    if not word:
        return f"the line is empty; {wanted}"
    if _NUMBER.fullmatch(word.removeprefix("-")):
        return f"the time is negative; {wanted}, at least 0"
    return f"this is no time; {wanted}"


def load(path: Path) -> Opportunities:
    """The opportunities of a file; raises ScenarioError that names file and line."""
    return _parsed(read_text(path, "trace"), str(path))


_parsed = lru_cache(maxsize=8)(parse)
"""A scenario asks several times for the same text, a sweep at each of its points."""


class DeliveryTrace(Model):
    """In place of a rate: when packets may leave, from a trace in the format of Mahimahi's mm-link."""

    trace: str
    """The file, relative to the scenario's: a line per opportunity to deliver 1500 bytes, with its time in ms. The file
    starts over at its last time."""
    gaps_ms: str | None = None
    """The trace itself instead of the file; `trace` is then only its name. It has gaps in ms between opportunities, "12
    1x40 0x3", each with the number of consecutive opportunities that it precedes."""

    @model_validator(mode="after")
    def _readable(self) -> DeliveryTrace:
        try:
            self.opportunities()
        except ScenarioError as error:
            raise fault(str(error), at=("trace" if self.gaps_ms is None else "gaps_ms",)) from error
        return self

    @property
    def name(self) -> str:
        """The file's name without its folders."""
        return Path(self.trace).name

    def opportunities(self) -> Opportunities:
        """What the file or the text says; raises ScenarioError."""
        if self.gaps_ms is None:
            return load(Path(self.trace))
        runs = []
        for word in self.gaps_ms.split():
            found = _RUN.fullmatch(word)
            if found is None or len(word) > 20:
                raise ScenarioError(f"{word!r} is no gap in ms, such as 12, or 1x40 for forty of 1 ms")
            runs.append((int(found["gap"]), int(found["count"] or 1)))
        made = Opportunities(tuple(runs))
        if not 0 < made.period_ms <= LONGEST_MS:
            raise ScenarioError(f"a trace lasts from 1 ms to {LONGEST_MS} ms, not {made.period_ms} ms")
        return made

    def plan(self) -> dict[str, Any]:
        """What a plan says of it."""
        return {"name": self.name, "gaps_ms": [list(run) for run in self.opportunities().runs]}


def _kind(value: object) -> str:
    return "of-a-trace" if isinstance(value, dict | DeliveryTrace) else "constant"


def _no_text_of_a_table(value: object) -> object:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        raise fault(f"{value!r} is a text, not a table; write the table as TOML, without quotes around it")
    return value


LinkRate = Annotated[
    Annotated[Rate, Tag("constant")] | Annotated[DeliveryTrace, Tag("of-a-trace")],
    Discriminator(_kind),
    BeforeValidator(_no_text_of_a_table),
]
"""Bit/s, or a trace of delivery opportunities."""
