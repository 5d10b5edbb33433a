"""Traces of delivery opportunities, in the format of Mahimahi's mm-link.

A file has a line for each opportunity, its time in whole milliseconds; the last one is the period. An opportunity
carries 1500 bytes of IP and what `overhead` says besides (docs/traces.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from pathlib import Path
from time import time_ns
from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Tag, model_validator

from polypath.plan import shared
from polypath.plan.shared import Shared
from polypath.scenario.base import Model
from polypath.scenario.errors import ScenarioError
from polypath.scenario.fields import Rate, fault
from polypath.scenario.reading import read_text

OPPORTUNITY_BYTES = 1500
LONGEST_MS = 1_000_000_000
"""As the engine has it."""

#: A file system tells times apart that are so far from each other.
_SETTLED_NS = 2_000_000_000

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

    @cached_property
    def count(self) -> int:
        """Opportunities of a period."""
        return sum(count for _, count in self.runs)

    @cached_property
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

    @cached_property
    def planned(self) -> Shared:
        """The runs as a plan has them."""
        return shared.of(json.dumps([list(run) for run in self.runs], separators=(",", ":")))

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
    known = _identity(path)
    if known is None:
        return _parsed(read_text(path, "trace"), str(path))
    return _of_file(path, known)


_parsed = lru_cache(maxsize=8)(parse)


@lru_cache(maxsize=8)
def _of_file(path: Path, _: tuple[int, ...]) -> Opportunities:
    return parse(read_text(path, "trace"), str(path))


def _identity(path: Path) -> tuple[int, ...] | None:
    """What changes with the file's content, which a sweep asks for at each of its points. None for a file that was
    written just now: it may be written again without another time."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    if time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) < _SETTLED_NS:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


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
            self.known  # noqa: B018
        except ScenarioError as error:
            raise fault(str(error), at=("trace" if self.gaps_ms is None else "gaps_ms",)) from error
        return self

    def __getstate__(self) -> dict[Any, Any]:
        """Without what was read, which another process reads again where it is asked for it."""
        state = super().__getstate__()
        own = {name: value for name, value in state["__dict__"].items() if name != "known"}
        return {**state, "__dict__": own}

    @property
    def name(self) -> str:
        """The file's name without its folders."""
        return Path(self.trace).name

    def opportunities(self) -> Opportunities:
        """What the file or the text said when the table was checked."""
        return self.known

    @cached_property
    def known(self) -> Opportunities:
        """Raises ScenarioError."""
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
        return {"name": self.name, "gaps_ms": self.opportunities().planned}


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
