"""The size of a receive buffer: by the rule of thumb, and by search in an engine.

The search takes a connection's receive buffer as fixed, its send buffer as ample, and everything else as the scenario
has it. It tries three sizes at a time, whatever the number of cores, so that the answer does not depend on that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from polypath.engines import EngineError
from polypath.results.paths import is_reverse
from polypath.scenario import Scenario, ScenarioError
from polypath.scenario.tables import application_names, between_hosts
from polypath.statistics import points as tables
from polypath.sweeps import executor
from polypath.sweeps.executor import WorkerLost
from polypath.sweeps.point import Failure, Task, summarised

#: A buffer that is ample has at least this size, and this many times that of the rule of thumb.
AMPLE_BYTES: Final = 64_000_000
AMPLE_TIMES: Final = 16
#: The least buffer tried.
LEAST_BYTES: Final = 4_000
#: The search ends when the sizes on both sides of the answer differ by no more than this.
PRECISION: Final = 0.03
_AT_A_TIME: Final = 3
#: Parts of the answer at which the loss is told.
PARTS: Final = (2, 4, 8)

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Trial:
    """A buffer and the goodput with it."""

    buffer_bytes: int
    goodput_mbps: float


@dataclass(frozen=True)
class Sizing:
    """What came of the search."""

    connection: str
    receiver: str
    subflows: int
    links_mbps: float
    rtt_s: float
    rule_of_thumb: Trial
    ample: Trial
    #: Of the ample one and its halves. A larger buffer may do worse: it fills queues, and losses and delays there cost
    #: more than it gains.
    best: Trial
    #: The part of the best goodput that was asked for.
    fraction: float
    smallest: Trial
    #: At 1/2, 1/4 and 1/8 of the smallest.
    below: Sequence[Trial]


def size(
    scenario: Scenario,
    *,
    connection: str | None = None,
    fraction: float = 0.95,
    seed: int | None = None,
    jobs: int | None = None,
    engine: str = "sim",
    progress: Progress = lambda runs: None,
) -> Sizing:
    """The smallest receive buffer with at least `fraction` of the best goodput. Every one that was tried between it and
    the best reaches it too.

    Raises ScenarioError if the connection is missing or carries no stream. Raises EngineError if a run fails, or if
    nothing bounds the rate of the paths.
    """
    search = _Search(scenario, connection, seed, jobs, engine, progress)
    ample, row = search.ample()
    tried = search.halves(ample, fraction)
    best = max(tried, key=lambda trial: (trial.goodput_mbps, trial.buffer_bytes))
    wanted = fraction * best.goodput_mbps
    found, low = best, LEAST_BYTES
    for trial in tried:
        if trial.buffer_bytes < best.buffer_bytes:
            if trial.goodput_mbps < wanted:
                low = trial.buffer_bytes
                break
            found = trial
    high = found.buffer_bytes
    while high > low * (1 + PRECISION) and high - low > 1:
        between = [round(low * (high / low) ** (step / (_AT_A_TIME + 1))) for step in range(1, _AT_A_TIME + 1)]
        trials = search.run(sorted(set(between)))
        for trial in reversed(trials):
            if trial.goodput_mbps < wanted:
                low = trial.buffer_bytes
                break
            high, found = trial.buffer_bytes, trial
    sizes = [row["rule_of_thumb_bytes"], *(found.buffer_bytes / part for part in PARTS)]
    rule, *below = search.run([max(1, round(size)) for size in sizes])
    return Sizing(
        search.name,
        search.receiver,
        row["subflows"],
        row["links_mbps"],
        row["rtt_s"],
        rule,
        ample,
        best,
        fraction,
        found,
        below,
    )


class _Search:
    def __init__(
        self,
        scenario: Scenario,
        connection: str | None,
        seed: int | None,
        jobs: int | None,
        engine: str,
        progress: Progress,
    ) -> None:
        self.scenario, self.seed, self.jobs, self.engine, self.progress = scenario, seed, jobs, engine, progress
        written = application_names(scenario)
        names = [written[index] for index, _ in between_hosts(scenario)]
        streams = [written[index] for index, one in between_hosts(scenario) if one.transport in ("tcp", "mptcp")]
        if not streams:
            raise ScenarioError("no application runs over TCP or Multipath TCP: there is no buffer to size")
        if connection is None and len(streams) > 1:
            raise ScenarioError(f"name the connection, --connection NAME: there is {', '.join(streams)}")
        if connection is not None and connection not in streams:
            raise ScenarioError(
                f"no TCP or Multipath TCP connection is named '{connection}' (there: {', '.join(streams)})"
            )
        self.name = streams[0] if connection is None else connection
        self.place = names.index(self.name)
        plan = scenario.plan(seed).view
        reverse = is_reverse(plan["applications"][self.place])
        self.receiver, self.sender = ("client", "server") if reverse else ("server", "client")
        self.runs = 0

    def ample(self) -> tuple[Trial, Mapping[str, Any]]:
        """The goodput with an ample buffer, and the connection's row with it."""
        buffer = AMPLE_BYTES
        while True:
            row = self._rows([buffer], buffer)[0]
            if not row["goodput_mbps"]:
                raise EngineError(f"'{self.name}' delivers nothing, whatever the buffer: let it last longer")
            if row["rule_of_thumb_bytes"] is None:
                raise EngineError(f"no link bounds the rate of '{self.name}': there is nothing to size")
            if AMPLE_TIMES * row["rule_of_thumb_bytes"] <= buffer:
                self.ample_bytes, self.rule_of_thumb_bytes = buffer, row["rule_of_thumb_bytes"]
                return Trial(buffer, row["goodput_mbps"]), row
            buffer = round(AMPLE_TIMES * row["rule_of_thumb_bytes"])

    def halves(self, ample: Trial, fraction: float) -> list[Trial]:
        """The ample buffer, its half and so on, until a few in a row are too small. Smaller ones do worse: at most a
        window's worth of data leaves in each round-trip time."""
        tried = [ample]
        while (size := tried[-1].buffer_bytes // 2) >= LEAST_BYTES:
            sizes = [size >> step for step in range(_AT_A_TIME)]
            trials = self.run([each for each in sizes if each >= LEAST_BYTES])
            tried += trials
            best = max(trial.goodput_mbps for trial in tried)
            small = trials[-1].buffer_bytes < self.rule_of_thumb_bytes
            if small and all(trial.goodput_mbps < fraction * best for trial in trials):
                break
        return tried

    def run(self, buffers: Sequence[int]) -> list[Trial]:
        """The goodput with each buffer."""
        rows = self._rows(buffers, self.ample_bytes)
        return [Trial(buffer, row["goodput_mbps"] or 0.0) for buffer, row in zip(buffers, rows, strict=True)]

    def _rows(self, buffers: Sequence[int], send_buffer: int) -> list[Mapping[str, Any]]:
        tasks = []
        for buffer in buffers:
            made = self.scenario.with_settings(
                [
                    f"application.{self.name}.{self.receiver}_stack.receive_buffer={buffer} B",
                    f"application.{self.name}.{self.sender}_stack.send_buffer={send_buffer} B",
                ]
            )
            tasks.append(Task(f"{self.name} with {buffer} B", made.plan(self.seed), engine=self.engine))
        found: dict[int, Mapping[str, Any]] = {}
        for index, outcome in executor.local(self.jobs, len(tasks)).map(summarised, tasks):
            if isinstance(outcome, Failure | WorkerLost):
                raise EngineError(f"{tasks[index].name}: {outcome}")
            found[index] = self._row(outcome, tasks[index])
            self.runs += 1
            self.progress(self.runs)
        return [found[index] for index in range(len(tasks))]

    def _row(self, summary: Mapping[str, Any], task: Task) -> Mapping[str, Any]:
        return tables.rows(summary, task.plan.view)[self.place]
