"""One random plan on both engines: what each application came to there."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from polypath import engines
from polypath.engines import EngineError
from polypath.scenario import Plan

from .shared import lossless, reduced

ROOT: Final = Path(__file__).resolve().parents[2]
#: Built by `cargo build -p polypath-lab --example campaign`.
GENERATOR: Final = ROOT / "target" / "debug" / "examples" / "campaign"
ENGINES: Final = ("sim", "linux")
#: The state of a connection that is over without an error.
DONE: Final = "finished"
#: A time further from the kernel's than this asks for a cause.
FAR: Final = 3.0


@dataclass(frozen=True)
class End:
    """How an application ended on one engine."""

    state: str
    client_received: int
    server_received: int
    took_s: float | None


@dataclass(frozen=True)
class Compared:
    """An application on both engines, or why the plan was refused or a run failed."""

    number: int
    application: str
    kind: str = ""
    transport: str = ""
    lossless: bool = False
    ends: Mapping[str, End] | None = None
    refused: str | None = None
    failed: str | None = None

    def json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, line: str) -> Compared:
        told = json.loads(line)
        ends = told.pop("ends")
        return cls(**told, ends={name: End(**end) for name, end in ends.items()} if ends else None)

    @property
    def done(self) -> bool:
        """On both."""
        return self.ends is not None and all(end.state == DONE for end in self.ends.values())

    @property
    def ratio(self) -> float | None:
        """The simulator's time over the kernel's, if the application finished on both."""
        if self.ends is None or not self.done:
            return None
        sim, linux = (self.ends[name].took_s for name in ENGINES)
        return sim / linux if sim and linux else None

    @property
    def far(self) -> bool:
        """Whether it was done on one engine alone, or took much longer there."""
        if self.ends is None:
            return False
        if self.ratio is None:
            return sum(end.state == DONE for end in self.ends.values()) == 1
        return not 1 / FAR <= self.ratio <= FAR

    @property
    def fault(self) -> str | None:
        """What no chance explains."""
        if self.failed:
            return self.failed
        if self.ends is None or not self.done or self.kind in OPEN_ENDED:
            return None
        sim, linux = (self.ends[name] for name in ENGINES)
        if (sim.client_received, sim.server_received) != (linux.client_received, linux.server_received):
            return f"other bytes: {sim} and {linux}"
        return None


#: They send for a time, so that bytes depend on it.
OPEN_ENDED: Final = frozenset({"stream", "ping-pong", "bulk for a time"})


def plan(number: int) -> Plan:
    """The scenario of that number, as the campaign of assurance/records/campaign.md draws it."""
    told = subprocess.run([GENERATOR, "plan", str(number)], check=True, capture_output=True, text=True)
    return Plan(json.loads(told.stdout))


def compared(number: int) -> list[Compared]:
    """A row for each application over TCP or Multipath TCP."""
    try:
        shared = reduced(plan(number))
    except EngineError as error:
        return [Compared(number, "", refused=str(error))]
    ends: dict[str, dict[int, End]] = {}
    for name in ENGINES:
        try:
            ends[name] = run(name, shared)
        except EngineError as error:
            return [Compared(number, "", lossless=lossless(shared), failed=f"{name}: {error}")]
    rows = []
    for index, application in enumerate(shared.data["applications"]):
        if application["transport"] in ("tcp", "mptcp"):
            both = {name: ends[name][index] for name in ENGINES}
            kind = _kind(application["work"])
            rows.append(Compared(number, application["name"], kind, application["transport"], lossless(shared), both))
    return rows


def run(engine: str, shared: Plan) -> dict[int, End]:
    """What each application came to, by its place in the plan. Raises EngineError where the run fails."""
    found = {}
    for row in engines.get(engine).run(shared).table("connection_ends").sort("connection").to_dicts():
        took = None if row["last_byte_ns"] is None else (row["last_byte_ns"] - row["start_ns"]) / 1e9
        found[row["application"]] = End(row["state"], row["client_received_bytes"], row["server_received_bytes"], took)
    return found


def _kind(work: Mapping[str, Any]) -> str:
    return "bulk for a time" if work["kind"] == "bulk" and work.get("duration_ns") else str(work["kind"])
