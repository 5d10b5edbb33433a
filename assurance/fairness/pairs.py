"""Two flows at one bottleneck: what is run, and what each run gives."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Self

from polypath import Scenario, run
from polypath.results import metrics

SCENARIO = Path(__file__).parent / "two.toml"

#: Those that need no marks. Over one path, the coupled ones are Reno.
CONTROLS = ("reno", "cubic", "westwood", "htcp", "illinois", "scalable", "cdg", "vegas", "copa", "bbr", "bbr3")
RATE_MBPS = 10
#: Round trips in ms, and queues as parts of the product of rate and round trip.
ROUND_TRIPS = (20, 80)
QUEUES = (0.5, 1.0, 4.0)
SEEDS = range(1, 11)
#: Goodputs count between these, in s. BBR drains its queue every 5 s, or every 10 s.
FROM_S, TO_S = 10, 40
#: A seed draws when each flow begins, and how much longer its round trip is.
LATEST_START_MS = 1000
SPREAD = 0.02
_PACKET = 1500
#: What a packet takes at the bottleneck. Hosts hold each back for up to that, at random, which ends phase effects
#: (Floyd and Jacobson 1992).
SERVICE_MS = _PACKET * 8 / RATE_MBPS / 1e3


@dataclass(frozen=True)
class Case:
    """A run."""

    one: str
    other: str
    round_trip: int
    queue: float
    seed: int


@dataclass(frozen=True)
class Row:
    """A run and its result: goodputs in Mbps."""

    one: str
    other: str
    round_trip: int
    queue: float
    seed: int
    one_mbps: float
    other_mbps: float

    @property
    def case(self) -> Case:
        return Case(self.one, self.other, self.round_trip, self.queue, self.seed)

    @property
    def share(self) -> float:
        """The first one's part of both goodputs."""
        return self.one_mbps / (self.one_mbps + self.other_mbps)

    @classmethod
    def load(cls, line: str) -> Self:
        return cls(**json.loads(line))

    def json(self) -> str:
        return json.dumps(asdict(self))


def cases(controls: tuple[str, ...] = CONTROLS) -> list[Case]:
    """Every run, first one of each kind, so that what is there after a while covers all pairs."""
    return [
        Case(one, other, round_trip, queue, seed)
        for seed in SEEDS
        for round_trip in ROUND_TRIPS
        for queue in QUEUES
        for one, other in combinations_with_replacement(controls, 2)
    ]


def packets(case: Case) -> int:
    """Length of the queue."""
    product = RATE_MBPS * 1e6 * case.round_trip / 1e3 / 8 / _PACKET
    return max(2, round(product * case.queue))


def settings(case: Case) -> list[str]:
    """What the scenario has of a case."""
    drawn = random.Random(f"{case.seed}")
    starts = [drawn.uniform(0, LATEST_START_MS) for _ in range(2)]
    longer = [drawn.uniform(0, SPREAD) * case.round_trip / 2 for _ in range(2)]
    return [
        f"link.shared.rate={RATE_MBPS} Mbps",
        f"link.shared.delay={case.round_trip / 2} ms",
        f"link.shared.queue={packets(case)} packets",
        f"link.one.delay={longer[0]:.6f} ms",
        f"link.other.delay={longer[1]:.6f} ms",
        f"link.one.jitter={SERVICE_MS} ms",
        f"link.other.jitter={SERVICE_MS} ms",
        f"application.one.stack.congestion={case.one}",
        f"application.other.stack.congestion={case.other}",
        f"application.one.start={starts[0]:.3f} ms",
        f"application.other.start={starts[1]:.3f} ms",
    ]


def tried(case: Case) -> Row:
    """Runs it."""
    recording = run(Scenario.load(SCENARIO).with_settings(settings(case)).plan(case.seed))
    rates = []
    for name in ("one", "other"):
        connection = metrics.connection(recording, name)
        rate = metrics.goodput(recording, connection, FROM_S * metrics.SECOND, TO_S * metrics.SECOND)
        rates.append(round((rate or 0.0) / 1e6, 4))
    return Row(**asdict(case), one_mbps=rates[0], other_mbps=rates[1])
