"""The simulator: its run time depends on the number of events, it needs no privileges, and it is deterministic."""

from __future__ import annotations

import time

import polars as pl

from polypath import _core
from polypath.engines import script
from polypath.engines.base import (
    EngineError,
    Options,
    Outcome,
    Progress,
    Unplayable,
    no_progress,
    require_own,
)
from polypath.engines.openflow import Program
from polypath.results import Recording
from polypath.scenario import Plan

#: How long a slice should take on a clock on the wall: Ctrl-C and the progress bar wait for its end.
_SLICE_S = 0.05
_FIRST_SLICE_NS = 1_000_000
_LONGEST_SLICE_NS = 10_000_000_000


class Simulator:
    """Advances the native simulation slice by slice; the slices have no influence on the result."""

    name = "sim"

    def versions(self) -> dict[str, str]:
        """None: all of it is Polypath."""
        return {}

    def run(self, plan: Plan, options: Options = Options(), progress: Progress = no_progress) -> Recording:
        started = time.perf_counter()
        for each in plan.view.get("programs", ()):
            raise Unplayable(
                each["name"],
                "is a program of the machine; the simulator cannot run it, --engine linux and live can",
            )
        require_own(plan.view, "the simulator")
        directory = None if options.directory is None else str(options.directory)
        qlogs = None if options.qlogs is None else str(options.qlogs)
        loader = script.Loader()
        app = (plan.view.get("controller") or {}).get("app")
        program: Program | None = None
        try:
            simulation = _core.Simulation(plan.json(), options.captures, directory, loader, options.aside, qlogs)
            program = None if app is None else Program(app, int(plan.view["seed"]))
            interrupted = _advance(simulation, int(plan.view["duration_ns"]), progress, program)
            end_ns = simulation.now_ns
            native = simulation.recording()
        except _core.ScriptError as error:
            raise script.failed(error, loader) from error
        except EngineError:
            raise
        except (_core.PlanError, RuntimeError, OSError) as error:
            if (blamed := loader.blamed()) is not None:
                raise blamed from error
            raise EngineError(" ".join(str(error).split())) from error
        finally:
            loader.close()
            if program is not None:
                program.close()
        frames = {name: pl.DataFrame(native.table(name)) for name in native.names}
        return Outcome(frames, native.sha256, end_ns, interrupted, {}).recording(self.name, plan, started)


def check(plan: Plan) -> None:
    """Prepares a run as the simulator does and runs nothing. Programs of the machine and kernels are left out, and no
    algorithm in Python is executed.

    Raises EngineError for a plan that it cannot run.
    """
    require_own({**plan.view, "kernels": {}}, "the simulator")
    reader = script.Reader()
    network = Plan({key: value for key, value in plan.view.items() if key not in ("programs", "kernels")})
    try:
        problem = _core.check(network.json(), reader)
    except RuntimeError as error:
        problem = str(error)
    if problem is not None:
        raise reader.failure or EngineError(" ".join(problem.split()))


def _advance(simulation: _core.Simulation, end_ns: int, progress: Progress, program: Program | None = None) -> bool:
    """Runs to the end, or to a KeyboardInterrupt: true then."""
    length = _FIRST_SLICE_NS
    try:
        finished = False
        while not finished:
            before = time.perf_counter()
            until = simulation.now_ns + length
            finished = simulation.step(until if program is None else min(until, program.deadline_ns))
            if program is not None and not finished:
                program.attend(simulation)
            progress(simulation.now_ns, end_ns)
            passed = time.perf_counter() - before
            if passed < _SLICE_S / 2:
                length = min(2 * length, _LONGEST_SLICE_NS)
            elif passed > _SLICE_S:
                length = max(length // 2, _FIRST_SLICE_NS)
    except KeyboardInterrupt:
        return True
    return False
