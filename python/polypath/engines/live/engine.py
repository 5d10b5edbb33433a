"""The engine: a Plan on this computer's kernel, in real time, in separate namespaces."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from polypath.engines import owned
from polypath.engines.base import Captures, EngineError, Options, Outcome, Progress, no_progress, require_own
from polypath.engines.live.machine import NAMESPACES, Machine, MachineKernel, probe
from polypath.engines.live.simulated import Simulated
from polypath.engines.namespaces import commands, iperf3, programs, run, translation
from polypath.engines.namespaces.job import Job
from polypath.engines.namespaces.segments import captures_for, with_segments
from polypath.engines.namespaces.session import FILES, Session, network
from polypath.engines.namespaces.tables import Tables, digest
from polypath.engines.namespaces.wires import Netem
from polypath.engines.trusted import Executable
from polypath.results import Recording
from polypath.scenario import Plan

if TYPE_CHECKING:
    from polypath.plan.data import PlanData

LIMIT = run.Limit("POLYPATH_LIVE_LIMIT", 600.0)

_INIT = Path(__file__).with_name("init.sh")
_PREFIX = "polypath-live-"
#: What a run's process is called.
_WHOSE = "the process of the run's namespaces"
#: What a run takes besides its own time, at most.
_MORE_S = 30.0
#: A session has no end of its own: ten years.
_FOR_EVER_NS = 10 * 365 * 86_400 * 1_000_000_000


class LiveEngine:
    """Takes as long as the Plan says, and differs a little from run to run, as real time does."""

    name = "live"

    def versions(self) -> dict[str, str]:
        """The machine's kernel."""
        return {"linux": platform.release()}

    def run(self, plan: Plan, options: Options = Options(), progress: Progress = no_progress) -> Recording:
        started = time.perf_counter()
        data = plan.view
        require_own(data, "engine live")
        end_ns = int(data["duration_ns"])
        _require_time(end_ns / 1e9)
        machine = probe()
        job, files = _translate(data, captures_for(data, options).captures, machine)
        executables = {"init": Executable(_INIT), **iperf3.executables(data), **commands.executables(data)}
        with _alone(), run.folder(_PREFIX, files, executables, None) as folder:
            tail = commands.Tail(data, folder, options.output)
            ended = run.follow(
                [*NAMESPACES, "./init"],
                folder,
                _wall(end_ns / 1e9),
                tail.follow(lambda now: progress(now, end_ns)),
            )
            tail.read()
            if not ended.interrupted:
                run.complain(ended)
                run.require_end(ended, folder, _WHOSE)
            tables = Tables(job, folder / "out")
            run.require_begun(ended, tables.end_ns)
            if options.captures != "none":
                job.take_captures(folder / "out", options.directory)
            commands.take(data, folder, options.programs)
            network_is = "netem" if machine.netem else _simulated(folder / "out" / "links.tally")
            if options.account or data["record"].get("account"):
                tables.keep_account()
            bare = tables.frames()
            frames = with_segments(data, options, job.captured(folder / "out"), bare, tables.end_ns)
        versions = {"linux": machine.release, "network": network_is}
        outcome = Outcome(
            frames, digest(frames if data["record"]["segments"] else bare), tables.end_ns, ended.interrupted, versions
        )
        return outcome.recording(self.name, plan, started)

    @contextmanager
    def session(self, plan: Plan) -> Iterator[Session]:
        """The Plan's network without its applications and events, to be asked for one thing after the other. Raises
        EngineError."""
        require_own(plan.view, "engine live")
        data: PlanData = {**network(plan.view), "duration_ns": _FOR_EVER_NS}
        job, files = _translate(data, "hosts", probe())
        files |= FILES | commands.names(data)
        executables = {"init": Executable(_INIT), iperf3.PRELOAD: programs.library("mptcp")}
        with (
            run.folder(_PREFIX, files, executables, None) as folder,
            run.started([*NAMESPACES, "./init"], folder) as process,
        ):
            yield Session(job, folder, process, run.complain, still=False)


def _wall(seconds: float) -> run.Limit:
    """What a run of that length may take; who allows more by the variable has more for its beginning and end."""
    enough = seconds + _MORE_S
    return run.Limit(LIMIT.variable, enough, enough)


def _translate(data: PlanData, captures: Captures, machine: Machine) -> tuple[Job, dict[str, str]]:
    wires = Netem if machine.netem else Simulated
    return translation.translate(data, captures, wires, MachineKernel(machine))


def _require_time(seconds: float) -> None:
    limit = LIMIT.seconds()
    if seconds > limit:
        raise EngineError(
            f"engine live would take {seconds:g} s of real time, more than {limit:g} s: "
            f"{LIMIT.variable}={seconds:g} allows it, a shorter duration avoids it"
        )


def _alone() -> AbstractContextManager[None]:
    """One run at a time: two would take each other's time. Raises EngineError."""
    return owned.alone(programs.own() / "live.lock")


def _simulated(tally: Path) -> str:
    """What to say of the simulated network: how late it handed a packet over, at worst, which it tells as it ends."""
    try:
        late = int(json.loads(tally.read_text(encoding="utf-8"))[3])
    except (OSError, ValueError):
        return "simulated, interrupted before it told how late it was"
    return f"simulated, up to {late / 1e6:.3f} ms late"
