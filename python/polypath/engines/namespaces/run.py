"""A run's folder and its process: made, followed, ended and removed."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from polypath.engines import owned
from polypath.engines.base import EngineError
from polypath.engines.namespaces import programs
from polypath.engines.trusted import Executable

_LOG_LINES = 8
#: The command of an event that failed, and how `ip` begins to tell what the kernel said.
_EVENT = re.compile(r"guest: status .*\bevent-(\d+)\.")
_SAID = ("Error: ", "RTNETLINK answers: ")
#: In the run's folder: the exit code of the job with all that belongs to it, which the first program writes last.
OUTCOME = "outcome"

#: Becomes the command, beside a guard that ends it, removes its folder and kills the process group when whoever holds
#: the pipe to it is gone, however early: a signal on the parent's death misses a parent that died before it was asked
#: for, and children that a killed guest leaves stopped. A folder that took the place of its own stays.
_GUARDED = (
    'exec 3<&0 </dev/null; { read -r _ <&3; kill -KILL $$; [ . -ef "$PWD" ] && rm -rf -- "$PWD"; kill -KILL 0; } '
    '>/dev/null 2>&1 & exec 3<&- && exec "$@"'
)


@contextmanager
def folder(
    prefix: str, files: Mapping[str, str], executables: Mapping[str, Executable], guest: int | None
) -> Iterator[Path]:
    """The run's folder with everything in it; gone afterwards, and what is left by one that was killed at the next.

    `executables` are copied into it by name, besides the applications; `guest` is the user and the group that gets all
    but the folder itself, in which it may write. Raises EngineError.
    """
    temporary = Path(tempfile.gettempdir())
    owned.clear(temporary, prefix)
    program = programs.build()
    with contextlib.ExitStack() as stack:
        try:
            path = stack.enter_context(owned.made(temporary, f"{prefix}{os.getpid()}-"))
            _require_executable(path)
            _fill(path, files, {**executables, programs.NAME: program}, guest)
        except OSError as error:
            raise EngineError(f"cannot make the run's folder in {temporary}: {error.strerror or error}") from error
        yield path


def _fill(path: Path, files: Mapping[str, str], executables: Mapping[str, Executable], guest: int | None) -> None:
    (path / "out").mkdir()
    for name, source in executables.items():
        source.copy(path / name)
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text, encoding="utf-8")
    if guest is not None:
        _hand_over(path, guest)


def _hand_over(path: Path, guest: int) -> None:
    """Gives all but the folder itself to a user and group, which may write in it."""
    try:
        for entry in path.rglob("*"):
            if entry.name != owned.MARKER:
                os.chown(entry, guest, guest)
        os.chown(path, -1, guest)
    except PermissionError as error:
        raise EngineError(
            f"as root, a run gives its files to user {guest}, for which it needs CAP_CHOWN ({error.strerror}); "
            "grant it, or start polypath as an ordinary user"
        ) from error
    path.chmod(0o1770)


def is_noexec(path: Path) -> bool:
    """Whether nothing in that file system may be executed. Raises OSError."""
    return bool(os.statvfs(path).f_flag & os.ST_NOEXEC)


def _require_executable(path: Path) -> None:
    if is_noexec(path):
        mount = next(each for each in path.parents if each.is_mount())
        raise EngineError(
            f"{mount} is mounted noexec, and a run executes programs from its folder there; name another folder by "
            f"TMPDIR, or `mount -o remount,exec {mount}`"
        )


#: What usually kills a process.
_CAUSES: Mapping[int, str] = {
    signal.SIGKILL: "as the system does where memory runs out (dmesg tells); leave it more",
    signal.SIGBUS: "as the system does where the file system that holds its memory is full; give it more room",
    signal.SIGXCPU: "as the system does at a limit of processor time (ulimit -t); raise it",
}


@dataclass(frozen=True)
class Limit:
    """Seconds on the wall that a run may take; the variable changes it, to no less than the least."""

    variable: str
    otherwise_s: float
    least_s: float = 0.0

    def seconds(self) -> float:
        """Raises EngineError for what is no number of seconds."""
        given = os.environ.get(self.variable)
        try:
            limit = float(given) if given else self.otherwise_s
        except ValueError:
            limit = -1.0
        if not 0 < limit < float("inf"):
            raise EngineError(f"{self.variable} is a number of seconds, not {given!r}")
        return max(limit, self.least_s)


@dataclass
class Ended:
    """How a run's process ended: what it printed besides its progress, its exit code."""

    log: list[str] = field(default_factory=list)
    code: int | None = None
    interrupted: bool = False

    def last_words(self) -> str:
        return " | ".join(self.log[-_LOG_LINES:]) or "none"

    def how(self) -> str:
        """In words, with what usually does it."""
        if self.code is None or self.code >= 0:
            return f"ended too early with exit code {self.code}"
        name = signal.Signals(-self.code).name if -self.code in set(signal.Signals) else "unknown"
        cause = _CAUSES.get(-self.code)
        return f"was killed by signal {-self.code} ({name})" + (f", {cause}" if cause else "")


