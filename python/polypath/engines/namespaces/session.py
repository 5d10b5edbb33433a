"""A network that stays up and executes one command after the other."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from polypath.engines.base import EngineError
from polypath.engines.namespaces import commands, logs, run
from polypath.engines.namespaces.job import Job
from polypath.engines.namespaces.paths import clients
from polypath.engines.namespaces.topology import namespace

if TYPE_CHECKING:
    from polypath.plan.data import PlanData
    from polypath.plan.types import Event

#: Is given what a program prints, as it comes.
Printed = Callable[[bytes], None]

#: In the run's folder: things to do, by number.
ASK: Final = "ask"
#: Makes the folder of things to do, which tells the scripts that there is no job to run.
FILES: Final[dict[str, str]] = {f"{ASK}/0": ""}
_MARK: Final = b"\x1e"
_CHUNK: Final = 1 << 16
#: How what has no handler for SIGTERM yet ends by it.
_TERMINATED: Final = 128 + signal.SIGTERM
#: Bytes of what was printed that an error is made of.
_LAST_WORDS: Final = 1 << 14
#: How long a process may take to end that has closed its output.
_END_S: Final = 10.0


class Gone(EngineError):
    """The network's process ended; nothing more can be asked of it."""


def network(plan: PlanData) -> PlanData:
    """A Plan's network alone. Clients are those of its applications; where it has none, the first host."""
    hosts = [index for index, node in enumerate(plan["nodes"]) if node["kind"] == "host"]
    found = sorted(clients(plan)) or hosts[:1]
    return {**plan, "applications": [], "programs": [], "events": [], "clients": found}


def nothing(printed: bytes) -> None:
    """Ignores what is printed."""


