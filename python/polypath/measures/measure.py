"""What a figure is. It is declared once; claims, sweeps, comparisons, summaries, tables and docs follow from that."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from polypath.results import metrics
from polypath.results.recording import Recording

#: None: the run gives no such figure.
Figure = float | None

#: What a figure describes. Those of `_OF_CONNECTIONS` and of a subflow are computed for one at a time.
Of = Literal[
    "run", "connection", "requests", "video", "page", "subflow", "connections", "flows", "link", "tunnel", "controller"
]
_OF_CONNECTIONS: Final[frozenset[Of]] = frozenset({"connection", "requests", "video", "page"})


@dataclass(frozen=True)
class Unit:
    """How a figure is written: in data, and for people."""

    #: Of a column; empty: a plain number.
    data: str
    #: Of a claim and of a table.
    shown: str
    #: How many of what `compute` gives one of `data` is: nanoseconds, bit/s, bytes.
    base: float = 1.0
    #: How many of `data` one of `shown` is.
    printed: float = 1.0
    #: How a claim divides what `compute` gives; not base * printed, whose product may differ in its last bit.
    claimed: float = 1.0
    #: The end of a column's name.
    ending: str = ""
    #: Of a table in which rows are figures, if that is another; a part is in per cent there.
    row: str = ""


MBPS: Final = Unit("Mbps", "Mbps", 1e6, claimed=1e6, ending="mbps")
SECONDS: Final = Unit("s", "s", 1e9, claimed=1e9, ending="s")
MILLISECONDS: Final = Unit("s", "ms", 1e9, 1e-3, 1e6, "s")
KILOBYTES: Final = Unit("bytes", "kB", 1.0, 1e3, 1e3, "bytes")
MEGABYTES: Final = Unit("bytes", "MB", 1.0, 1e6, 1e6, "bytes")
REQUESTS: Final = Unit("requests", "")
PER_SECOND: Final = Unit("1/s", "1/s", ending="per_s")
PACKETS: Final = Unit("packets", "packets", ending="packets")
NUMBER: Final = Unit("", "")
#: A part of a whole, from 0 to 1.
PART: Final = Unit("", "", row="%")


def always(recording: Recording, of: metrics.Connection) -> bool:
    """Each connection has the figure."""
    return True


def over_connection(recording: Recording, of: metrics.Connection) -> bool:
    """UDP and ICMP have no connection."""
    return of.id is not None


@dataclass(frozen=True)
class Measure:
    """A figure of a run or of a part of it."""

    name: str
    unit: Unit
    of: Of
    #: In words, for axes of plots and headings.
    title: str
    #: One sentence: what is counted, from when to when.
    definition: str
    #: From a Recording; of a connection or a subflow it is given that, too. Further arguments are a claim's parameters.
    compute: Callable[..., Figure]
    #: Where the definition is from: an RFC, a paper, a page.
    source: str = ""
    #: Of a table's column.
    heading: str = ""
    #: Of a table's row; the name if left out.
    words: str = ""
    #: Digits after the point in the table of a run.
    digits: int = 2
    #: Its place in the summary of what it is of. A sweep has a column of what is kept.
    kept: tuple[str, ...] = ()
    #: Whether engines are compared by it.
    beside: bool = False
    #: Which connections have it.
    applies: Callable[[Recording, metrics.Connection], bool] = always
    more_is_better: bool = False
    #: Of a subflow: whether the figure of several is the sum of theirs.
    adds: bool = True
    #: Of a percentile: the column of what it is of, and how many of those it needs.
    needs: tuple[str, int] | None = None
    #: Whether a run without the figure has not finished what the figure is of, in a row of a sweep's table.
    unfinished: Callable[[Mapping[str, Any]], bool] = lambda row: False
    #: What such a run counts as: more than any, and less than any where more is better.
    beyond: float = math.inf

    @property
    def column(self) -> str:
        """Its name with its unit, in tables of data."""
        return f"{self.name}_{self.unit.ending}" if self.unit.ending else self.name

    @property
    def label(self) -> str:
        """What a table's row calls it."""
        return self.words or self.name.replace("_", " ")

    @property
    def printed(self) -> float:
        """How many of the unit in data one of the unit shown is."""
        return self.unit.printed

    def has_enough(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of a sweep's table has enough of what the figure is of."""
        return self.needs is None or (row[self.needs[0]] or 0) >= self.needs[1]

    def value(self, recording: Recording, *of: object) -> Figure:
        """In the unit of data: of a connection or a subflow, that is given."""
        return _in(self.unit.base, self.compute(recording, *of))

    def shown(self, recording: Recording, *of: object) -> Figure:
        """In the unit that people read."""
        return _in(self.unit.claimed, self.compute(recording, *of))

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """What a claim says to choose what the figure is of."""
        own = list(inspect.signature(self.compute).parameters.values())[1:]
        if self.of == "subflow":
            own = [_keyword("connection"), _keyword("interface"), *own[2:]]
        elif self.of in _OF_CONNECTIONS:
            own = [_keyword("connection"), *own[1:]]
        return {each.name: each for each in own}

    def __call__(self, recording: Recording, parameters: Mapping[str, Any]) -> Figure:
        """The figure of a claim, in the unit that people read.

        The figure of several subflows is the sum of theirs, if that says something. Raises MetricError for parameters
        that the measure does not take.
        """
        try:
            inspect.Signature([*self.parameters.values()]).bind(**parameters)
        except TypeError as error:
            raise metrics.MetricError(f"measure '{self.name}': {error}") from None
        given = dict(parameters)
        if self.of == "subflow":
            found = self._of_interfaces(recording, str(given["connection"]), given["interface"])
        elif self.of in _OF_CONNECTIONS:
            of = metrics.connection(recording, given.pop("connection"))
            found = self.compute(recording, of, **given)
        else:
            found = self.compute(recording, **given)
        return _in(self.unit.claimed, found)

    def _of_interfaces(self, recording: Recording, name: str, interface: str | Sequence[str]) -> Figure:
        of = metrics.connection(recording, name)
        chosen = [interface] if isinstance(interface, str) else interface
        own = [each for each in metrics.subflows(recording, of) if each.interface in chosen]
        if len(own) > 1 and not self.adds:
            raise metrics.MetricError(f"'{self.name}' is of a single subflow, and {len(own)} of '{name}' are meant")
        values = [self.compute(recording, of, each) for each in own]
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None


def _in(unit: float, value: Figure) -> Figure:
    """A count stays a whole number."""
    return value if value is None or unit == 1.0 else value / unit


def _keyword(name: str) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
