"""An engine: it turns a Plan into a Recording."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import polars as pl

from polypath import _core
from polypath.engines import scheduled
from polypath.errors import PolypathError
from polypath.recorded import Captures as Captures
from polypath.recorded import Record
from polypath.results import Metadata, OutputError, Recording, account, layout
from polypath.scenario import Plan, compiled
from polypath.units import nearest

if TYPE_CHECKING:
    from polypath.plan.data import PlanData

#: Called with a program's name, "stdout" or "stderr", and bytes that it printed.
Output = Callable[[str, str, bytes], None]

#: Called now and then with the simulated time and the time at which the run ends at the latest, in ns.
Progress = Callable[[int, int], None]


class EngineError(PolypathError, RuntimeError):
    """An engine cannot run this, or failed in doing so; the message is one line."""


class Unplayable(EngineError):
    """An engine has no means of running one of the scenario's applications."""

    def __init__(self, application: str, reason: str) -> None:
        super().__init__(f"application '{application}' {reason}")
        self.application = application


@dataclass(frozen=True)
class Options:
    """What an engine is given of a `Record`: where each part goes."""

    captures: Captures = "none"
    #: Where the captures go; needed unless `captures` is none.
    directory: Path | None = None
    #: Whether segments are recorded even if the plan does not ask for them; they are not part of the recording's hash.
    segments: bool = False
    #: A new or empty folder for a qlog of each side of each connection of QUIC.
    qlogs: Path | None = None
    #: A new or empty folder for what the machine's programs print and write, a folder for each.
    programs: Path | None = None
    #: Is given what they print while they run.
    output: Output | None = None
    #: Whether an account of causes is kept (docs/explain.md) even if the plan does not ask for it, as with `segments`.
    account: bool = False

    @property
    def aside(self) -> Sequence[Literal["segments", "account"]]:
        """What is recorded beside what the plan asks for."""
        return (*(("segments",) if self.segments else ()), *(("account",) if self.account else ()))

    def __post_init__(self) -> None:
        """Raises EngineError for captures of an unknown kind."""
        require(Record(self.captures))


def require(record: Record) -> None:
    """Raises EngineError, with the nearest name, where something of that name is not recorded."""
    if (found := record.unknown()) is not None:
        what, name, known = found
        hint = nearest(name, known)
        better = f"did you mean '{hint}'?" if hint else f"there is {', '.join(known)}"
        raise EngineError(f"unknown {what} '{name}'; {better}")


def into(record: Record, plan: Plan, staged: Path | None, output: Output | None = None) -> Options:
    """The options of a run whose result goes to the folder `staged`; None: to none. Raises EngineError, OutputError."""
    require(record)
    kept = record.account
    if staged is None:
        return Options(segments=record.segments, account=bool(kept), output=output)
    return Options(
        record.captures,
        None if record.captures == "none" else _folder(staged / layout.CAPTURE),
        record.segments,
        staged / layout.QLOG if record.qlogs and plan.has_quic else None,
        staged / layout.PROGRAMS if plan.view.get("programs") else None,
        output,
        account.is_read(plan.view) if kept is None else kept,
    )


def missing(record: Record, files: Collection[str], plan: Plan) -> bool:
    """Whether a result, which has these files, lacks some of what is to be recorded."""
    parts = {name.partition("/")[0] for name in files}
    needed = {
        layout.QLOG: record.qlogs and plan.has_quic,
        layout.PROGRAMS: bool(plan.view.get("programs")),
    }
    return any(wanted and part not in parts for part, wanted in needed.items()) or not _captured(record, files, plan)


def _captured(record: Record, files: Collection[str], plan: Plan) -> bool:
    """Whether the captures are there, and at those places."""
    found = {Path(name).name for name in fnmatch.filter(files, f"{layout.CAPTURE}/*{layout.PCAPNG}")}
    if record.captures == "links":
        return found == {layout.capture(link["name"]) for link in plan.view["links"]}
    hosts = {layout.capture(node["name"]) for node in plan.view["nodes"] if node["kind"] == "host"}
    return record.captures == "none" or (bool(found) and found <= hosts)


def _folder(path: Path) -> Path:
    try:
        path.mkdir()
    except OSError as error:
        raise OutputError(f"cannot write captures: {error.strerror or error}") from error
    return path


def require_own(plan: PlanData, whose: str) -> None:
    """Raises EngineError where a Plan has what only engine linux has: kernels by name, schedulers in C."""
    for host, kernel in plan.get("kernels", {}).items():
        raise EngineError(f"host '{host}' has the kernel '{kernel}', which {whose} does not run; --engine linux does")
    # what is no plan of any engine is for the simulator to say
    nodes = plan.get("nodes")
    for node in nodes if isinstance(nodes, list) else ():
        stack = node.get("stack") if isinstance(node, dict) else None
        chosen = stack.get("scheduler") if isinstance(stack, dict) else None
        if isinstance(chosen, dict) and chosen.get("name") == compiled.NAME:
            file = chosen["parameters"]["file"]
            raise EngineError(
                f"the scheduler '{file}' is for Linux, which {whose} does not compile; --engine linux does"
            )


def no_progress(now_ns: int, end_ns: int) -> None:
    """Ignores the progress of a run."""


class Engine(Protocol):
    """Runs a Plan. A KeyboardInterrupt ends the run, whose Recording is then partial and marked interrupted."""

    @property
    def name(self) -> str: ...

    def versions(self) -> Mapping[str, str]:
        """What takes part in a run beside Polypath. Raises EngineError where it is not there."""
        ...

    def run(self, plan: Plan, options: Options = ..., progress: Progress = ...) -> Recording:
        """Raises EngineError for a plan that the engine cannot run."""
        ...


@dataclass(frozen=True)
class Outcome:
    """What an engine has of a run."""

    frames: Mapping[str, pl.DataFrame]
    #: Of the tables, in a form of the engine's own; what the plan schedules is not among its events yet.
    sha256: str
    end_ns: int
    interrupted: bool
    #: Of what took part beside Polypath.
    versions: Mapping[str, str]

    def recording(self, engine: str, plan: Plan, started: float) -> Recording:
        """`started` is a reading of `time.perf_counter`."""
        metadata = Metadata(
            scenario=str(plan.view["name"]),
            seed=int(plan.view["seed"]),
            engine=engine,
            plan_sha256=plan.sha256(),
            recording_sha256=self.sha256,
            end_ns=self.end_ns,
            interrupted=self.interrupted,
            wall_s=round(time.perf_counter() - started, 3),
            versions={"polypath": _core.version(), **self.versions},
        )
        return Recording(scheduled.entered(self.frames, plan.view, self.end_ns), plan.view, metadata)
