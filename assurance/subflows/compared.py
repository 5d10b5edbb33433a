"""What the path managers of a set-up did, on the simulator and on the kernel."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import polars as pl

from polypath import Scenario, ScenarioError, run
from polypath.engines import EngineError
from polypath.results import Recording

from .drawn import LASTS, STARTS, Drawn, scenario

#: The simulator, and the kernel.
ENGINES = ("sim", "linux")
#: What both engines are to count alike, without the prefix of MPTCP's MIBs.
COUNTED = (
    *("MPCapableSYNTX", "MPCapableSYNTXDrop", "MPCapableFallbackSYNACK", "MPFallbackTokenInit"),
    *("MPJoinSynTx", "MPJoinSynRx", "MPJoinSynBackupRx", "MPJoinSynAckRx", "MPJoinSynAckBackupRx", "MPJoinAckRx"),
    *("MPJoinRejected", "MPJoinPortSynRx", "AddAddr", "AddAddrTx", "AddAddrDrop", "EchoAdd", "EchoAddTx"),
    *("RmAddr", "RmAddrTx", "RmAddrDrop", "RmSubflow", "MPPrioTx", "MPPrioRx", "MPRstTx", "MPRstRx", "MPFailTx"),
)
#: In ms: what closes later does so with its connection, and when differs in how the engines tell it.
ENDS = STARTS + LASTS
#: In ms: times of both engines that are nearer are the same. At the end that opens a subflow it is established by the
#: fourth segment here (RFC 8684 section 3.2), and by the second in the kernel's events, a round trip before. The other
#: end's times, of the third segment, are alike.
NEAR = 100


@dataclass(frozen=True)
class Compared:
    """A set-up on both engines: what differs, as "what: simulator, kernel"."""

    number: int
    classes: list[str]
    refused: str = ""
    differs: list[str] = field(default_factory=list)

    def json(self) -> str:
        """A line."""
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, line: str) -> Compared:
        """From a line."""
        return cls(**json.loads(line))


def compared(numbers: Sequence[int]) -> Iterator[Compared]:
    """Runs set-ups, at most 15, in one scenario on each engine."""
    parts = []
    for number in numbers:
        text, [part] = scenario([number])
        try:
            Scenario.parse(text, f"{part.name}.toml").plan()
        except ScenarioError as error:
            yield Compared(number, sorted(part.classes), refused=error.message)
            continue
        parts.append(part)
    if not parts:
        return
    text, parts = scenario([part.number for part in parts])
    plan = Scenario.parse(text, "several.toml").plan()
    try:
        both = [found(run(plan, engine=engine)) for engine in ENGINES]
    except EngineError as error:
        if len(parts) > 1:
            for part in parts:
                yield from compared([part.number])
        else:
            yield Compared(parts[0].number, sorted(parts[0].classes), refused=str(error))
        return
    for part in parts:
        yield Compared(part.number, sorted(part.classes), differs=list(_differences(part, *both)))


@dataclass
class Found:
    """What was seen of one set-up."""

    #: Of each connection in its turn: both addresses, when its ends took it for established, and when it closed, in ms.
    subflows: list[tuple[str, str, tuple[int, ...], int | None]] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    shares: dict[tuple[str, str], float] = field(default_factory=dict)


def found(recording: Recording) -> Mapping[str, Found]:
    """What was seen of each set-up; subflows but the first count that both ends took for established."""
    names = dict(recording.table("connection_ends").select("connection", "name").iter_rows())
    cases = {connection: str(name).partition("-")[0] for connection, name in names.items()}
    seen = {case: Found() for case in cases.values()}
    # A client of the kernel's is told of a refusal of its third segment when it has the subflow for established.
    told = recording.table("events").filter(pl.col("kind") == "subflow-established")
    when = (pl.col("time_ns") // 10**6).sort()
    ends = told.group_by("connection", "subflow").agg(ends=pl.col("host").n_unique(), when=when)
    worked = recording.table("subflow_ends").join(ends, on=["connection", "subflow"])
    worked = worked.filter(pl.col("established_ns").is_not_null(), (pl.col("ends") == 2) | (pl.col("subflow") == 0))
    given = pl.col("client_received_bytes") + pl.col("server_received_bytes")
    shares = worked.with_columns(bytes=given, share=given / given.sum().over("connection"))
    for row in shares.sort("connection", "subflow").iter_rows(named=True):
        of = seen[cases[row["connection"]]]
        pair = (row["source"], row["destination"])
        closed = None if row["closed_ns"] is None else row["closed_ns"] // 10**6
        of.subflows.append((*pair, tuple(row["when"]), closed if closed is not None and closed < ENDS else None))
        of.shares[pair] = of.shares.get(pair, 0.0) + (row["share"] or 0.0)
    for of in seen.values():
        _in_turn(of.subflows)
    for host, name, value in recording.table("counters").select("host", "name", "value").iter_rows():
        case, _, side = str(host).partition("-")
        counter = str(name).removeprefix("MPTcpExt")
        if counter in COUNTED and value:
            seen[case].counters[f"{side} {counter}"] = value
    return seen


def _in_turn(subflows: list[tuple[str, str, tuple[int, ...], int | None]]) -> None:
    """Puts subflows between the same addresses in the order of their times, as the kernel's numbers are not."""
    for pair in {each[:2] for each in subflows}:
        places = [place for place, each in enumerate(subflows) if each[:2] == pair]
        times = sorted((subflows[place] for place in places), key=lambda each: each[2])
        for place, each in zip(places, times, strict=True):
            subflows[place] = each


def _differences(part: Drawn, simulated: Mapping[str, Found], real: Mapping[str, Found]) -> Iterator[str]:
    told, seen = simulated[part.name], real[part.name]
    pairs = [[f"{one} > {other}" for one, other, *_ in each.subflows] for each in (told, seen)]
    if pairs[0] != pairs[1]:
        yield f"subflows: {', '.join(pairs[0])}; {', '.join(pairs[1])}"
    else:
        yield from _times(told.subflows, seen.subflows)
        for pair in told.shares:
            if abs(told.shares[pair] - seen.shares[pair]) > 0.1:
                yield f"share of {pair[0]} > {pair[1]}: {told.shares[pair]:.0%}, {seen.shares[pair]:.0%}"
    for name in sorted(told.counters.keys() | seen.counters.keys()):
        one, other = told.counters.get(name, 0), seen.counters.get(name, 0)
        if one != other:
            yield f"{name}: {one}, {other}"


def _times(told: Sequence[tuple[Any, ...]], seen: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    for (*pair, here, closed), (*_, there, left) in zip(told, seen, strict=True):
        subflow = " > ".join(pair)
        if not any(_near(one, other) for one in here for other in there):
            yield f"established {subflow}: {here}, {there} ms"
        if (closed is None) != (left is None) or (closed is not None and not _near(closed, left)):
            yield f"closed {subflow}: {closed}, {left} ms"


def _near(one: int, other: int) -> bool:
    return abs(one - other) <= NEAR
