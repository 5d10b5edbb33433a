"""Candidates ranked by a goal: each is paired with the unchanged scenario, over seeds and the values' intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from polypath.measures import MEASURES
from polypath.plan.access import setting
from polypath.registry import traffic
from polypath.results.metrics import FEWEST
from polypath.scenario import Plan, Scenario, ScenarioError
from polypath.statistics import points
from polypath.statistics.paired import Comparison, compare, judged
from polypath.sweeps import executor
from polypath.sweeps.executor import WorkerLost
from polypath.sweeps.point import Failure, Task, summarised
from polypath.what_if.candidates import AS_IT_IS, Candidate, Subject, candidates, together
from polypath.what_if.intervals import Interval

if TYPE_CHECKING:
    from polypath.plan.types import Work

#: Called with the number of runs that were made.
Told = Callable[[int], None]


@dataclass(frozen=True)
class Goal:
    """What a person asks for: a measure of `points`, and whether more of it is better."""

    measure: str
    more: bool

    def better(self, one: float, other: float) -> bool:
        """Whether one value is better than another."""
        return one > other if self.more else one < other


GOALS: Final[Mapping[str, Goal]] = {
    "goodput": Goal("goodput_mbps", more=True),
    "completion": Goal("completion_s", more=False),
    "delay-median": Goal("delay_median_s", more=False),
    "delay-p95": Goal("delay_p95_s", more=False),
}


@dataclass(frozen=True)
class Row:
    """A candidate against the scenario as it is; the scenario itself has no comparison."""

    candidate: Candidate
    #: The mean over seeds; None where a run did not finish, or has no such figure.
    mean: float | None
    unfinished: int
    comparison: Comparison | None


@dataclass(frozen=True)
class Ranking:
    """What came of everything that was tried: the best first."""

    goal: Goal
    seeds: int
    rows: tuple[Row, ...]
    #: What this transport does not have, by name with the reason.
    refused: Mapping[str, str]

    @property
    def best(self) -> Row:
        """That with the best mean."""
        return self.rows[0]


def usual_goal(scenario: Scenario, of: Subject) -> str:
    """What an application is usually asked for."""
    work = _work(scenario, of)
    if traffic(work["kind"]).delays in ("requests", "messages"):
        return "delay-p95" if _supports_p95(work) else "delay-median"
    return "completion" if setting(work, "size_bytes") is not None else "goodput"


def require_support(goal: str, scenario: Scenario, of: Subject) -> None:
    """Refuses a percentile of fewer requests than it needs. Raises ScenarioError."""
    work = _work(scenario, of)
    if goal == "delay-p95" and not _supports_p95(work):
        raise ScenarioError(
            f"a 95th percentile needs {FEWEST['p95']} requests, and '{of.name}' sends {setting(work, 'count')}; "
            "the goal delay-median needs one"
        )


def _work(scenario: Scenario, of: Subject) -> Work:
    return scenario.plan(1).view["applications"][of.index]["work"]


def _supports_p95(work: Work) -> bool:
    count = setting(work, "count")
    return count is None or bool(count >= FEWEST["p95"])


class Trials:
    """Runs of candidates, by seed."""

    def __init__(
        self,
        scenario: Scenario,
        of: Subject,
        goal: Goal,
        seeds: Sequence[int],
        known: Sequence[Interval],
        jobs: int | None,
    ) -> None:
        self.scenario, self.of, self.goal, self.seeds, self.known, self.jobs = scenario, of, goal, seeds, known, jobs
        self.refused: dict[str, str] = {}
        self.runs = 0

    def plans(self, candidate: Candidate) -> list[Plan] | None:
        """A plan for each seed; None where the scenario cannot have this."""
        try:
            return [self._plan(candidate, place, seed) for place, seed in enumerate(self.seeds)]
        except ScenarioError as error:
            self.refused[candidate.name] = error.message
            return None

    def _plan(self, candidate: Candidate, place: int, seed: int) -> Plan:
        # The first is the scenario as it is written.
        drawn = [each.setting(seed) for each in self.known] if place else []
        return self.scenario.with_settings([*drawn, *candidate.settings]).plan(seed)

    def figures(self, tried: Mapping[Candidate, Sequence[Plan]], told: Told) -> dict[Candidate, list[float | None]]:
        """The goal's measure of each candidate by seed, None where it is not reached; what fails is refused."""
        tasks = [(candidate, Task(candidate.name, plan)) for candidate, plans in tried.items() for plan in plans]
        found: dict[int, float | None] = {}
        failed: dict[Candidate, str] = {}
        outcomes = executor.local(self.jobs, len(tasks)).map(summarised, [task for _, task in tasks])
        for index, outcome in outcomes:
            candidate, task = tasks[index]
            if isinstance(outcome, Failure | WorkerLost):
                failed[candidate] = str(outcome)
            else:
                found[index] = self._figure(outcome, task)
            self.runs += 1
            told(self.runs)
        self.refused.update({candidate.name: why for candidate, why in failed.items()})
        by: dict[Candidate, list[float | None]] = {}
        for index, (candidate, _) in enumerate(tasks):
            if candidate not in failed:
                by.setdefault(candidate, []).append(found[index])
        return by

    def _figure(self, summary: Mapping[str, Any], task: Task) -> float | None:
        row = points.rows(summary, task.plan.view)[self.of.index]
        value: float | None = row[self.goal.measure]
        return value


