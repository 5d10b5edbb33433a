"""What is watched of a run has no effect on it."""

from __future__ import annotations

from random import Random
from typing import Literal

import polars as pl

import polypath
from polypath import _core
from polypath.engines import scheduled
from polypath.results import account, metrics

from .case import Case, ran
from .compare import OF_SEGMENTS, SAMPLED, TIMED, same, same_rows, same_tables, without_kinds
from .relation import need, relation, require


@relation(
    "Another sampling interval changes only the samples, and samples of the same instant are equal.",
    "A sample reads the current state.",
    weight=2,
)
def sampling_interval(case: Case, random: Random) -> None:
    own = case.plan.view["record"]["interval_ns"]
    factor = random.choice((2, 3, 5))
    data = case.copy()
    data.setdefault("record", {})["interval"] = f"{own * factor} ns"
    other = ran(data)
    same(case.recording, other, without=SAMPLED)
    for name in SAMPLED:
        at = pl.col(TIMED[name])
        shared = (at % (own * factor) == 0) & (at < case.end_ns)
        one, two = case.recording.table(name).filter(shared), other.table(name).filter(shared)
        same_rows(one, two, name)


@relation(
    "Recording segments changes nothing else, including the hash.",
    "Segments are noted as they leave.",
)
def recorded_segments(case: Case, random: Random) -> None:
    same(case.recording, case.detailed, without=OF_SEGMENTS)
    one, other = case.recording.metadata, case.detailed.metadata
    require(one.recording_sha256 == other.recording_sha256, "the hash of the Recording differs")


@relation(
    "An account changes nothing else, including the hash, and its delivered bytes equal those that arrived.",
    "It only observes packets.",
)
def accounts(case: Case, random: Random) -> None:
    other = polypath.run(case.plan, account=True)
    same(case.recording, other, without=frozenset({"account"}))
    require(case.recording.metadata.recording_sha256 == other.metadata.recording_sha256, "the hash differs")
    changed = any("middleboxes" in link for link in case.plan.view["links"])
    for connection in metrics.connections(other):
        kept = account.of_connection(other, connection)
        if kept is not None and not changed:
            require(kept.delivered_bytes >= connection.bytes, f"{connection.name}: less delivered than arrived")


@relation(
    "Captures at hosts or on links change nothing.",
    "They are copies of packets.",
)
def captures(case: Case, random: Random) -> None:
    kinds: tuple[Literal["hosts"], Literal["links"]] = ("hosts", "links")
    kind = random.choice(kinds)
    same(case.recording, polypath.run(case.plan, captures=kind, directory=case.folder()))


@relation(
    "Logs of QUIC change nothing.",
    "They are written beside the run.",
    weight=2,
)
def qlogs(case: Case, random: Random) -> None:
    need(case.plan.has_quic)
    folder = case.folder()
    same(case.recording, polypath.run(case.plan, qlogs=folder))
    require(any(folder.iterdir()), "there is no log")


@relation(
    "Recording the scheduler's decisions adds their events and changes nothing else.",
    "Decisions are noted as they are made.",
)
def recorded_decisions(case: Case, random: Random) -> None:
    data = case.copy()
    data.setdefault("record", {})["decisions"] = True
    same(case.recording, ran(data), events=without_kinds("scheduler"))


@relation(
    "A run is the same for every step by which it is advanced.",
    "The owner of the loop asks for a time; events have their own.",
)
def advanced_by_steps(case: Case, random: Random) -> None:
    plan = case.plan
    simulation = _core.Simulation(plan.json())
    longest = plan.view["duration_ns"] // 20
    while not simulation.step(simulation.now_ns + random.randint(1, longest)):
        pass
    native = simulation.recording()
    require(native.sha256 == case.recording.metadata.recording_sha256, "the hash of the Recording differs")
    frames = {name: pl.DataFrame(native.table(name)) for name in native.names}
    same_tables(case.recording.tables, scheduled.entered(frames, plan.view, simulation.now_ns))