def follow(
    command: list[str],
    path: Path,
    limit: Limit,
    progress: Callable[[int], None],
    processor: int | None = None,
) -> Ended:
    """Runs the command in the run's folder to its end, or until Ctrl-C, on the given processor if any.

    The command leads a session of its own. The whole session is killed at the end, also if this process dies, and then
    the folder is removed. Raises EngineError on a timeout.
    """
    ended = Ended()
    with started(command, path, processor) as process:
        try:
            _read(process, limit, ended, progress)
        except KeyboardInterrupt:
            ended.interrupted = True
    ended.code = process.returncode
    return ended


@contextmanager
def started(command: list[str], path: Path, processor: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """The command's process in the run's folder, as `follow` has it."""
    with _confined(processor):
        process = subprocess.Popen(
            ["sh", "-c", _GUARDED, "sh", *command],
            cwd=path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"HOME": str(path), "PATH": programs.PATH, "LC_ALL": "C"},
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _end(process)


@contextmanager
def _confined(processor: int | None) -> Iterator[None]:
    """What this thread starts runs on that processor only; from outside, root may lack the right once it is nobody."""
    if processor is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processor})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _read(process: subprocess.Popen[bytes], limit: Limit, ended: Ended, progress: Callable[[int], None]) -> None:
    assert process.stdout is not None
    seconds = limit.seconds()
    ends = time.monotonic() + seconds
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            left = ends - time.monotonic()
            if left <= 0:
                raise _too_long(seconds, limit, ended)
            if not selector.select(min(left, 1.0)):
                continue
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                try:
                    process.wait(timeout=max(left, 1.0))
                except subprocess.TimeoutExpired:
                    raise _too_long(seconds, limit, ended) from None
                return
            *lines, rest = (rest + chunk).split(b"\n")
            for raw in lines:
                line = raw.decode("utf-8", "replace").strip()
                word, _, value = line.partition(" ")
                if word == "progress" and value.isdigit():
                    progress(int(value))
                elif line:
                    ended.log.append(line)


def _too_long(seconds: float, limit: Limit, ended: Ended) -> EngineError:
    return EngineError(
        f"the run was ended after {seconds:g} s on the wall ({limit.variable} changes that); "
        f"its last words: {ended.last_words()}"
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def complain(ended: Ended) -> None:
    """Raises EngineError with what the scripts or the applications complained about."""
    complaints = [line for line in ended.log if line.startswith(("guest:", "setup failed"))]
    if "setup failed" in complaints:
        raise EngineError(f"the network could not be set up: {ended.last_words()}")
    if complaints:
        raise EngineError(_refused(ended.log) or complaints[0])


def _refused(log: Sequence[str]) -> str | None:
    """What the kernel said to an event that it refused, if it did."""
    for index, line in enumerate(log):
        if (event := _EVENT.match(line)) is not None:
            said = [each.partition(": ")[2].rstrip(".") for each in log[:index] if each.startswith(_SAID)]
            if said:
                return f"the kernel refused event {int(event[1]) + 1} of the run: {said[-1]} (engine sim takes it)"
    return None


def require_end(ended: Ended, path: Path, whose: str) -> None:
    """Raises EngineError unless the process ended well and left the outcome of a job that did.

    What was printed says nothing: a run is a result because its last step said that all others succeeded.
    """
    if ended.code != 0:
        raise EngineError(f"{whose} {ended.how()}; its last words: {ended.last_words()}")
    try:
        outcome = (path / OUTCOME).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        raise EngineError(f"{whose} ended before its run was over; its last words: {ended.last_words()}") from None
    if outcome != "0":
        raise EngineError(f"the run's programs ended with exit code {outcome}; last words: {ended.last_words()}")


def require_begun(ended: Ended, end_ns: int) -> None:
    """Raises KeyboardInterrupt where Ctrl-C came before the run had anything to tell: that is no result."""
    if ended.interrupted and end_ns <= 0:
        raise KeyboardInterrupt
