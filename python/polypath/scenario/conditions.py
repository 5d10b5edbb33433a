"""The rate, delay and loss of a link over time, from a CSV file."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from pydantic import model_validator

from polypath.scenario.base import Model
from polypath.scenario.errors import ScenarioError
from polypath.scenario.fields import fault
from polypath.scenario.reading import decimal, read_text

MOST_CHANGES: Final = 20_000
"""Of a link in a run."""
_MOST_NS: Final = 10**15
_MOST_BPS: Final = 10**15


def _time(factor: int) -> Callable[[float], int]:
    def read(number: float) -> int:
        if not 0 <= number * factor <= _MOST_NS:
            raise ValueError(f"must be from 0 s to {_MOST_NS // 10**9} s")
        return round(number * factor)

    return read


def _rate(factor: int) -> Callable[[float], int]:
    def read(number: float) -> int:
        if not 1 <= round(number * factor) <= _MOST_BPS:
            raise ValueError("a rate must be above 0; for a link that carries nothing give a loss of all packets")
        return round(number * factor)

    return read


def _share(factor: float) -> Callable[[float], float]:
    def read(number: float) -> float:
        if not 0 <= number * factor <= 1:
            raise ValueError(f"must be from 0 to {1 / factor:g}")
        return number * factor

    return read


COLUMNS: Final[Mapping[str, tuple[str, Callable[[float], Any]]]] = {
    "time_s": ("time", _time(10**9)),
    "time_ms": ("time", _time(10**6)),
    "rate_bps": ("rate_bps", _rate(1)),
    "rate_kbps": ("rate_bps", _rate(10**3)),
    "rate_mbps": ("rate_bps", _rate(10**6)),
    "rate_gbps": ("rate_bps", _rate(10**9)),
    "delay_us": ("delay_ns", _time(10**3)),
    "delay_ms": ("delay_ns", _time(10**6)),
    "delay_s": ("delay_ns", _time(10**9)),
    "loss": ("loss", _share(1)),
    "loss_percent": ("loss", _share(0.01)),
}
"""What the columns set, and how their numbers are read. `loss` is a share from 0 to 1."""


@dataclass(frozen=True)
class Row:
    """What is from a time on: `rate_bps`, `delay_ns` and `loss` (a share), as far as the row says."""

    time_ns: int
    values: Mapping[str, Any]


def parse(text: str, filename: str) -> tuple[Row, ...]:
    """The rows of a file's text. Raises ScenarioError that names file and line."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _check(header, filename)
        rows: list[Row] = []
        for cells in reader:
            if not cells:
                continue
            rows.append(_row(header, cells, filename, reader.line_num))
            if len(rows) > 1 and rows[-1].time_ns <= rows[-2].time_ns:
                raise ScenarioError("the time is not later than that of the row before", filename, reader.line_num)
    except csv.Error as error:
        raise ScenarioError(f"this is no CSV: {error}", filename, reader.line_num) from error
    if not rows:
        raise ScenarioError("there are no rows below the header", filename, 1)
    return tuple(rows)


_parsed = lru_cache(maxsize=8)(parse)
"""A scenario asks several times for the same text, a sweep at each of its points."""


def _check(header: list[str], filename: str) -> None:
    if not header or header == [""]:
        raise ScenarioError(f"the file is empty: its first line names columns, of {', '.join(COLUMNS)}", filename)
    seen: dict[str, str] = {}
    for number, name in enumerate(header, 1):
        if name not in COLUMNS:
            raise ScenarioError(f"column {number} is none of {', '.join(COLUMNS)}", filename, 1)
        what = COLUMNS[name][0]
        if what in seen:
            raise ScenarioError(f"columns '{seen[what]}' and '{name}' are of the same", filename, 1)
        seen[what] = name
    if "time" not in seen:
        raise ScenarioError("there is no column 'time_s' or 'time_ms'", filename, 1)
    if len(seen) == 1:
        raise ScenarioError("there is no column besides the time; add rate_mbps, delay_ms or loss", filename, 1)


def _row(header: list[str], cells: list[str], filename: str, line: int) -> Row:
    if len(cells) != len(header):
        raise ScenarioError(f"the row has {len(cells)} values, and there are {len(header)} columns", filename, line)
    values: dict[str, Any] = {}
    for name, cell in zip(header, cells, strict=True):
        what, read = COLUMNS[name]
        if not cell.strip() and what != "time":
            continue
        number = decimal(cell.strip())
        if math.isnan(number):
            raise ScenarioError(f"{name}: expected a number", filename, line)
        try:
            values[what] = read(number)
        except ValueError as error:
            raise ScenarioError(f"{name}: {error}", filename, line) from error
    return Row(values.pop("time"), values)


class Conditions(Model):
    """Rate, delay and loss over time, from a CSV file."""

    csv: str
    """The file, relative to the scenario's. Its first line names columns with their units: `time_s` or `time_ms`, and
    some of `rate_mbps` (`_bps`, `_kbps`, `_gbps`), `delay_ms` (`_us`, `_s`), `loss` (0 to 1) or `loss_percent`. A row
    applies from its time on. Missing columns and empty cells change nothing."""
    loop: bool = False
    """Start over at the last row's time. If the first row is at 0, the last row's own values have no effect."""

    @model_validator(mode="after")
    def _readable(self) -> Conditions:
        try:
            rows = self.rows()
            if self.loop and rows[-1].time_ns == 0:
                raise ScenarioError("with 'loop' the last row's time is the period, and must be above 0", self.csv)
        except ScenarioError as error:
            raise fault(str(error), at=("csv",)) from error
        return self

    @property
    def name(self) -> str:
        """The file's name without its folders."""
        return Path(self.csv).name

    def rows(self) -> tuple[Row, ...]:
        """The file's rows; raises ScenarioError."""
        return _parsed(read_text(Path(self.csv), "table of a link's conditions"), self.csv)

    def columns(self) -> set[str]:
        """What the file sets: rate_bps, delay_ns, loss."""
        return {name for row in self.rows() for name in row.values}

    def initial(self) -> Mapping[str, Any]:
        """What holds from the start."""
        first = self.rows()[0]
        return first.values if first.time_ns == 0 else {}

    def changes(self, duration_ns: int) -> Iterator[Row]:
        """What changes after the start and before the end, each row with the values that differ from those before it.
        Raises ScenarioError where there are more than `MOST_CHANGES`."""
        held = dict(self.initial())
        count = 0
        for time, values in self._from_start(duration_ns):
            new = {name: value for name, value in values.items() if held.get(name) != value}
            if not new:
                continue
            held |= new
            count += 1
            if count > MOST_CHANGES:
                message = f"the link would change more than {MOST_CHANGES} times in the run"
                raise ScenarioError(f"{message}; take fewer rows or a shorter 'duration'", self.csv)
            yield Row(time, new)

    def _from_start(self, duration_ns: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
        rows = self.rows()
        period = rows[-1].time_ns
        base = 0
        while base < duration_ns:
            for row in rows:
                time = base + row.time_ns
                replaced = self.loop and row is rows[-1] and rows[0].time_ns == 0
                if 0 < time < duration_ns and not replaced:
                    yield time, row.values
            if not self.loop:
                return
            base += period
