"""What a person would do by a twin's what-if, tried where the capture was made."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from polypath import Scenario, run
from polypath.twin.made import make
from polypath.what_if.candidates import subject
from polypath.what_if.intervals import intervals
from polypath.what_if.ranked import GOALS, Trials, rank, usual_goal

from .drawn import drawn

SEEDS = range(1, 11)
#: What is chosen is as good as the best within this part of it.
WITHIN = 0.05


@dataclass(frozen=True)
class Asked:
    """A twin's best setting, and what it and the true best come to in the true network."""

    number: int
    goal: str
    chosen: str
    best: str
    chosen_value: float | None
    best_value: float | None

    @property
    def is_good(self) -> bool:
        """Whether the choice is the best, or nearly."""
        if self.chosen_value is None or self.best_value is None:
            return self.chosen == self.best
        off = self.best_value - self.chosen_value if GOALS[self.goal].more else self.chosen_value - self.best_value
        return off <= WITHIN * self.best_value

    def json(self) -> str:
        """A line."""
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, line: str) -> Asked:
        """From a line."""
        return cls(**json.loads(line))


def asked(number: int) -> Asked:
    """Makes the twin of a drawn capture and asks it. Raises EngineError, CaptureError, ScenarioError."""
    part = drawn(number)
    true = Scenario.parse(part.text, "drawn.toml")
    with tempfile.TemporaryDirectory(prefix="polypath-twins-") as held:
        run(true, engine=part.engine, captures="hosts", directory=Path(held))
        text = make([Path(held) / f"{host}.pcapng" for host in part.captured]).text
    twin = Scenario.parse(text, "twin.toml")
    name = usual_goal(true, subject(true, None))
    goal = GOALS[name]
    mine = rank(Trials(twin, subject(twin, None), goal, SEEDS, intervals(text), None), lambda _: None)
    there = Trials(true, subject(true, None), goal, SEEDS, (), None)
    truth = rank(there, lambda _: None)
    chosen = mine.best.candidate
    means = {row.candidate.name: row.mean for row in truth.rows}
    if chosen.name not in means:
        plans = there.plans(chosen)
        figures = [] if plans is None else there.figures({chosen: plans}, lambda _: None)[chosen]
        means[chosen.name] = _mean(figures)
    return Asked(number, name, chosen.name, truth.best.candidate.name, means[chosen.name], truth.best.mean)


def _mean(figures: list[float | None]) -> float | None:
    known = [each for each in figures if each is not None]
    return sum(known) / len(known) if known and len(known) == len(figures) else None
