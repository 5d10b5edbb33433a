"""The engine: a Plan on a real Linux stack, in virtual time, without root."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from polypath.engines.base import EngineError, Options, Outcome, Progress, no_progress
from polypath.engines.linux import guest, processor, releases, several
from polypath.engines.linux.kernel import Installed, KernelError, find, named, own
from polypath.engines.linux.kernel.make import supported
from polypath.engines.linux.several.cut import lookahead
from polypath.engines.namespaces import commands, iperf3, programs, run, translation
from polypath.engines.namespaces.job import Job
from polypath.engines.namespaces.kernel import Kernel
from polypath.engines.namespaces.run import Ended
from polypath.engines.namespaces.segments import captures_for, with_segments
from polypath.engines.namespaces.session import FILES, Session, network
from polypath.engines.namespaces.tables import Tables, digest
from polypath.engines.namespaces.wires import Netem
from polypath.plan.access import SIDES
from polypath.results import Recording
from polypath.scenario import Plan

if TYPE_CHECKING:
    from polypath.plan.data import PlanData

_NEWEST = Kernel()
_LEAST_MEMORY_MB = 512
_MOST_MEMORY_MB = 16384
#: For each program of the machine; the guest takes from the host only what is used.
_PROGRAM_MEMORY_MB = 512
#: Of a session, in which nobody knows what will run.
_SESSION_MEMORY_MB = 2048


class LinuxEngine:
    """Boots the guest for each run; what is the same in the Plan is the same in the Recording."""

    name = "linux"

    def __init__(self, debug: bool = False, kernel: Installed | None = None) -> None:
        """On the kernel that is built, with or without its own checks, or on that kernel."""
        self._variant = "debug" if debug else ""
        self._given = kernel

    def _kernel(self) -> Installed:
        return self._given or find(self._variant)

    def _named(self, plan: PlanData) -> Callable[[str | None], Installed]:
        """Gives the kernel of a host of a Plan, which it names or not; one without a name has the Plan's schedulers."""
        schedulers = own.used(plan)
        own.require_on_usual(plan)

        def find(name: str | None) -> Installed:
            if name is not None:
                return named.find(name)
            return own.find(schedulers, os.cpu_count() or 1) if schedulers else self._kernel()

        return find

    def _means(self) -> Kernel:
        """Where no kernel is built, the newest one's: a plan beyond them is refused before a kernel is asked for."""
        try:
            return releases.of(self._kernel())
        except KernelError:
            return _NEWEST

    def versions(self) -> dict[str, str]:
        """What takes part in a run beside Polypath. Raises KernelError where no kernel is built."""
        kernel = self._kernel()
        return {"linux": kernel.release, "kernel": kernel.folder.name}

    def run(self, plan: Plan, options: Options = Options(), progress: Progress = no_progress) -> Recording:
        started = time.perf_counter()
        data = plan.view
        captured = captures_for(data, options)
        if data.get("kernels") or own.used(data):
            return self._run_on_named(plan, captured, options, progress, started)
        job, files = translate(data, captured, self._means())
        supported()
        kernel, versions = self._kernel(), self.versions()
        end_ns = int(data["duration_ns"])
        with self._alone(kernel, files, data, captured, options, lambda now: progress(now, end_ns)) as (folder, ended):
            return self._recorded(plan, job, folder, ended, options, versions, started)

    def _versions_of(self, split: Sequence[several.Part]) -> dict[str, str]:
        """As `versions`; a kernel with schedulers of the Plan's is told by its hash."""
        for part in split:
            if not part.kernel.name and part.kernel.provenance:
                return {
                    "linux": part.kernel.release,
                    "kernel": f"sha256 {part.kernel.sha256}, {part.kernel.provenance}",
                }
        return self.versions()

    def _run_on_named(
        self, plan: Plan, captured: Options, options: Options, progress: Progress, started: float
    ) -> Recording:
        data = plan.view
        if data.get("programs"):
            raise EngineError("a run of the machine's programs has one kernel for all hosts (`polypath kernel build`)")
        supported()
        split = several.parts(data, self._named(data))
        versions = self._versions_of(split) | named.told(data)
        end_ns = int(data["duration_ns"])

        def say(now: int) -> None:
            progress(now, end_ns)

        job, files = translate(data, captured, releases.of(split[0].kernel))
        if len(split) == 1:
            with self._alone(split[0].kernel, files, data, captured, options, say) as (folder, ended):
                return self._recorded(plan, job, folder, ended, options, versions, started)
        if captured.captures == "links":
            raise EngineError("links between two kernels are not captured; there is --pcap hosts")
        ahead = lookahead(job.network, [each.nodes for each in split])
        guests = [
            (
                each.kernel,
                translation.translate(data, captured.captures, each.wires(ahead), releases.of(each.kernel))[1],
            )
            for each in split
        ]
        memory = _memory(data, captured)
        with several.started(guests, ahead, iperf3.executables(data), int(data["seed"]), memory, say) as (
            folder,
            ended,
        ):
            return self._recorded(plan, job, folder, ended, options, versions, started)

    @contextmanager
    def _alone(
        self,
        kernel: Installed,
        files: dict[str, str],
        data: PlanData,
        captured: Options,
        options: Options,
        say: Callable[[int], None],
    ) -> Iterator[tuple[Path, Ended]]:
        """The folder of a run in one guest, and how it ended."""
        with guest.folder(kernel, files, iperf3.executables(data) | commands.executables(data)) as folder:
            tail = commands.Tail(data, folder, options.output)
            ended = guest.boot(folder, int(data["seed"]), _memory(data, captured), tail.follow(say))
            tail.read()
            yield folder, ended

    def _recorded(
        self,
        plan: Plan,
        job: Job,
        folder: Path,
        ended: Ended,
        options: Options,
        versions: dict[str, str],
        started: float,
    ) -> Recording:
        data = plan.view
        tables = Tables(job, folder / "out")
        run.require_begun(ended, tables.end_ns)
        if options.captures != "none":
            job.take_captures(folder / "out", options.directory)
        if options.account or data["record"].get("account"):
            tables.keep_account()
        bare = tables.frames()
        commands.take(data, folder, options.programs)
        frames = with_segments(data, options, job.captured(folder / "out"), bare, tables.end_ns)
        sha256 = digest(frames if data["record"]["segments"] else bare)
        outcome = Outcome(frames, sha256, tables.end_ns, ended.interrupted, versions)
        return outcome.recording(self.name, plan, started)

    @contextmanager
    def session(self, plan: Plan) -> Iterator[Session]:
        """The Plan's network without its applications and events, to be asked for one thing after the other; time
        passes only while something is asked. Raises EngineError."""
        data = network(plan.view)
        supported()
        kernel = self._kernel()
        if data.get("kernels") or own.used(data):
            split = several.parts(data, self._named(data))
            if len(split) > 1:
                raise EngineError("a network with several kernels has no prompt; give all hosts the same one")
            kernel = split[0].kernel
        job, files = translate(data, Options(captures="hosts", directory=Path()), releases.of(kernel))
        files |= FILES | commands.names(data)
        library = {iperf3.PRELOAD: programs.library("mptcp")}
        command = guest.command(int(data["seed"]), _SESSION_MEMORY_MB)
        with (
            guest.folder(kernel, files, library) as folder,
            processor.reserved() as number,
            run.started(command, folder, number) as process,
        ):
            yield Session(job, folder, process, guest.judge, still=True)