class Session:
    """The process in which the network is. `still`: it is stopped while it has nothing to do, so that time is, too."""

    def __init__(
        self,
        job: Job,
        folder: Path,
        process: subprocess.Popen[bytes],
        judge: Callable[[run.Ended], None],
        still: bool,
    ) -> None:
        """Raises EngineError where the network does not come up; `judge` does where it knows why the process ended."""
        self.job = job
        self.plan = job.plan
        self.folder = folder
        self.still = still
        #: Of the network, since it came up.
        self.now_ns = 0
        self._process = process
        self._judge = judge
        self._number = 0
        self._rest = b""
        #: What the process said last.
        self._said = b""
        self._programs = 0
        self._stops = 0
        self._wait(nothing)
        for _, kind, rest in job.managers():
            self._ask(["start" if kind == "helper" else kind, *rest.split()], nothing)

    def program(self, node: int, words: Sequence[str], mptcp: bool, printed: Printed) -> int:
        """Runs a program on a host to its end; its exit code. Raises EngineError where the machine does not have it."""
        folder, options = self._program(node, words, mptcp)
        self._ask(["run", namespace(node), *options, "console=1"], printed)
        try:
            return int((self.folder / folder / "end").read_text(encoding="utf-8").split()[2])
        except (OSError, ValueError, IndexError) as error:
            raise EngineError(f"{words[0]} could not be run on {self.plan['nodes'][node]['name']}") from error

    def start(self, node: int, words: Sequence[str], mptcp: bool) -> tuple[int, Path]:
        """Starts a program on a host; its number for `stop`, and the folder where `stdout` and `stderr` appear."""
        folder, options = self._program(node, words, mptcp)
        return self._ask(["start", namespace(node), *options], nothing), self.folder / folder

    def stop(self, number: int) -> None:
        """Ends the process. Raises EngineError if it had already ended with an error."""
        code = self._ask(["stop", str(number)], nothing)
        if code not in (0, _TERMINATED):
            raise EngineError(f"it had ended before, with exit code {code}, and what it left may be incomplete")

    def part(self, node: int, words: Sequence[str], printed: Printed = nothing) -> int:
        """Runs a part of the guest's programs on a host; its exit code."""
        return self._ask(["run", namespace(node), *words], printed)

    def capture(self, out: int) -> list[tuple[str, int, Path]]:
        """Starts captures at all hosts, of the number `out`; of each its file's name, its number, and its file."""
        found = []
        for index, each in enumerate(self.job.captures):
            file = f"out/captured-{out}-{index}"
            taps = [":".join(tap) for tap in each.taps]
            number = self._ask(["start", "-", "capture", file, *taps], nothing)
            found.append((each.file, number, self.folder / file))
        return found

    def change(self, number: int, event: Event) -> None:
        """Makes an event of a Plan happen now. Raises EngineError."""
        before = dict(self.job.files)
        command = self.job.change(number, event)
        if command is None:
            raise EngineError(
                "links of the simulated network, which this machine's kernel needs, change as scheduled only; "
                "--engine linux changes them at the prompt"
            )
        for name, text in self.job.files.items():
            if before.get(name) != text:
                (self.folder / name).write_text(text, encoding="utf-8")
        said: list[bytes] = []
        if self._ask(["do", command], said.append):
            raise EngineError(f"the kernel refused: {_words(said)}")

    def interrupt(self) -> None:
        """Has the program that runs interrupted; the second time killed."""
        with contextlib.suppress(OSError):
            (self.folder / ASK / f"{self._number}.stop").touch()

    def _program(self, node: int, words: Sequence[str], mptcp: bool) -> tuple[str, list[str]]:
        name = self.plan["nodes"][node]["name"]
        commands.require(words[0], f"host '{name}'")
        place = f"{commands.FOLDER}/{self._programs}"
        self._programs += 1
        folder = self.folder / place
        folder.mkdir(parents=True)
        (folder / "words").write_text(commands.joined(words), encoding="utf-8", errors="surrogateescape")
        (folder / "environment").write_text("", encoding="utf-8")
        self._own(folder)
        return place, ["program", f"folder={place}", f"name={name}", f"mptcp={int(mptcp)}", "work=shell"]

    def _own(self, path: Path) -> None:
        """Gives a new folder to the user that what is in the run's folder belongs to."""
        about = (self.folder / ASK).stat()
        if about.st_uid != os.geteuid():
            for each in (path.parent, path, *path.iterdir()):
                os.chown(each, about.st_uid, about.st_gid)

    def _ask(self, words: Sequence[str], printed: Printed) -> int:
        self._number += 1
        asked = self.folder / ASK / str(self._number)
        partial = asked.with_suffix(".partial")
        partial.write_text(commands.joined(words), encoding="utf-8", errors="surrogateescape")
        partial.rename(asked)
        if self.still:
            self._process.send_signal(signal.SIGCONT)
        return self._wait(printed)

    def _wait(self, printed: Printed) -> int:
        """Hands on what comes until the answer; Ctrl-C meanwhile goes to what runs."""
        while True:
            try:
                return self._read(printed)
            except KeyboardInterrupt:
                if self._number == 0:
                    raise
                self.interrupt()

    def _read(self, printed: Printed) -> int:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while True:
                before, mark, after = self._rest.partition(_MARK)
                if before:
                    self._rest = mark + after
                    self._said = (self._said + before)[-_LAST_WORDS:]
                    printed(before.replace(b"\r\n", b"\n") if self.still else before)
                if mark and b"\n" in after:
                    line, _, self._rest = after.partition(b"\n")
                    number, value, now_ns = map(int, line.split())
                    if number == self._number:
                        self.now_ns = now_ns
                        if self.still:
                            self._process.send_signal(signal.SIGSTOP)
                        return value
                    continue
                selector.select()
                chunk = os.read(self._process.stdout.fileno(), _CHUNK)
                if not chunk:
                    raise self._gone()
                self._rest += chunk

    def _gone(self) -> Gone:
        """Why the process ended, which it has no reason to."""
        lines = [line.strip() for line in self._said.decode("utf-8", "replace").splitlines() if line.strip()]
        try:
            ended = run.Ended(lines, self._process.wait(_END_S))
            self._judge(ended)
        except subprocess.TimeoutExpired:
            return Gone("the network is gone: its process says nothing more")
        except EngineError as error:
            return Gone(str(error))
        return Gone(f"the network is gone: its process {ended.how()}; its last words: {ended.last_words()}")

    def ping(self, source: int, destination: int, count: int) -> list[int | None]:
        """Round-trip times in ns of ICMP echo requests, one a second, to a host's first address; None: no answer.

        Raises EngineError where it has no address, or no route leads there.
        """
        to = first_address(self.plan, destination)
        log = f"out/ping-{self._number}"
        said: list[bytes] = []
        if self.part(source, ["ping", f"destination={to}", f"count={count}", f"log={log}"], said.append):
            raise EngineError(_words(said).removeprefix("guest: "))
        requests = logs.read_app(self.folder / log).requests
        return [None if delay < 0 else delay for _, delay in requests]


def first_address(plan: PlanData, node: int) -> str:
    """Raises EngineError where the host has none."""
    for interface in plan["nodes"][node]["interfaces"]:
        for address in interface["addresses"]:
            return str(address)
    raise EngineError(f"host {plan['nodes'][node]['name']} has no address")


def keep(file: Path, target: Path) -> None:
    """Copies a capture to a new file. Raises OSError."""
    with file.open("rb") as source, target.open("xb") as into:
        shutil.copyfileobj(source, into)


def _words(said: Sequence[bytes]) -> str:
    return " ".join(b"".join(said).decode("utf-8", "replace").split()) or "no reason given"
