"""A drawn network's capture, its twin, and how near that is to the truth."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from polypath import Scenario, run
from polypath.twin.made import Twin, make
from polypath.twin.value import Value

from . import drawn as drawing
from .drawn import Drawn, drawn

#: Fewer losses tell too little of how many there are.
LOSSES = 30


@dataclass(frozen=True)
class Figure:
    """What a twin says of one figure, and what is true."""

    name: str
    true: float
    found: float
    low: float
    high: float

    @property
    def is_near(self) -> bool:
        """Within what `BOUNDS` says of it."""
        off = abs(self.found - self.true)
        if self.name == "loss":
            return self.true / 1.5 <= self.found <= self.true * 1.5
        return off <= max(BOUNDS[self.name] * self.true, LEAST_S.get(self.name, 0.0))

    @property
    def is_held(self) -> bool:
        """Whether the interval holds the truth."""
        return self.low <= self.true <= self.high


#: How far a figure may be off, as a part of it; loss by a factor of 1.5.
BOUNDS = {"rate": 0.05, "delay": 0.05, "jitter": 0.25, "queue": 0.25, "goodput": 0.10, "RTT": 0.15, "loss": 0.5}
#: Or in seconds.
LEAST_S = {"delay": 0.001, "jitter": 0.0002}


@dataclass(frozen=True)
class Compared:
    """One capture and its twin."""

    number: int
    engine: str
    transport: str
    work: str
    ends: int
    figures: list[Figure] = field(default_factory=list)
    #: The controller that the twin has, and the true one.
    congestion: str = ""
    true_congestion: str = ""
    #: Queues that the twin leaves open, because nothing showed them overflow.
    open_queues: int = 0
    #: Delays that vary, of which it does not tell.
    open_jitters: int = 0

    def json(self) -> str:
        """A line."""
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, line: str) -> Compared:
        """From a line."""
        data = json.loads(line)
        return cls(**{**data, "figures": [Figure(**each) for each in data["figures"]]})


def compared(number: int) -> Compared:
    """Runs a drawn network, captures it, and makes a twin. Raises EngineError, CaptureError."""
    part = drawn(number)
    with tempfile.TemporaryDirectory(prefix="polypath-twins-") as held:
        folder = Path(held)
        run(Scenario.parse(part.text, "drawn.toml"), engine=part.engine, captures="hosts", directory=folder)
        made = make([folder / f"{host}.pcapng" for host in part.captured])
    figures = list(_figures(part, made))
    return Compared(
        number=number,
        engine=part.engine,
        transport=part.transport,
        work=part.work,
        ends=len(part.captured),
        figures=figures,
        congestion=made.trial.choice.congestion,
        true_congestion=part.congestion,
        open_jitters=sum(path.jitter_s > 0 for path in part.paths)
        - sum(each.name == "jitter" and each.true > 0 for each in figures),
        open_queues=sum(path.estimate.queue_bytes is None for path in made.network.paths),
    )


def _figures(part: Drawn, made: Twin) -> Iterator[Figure]:
    found = {path.source: path for path in made.network.paths}
    for number, true in enumerate(part.paths):
        path = found.get(drawing.address(number))
        if path is None:
            continue
        told = path.estimate
        values = [("rate", true.rate_bps, told.rate_bps), ("delay", true.delay_s, told.delay_s)]
        values += [("jitter", true.jitter_s, told.jitter_s)]
        values += [("queue", float(true.queue_bytes), told.queue_bytes)]
        if told.random >= LOSSES and true.loss:
            values += [("loss", true.loss, told.loss)]
        for name, truth, value in values:
            if value is not None:
                yield _figure(name, truth, value)
    for row in made.rows:
        if row.path == "all" and row.capture is not None and row.twin is not None:
            yield Figure(row.figure.split(",")[0], row.capture, row.twin, row.capture, row.capture)


def _figure(name: str, truth: float, value: Value) -> Figure:
    return Figure(name, truth, value.value, value.low, value.high)