def translate(data: PlanData, options: Options = Options(), means: Kernel = _NEWEST) -> tuple[Job, dict[str, str]]:
    """The job and all files of a run's folder. Raises EngineError for a plan beyond this engine's means."""
    return translation.translate(data, options.captures, Netem, means)


def _largest_buffers(data: PlanData, node: int) -> int:
    stack = data["nodes"][node].get("stack")
    return stack["receive_buffer"][2] + stack["send_buffer"][2] if stack else 0


def _memory(data: PlanData, options: Options) -> int:
    """What the guest may use, in MB: every buffer at its largest, twice, since packets take more than their bytes."""
    buffers = sum(_largest_buffers(data, application[side]) for application in data["applications"] for side in SIDES)
    buffers += sum(_largest_buffers(data, program["host"]) for program in commands.used(data))
    own = _PROGRAM_MEMORY_MB * len(commands.used(data))
    wanted = _LEAST_MEMORY_MB + own + 2 * buffers // 2**20 + (1024 if options.captures != "none" else 0)
    if wanted > _MOST_MEMORY_MB:
        raise EngineError(
            f"the applications' buffers need {wanted} MB in the guest, which has {_MOST_MEMORY_MB} at most; "
            "lower receive_buffer and send_buffer"
        )
    return int(wanted)
