"""Applications whose times were far apart, with other draws: whether chance alone put them there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from statistics import median
from typing import Final

from polypath.engines import EngineError
from polypath.scenario import Plan
from polypath.statistics.paired import holm

from .compared import DONE, ENGINES, Compared, plan, run
from .shared import reduced

#: Runs on each engine. The draws that were far apart are not among them: they were chosen for it.
RUNS: Final = 8
#: A difference that chance would show so seldom, over all of them, has another cause.
LEVEL: Final = 0.05


@dataclass(frozen=True)
class Again:
    """The times of an application by engine, in seconds; None: it was not done. Runs that failed have none."""

    number: int
    application: str
    kind: str
    transport: str
    times: Mapping[str, Sequence[float | None]]
    #: Why runs of the plan failed.
    failed: Sequence[str] = ()

    def json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, line: str) -> Again:
        told = json.loads(line)
        return cls(**told | {"failed": tuple(told["failed"])})

    def median(self, engine: str) -> float:
        times = self.times[engine]
        return median(_ranked(times)) if times else inf

    @property
    def p(self) -> float:
        """The two-sided p-value of Mann and Whitney's test over all permutations of the runs."""
        from scipy.stats import PermutationMethod, mannwhitneyu

        sim, linux = (_ranked(self.times[name]) for name in ENGINES)
        if not sim or not linux or len({*sim, *linux}) == 1:
            return 1.0
        # the rank of what was not done is the last, whatever its time
        latest = 1 + max((time for time in (*sim, *linux) if time < inf), default=0.0)
        sides = [[min(time, latest) for time in side] for side in (sim, linux)]
        return float(mannwhitneyu(*sides, method=PermutationMethod(n_resamples=20_000)).pvalue)


def _ranked(times: Sequence[float | None]) -> list[float]:
    return [inf if time is None else time for time in times]


def again(number: int, rows: Sequence[Compared]) -> list[Again]:
    """These applications of a plan, run with other draws on both engines."""
    shared = reduced(plan(number))
    places = {application["name"]: place for place, application in enumerate(shared.data["applications"])}
    times: dict[str, dict[str, list[float | None]]] = {row.application: {name: [] for name in ENGINES} for row in rows}
    failed = []
    for seed in range(shared.data["seed"] + 1, shared.data["seed"] + RUNS + 1):
        drawn = Plan(shared.data | {"seed": seed})
        for engine in ENGINES:
            try:
                ends = run(engine, drawn)
            except EngineError as error:
                failed.append(f"seed {seed}, {engine}: {error}")
                continue
            for name, each in times.items():
                end = ends[places[name]]
                each[engine].append(end.took_s if end.state == DONE else None)
    return [
        Again(number, row.application, row.kind, row.transport, times[row.application], tuple(failed)) for row in rows
    ]


def different(rows: Sequence[Again]) -> list[tuple[Again, float]]:
    """Those whose engines differ by more than chance, with p corrected for as many tests (Holm)."""
    corrected = holm([row.p for row in rows])
    found = [(row, p) for row, p in zip(rows, corrected, strict=True) if p < LEVEL]
    return sorted(found, key=lambda each: (each[1], each[0].number, each[0].application))
