"""Plays test cases between pairs of stacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from polypath.engines import get
from polypath.engines.base import EngineError
from polypath.interop.cases import CASES, Case
from polypath.interop.participants import PARTICIPANTS
from polypath.results import Recording
from polypath.scenario import Scenario

SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class Cell:
    """A test case between a client and a server."""

    case: str
    client: str
    server: str
    #: None: it was not played.
    passed: bool | None
    #: Why it did not pass or was not played.
    reason: str = ""
    #: Of everything that was recorded.
    hash: str = ""

    @property
    def word(self) -> str:
        """What a table says."""
        if self.passed:
            return "passed"
        return f"{'not played' if self.passed is None else 'failed'}: {self.reason}"


def record(of: Scenario) -> Recording:
    """Runs it in the simulator."""
    return get("sim").run(of.plan())


def play(case: Case, client: str, server: str, seeds: Sequence[int] = SEEDS) -> Cell:
    """Plays a case: once, or with every seed where chance plays a part."""
    for name, serves in ((client, False), (server, True)):
        participant = PARTICIPANTS[name]
        reason = participant.missing() or participant.cannot(case.name, case.multipath, serves)
        if reason is not None:
            return Cell(case.name, client, server, None, reason)
    hashes, wrong = [], None
    for seed in seeds if case.by_chance else seeds[:1]:
        try:
            recording = record(case.scenario(client, server, seed))
        except EngineError as error:
            return Cell(case.name, client, server, False, str(error))
        hashes.append(recording.metadata.recording_sha256)
        found = case.judge(recording)
        if found is not None and wrong is None:
            wrong = f"{found} (seed {seed})"
    whole = sha256("".join(hashes).encode()).hexdigest()
    return Cell(case.name, client, server, wrong is None, wrong or "", whole)


def by_name(names: tuple[str, str, str]) -> Cell:
    """As `play`, by the names of case, client and server: for other processes."""
    case, client, server = names
    return play(next(each for each in CASES if each.name == case), client, server)