def rank(trials: Trials, told: Told, *, only: Callable[[Candidate], bool] = lambda _: True) -> Ranking:
    """Tries everything, and then the best of each kind together. Raises EngineError, ScenarioError."""
    base = trials.plans(AS_IT_IS)
    if base is None:
        raise ScenarioError(trials.refused[AS_IT_IS.name])
    tried = {AS_IT_IS: base}
    there = _effective(base[0], trials.of)
    for each in candidates(trials.of):
        if only(each) and (plans := trials.plans(each)) is not None and _effective(plans[0], trials.of) != there:
            tried[each] = plans
    figures = trials.figures(tried, told)
    if AS_IT_IS not in figures:
        raise ScenarioError(f"the scenario as it is fails: {trials.refused[AS_IT_IS.name]}")
    helps = list(_helping(trials.goal, figures))
    if len(helps) > 1 and (plans := trials.plans(together(helps))) is not None:
        figures |= trials.figures({together(helps): plans}, told)
    return Ranking(trials.goal, len(trials.seeds), _rows(trials.goal, figures), trials.refused)


def _effective(plan: Plan, of: Subject) -> Any:
    """A plan in which the application's stacks are its own, wherever they were written."""
    data = plan.data
    application = data["applications"][of.index]
    for side in ("client", "server"):
        application[f"{side}_stack"] = application.get(f"{side}_stack") or data["nodes"][application[side]]["stack"]
    return data


def _helping(goal: Goal, figures: Mapping[Candidate, Sequence[float | None]]) -> Iterator[Candidate]:
    """The best of each kind, if it is shown to be better than the present setting."""
    rows = [row for row in _rows(goal, figures) if row.comparison is not None]
    for kind in dict.fromkeys(row.candidate.kind for row in rows):
        first = next(row for row in rows if row.candidate.kind == kind)
        if first.comparison is not None and is_better(goal, first.comparison):
            yield first.candidate


def is_better(goal: Goal, found: Comparison) -> bool:
    """Whether a comparison shows that the candidate is better."""
    if found.verdict == "deterministic":
        return found.difference is not None and goal.better(found.difference, 0.0)
    return found.verdict == ("higher" if goal.more else "lower")


def _rows(goal: Goal, figures: Mapping[Candidate, Sequence[float | None]]) -> tuple[Row, ...]:
    beyond = MEASURES[goal.measure].beyond
    base = figures[AS_IT_IS]
    varies = len({tuple(each) for each in figures.values()}) > 1
    others = [each for each in figures if each is not AS_IT_IS]
    found = judged([compare(figures[each], base, beyond, varies=varies and len(base) > 1) for each in others])
    rows = [_row(AS_IT_IS, base, None)]
    rows += [_row(each, figures[each], comparison) for each, comparison in zip(others, found, strict=True)]
    return tuple(sorted(rows, key=lambda row: _order(goal, row)))


def _row(candidate: Candidate, figures: Sequence[float | None], comparison: Comparison | None) -> Row:
    known = [each for each in figures if each is not None]
    missing = len(figures) - len(known)
    return Row(candidate, sum(known) / len(known) if known else None, missing, comparison)


def _order(goal: Goal, row: Row) -> tuple[int, float]:
    if row.mean is None:
        return row.unfinished, 0.0
    return row.unfinished, -row.mean if goal.more else row.mean
