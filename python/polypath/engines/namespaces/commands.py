"""Programs from this computer on a run's hosts: the files that they need in the run's folder, and those that they
leave.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from polypath.engines.base import EngineError, Output
from polypath.engines.namespaces import programs
from polypath.engines.namespaces.iperf3 import PRELOAD
from polypath.engines.namespaces.topology import namespace
from polypath.engines.trusted import Executable
from polypath.results import layout
from polypath.units import nearest

if TYPE_CHECKING:
    from polypath.plan.data import PlanData, Program


#: Where programs are looked for; confine.c sets it.
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: In the run's folder, one folder for each program by its position in the Plan.
FOLDER: Final = "programs"
#: A program in the background that names no start begins with the run's servers.
_WITH_SERVERS = -500_000_000
_CHUNK = 1 << 20


def used(plan: PlanData) -> list[Program]:
    """The Plan's programs."""
    return list(plan.get("programs", ()))


def files(plan: PlanData) -> dict[str, str]:
    """Files of the run's folder. Raises EngineError for a program that the machine does not have."""
    found: dict[str, str] = {}
    for index, program in enumerate(used(plan)):
        require(program["command"][0], f"application '{program['name']}'")
        for name in (program["name"], *program["files"]):
            _require_plain(name)
        place = f"{FOLDER}/{index}"
        found[f"{place}/words"] = joined(program["command"])
        found[f"{place}/environment"] = joined(f"{name}={value}" for name, value in program["environment"].items())
        found |= {f"{place}/files/{name}": text for name, text in program["files"].items()}
    return found | names(plan) if found else found


def _require_plain(name: str) -> None:
    """Raises EngineError for a name that leads out of its folder; no scenario has one, but a plan is a file."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise EngineError(f"{name!r} is no name of a file")


def joined(words: Sequence[str] | Iterator[str]) -> str:
    """Words as the programs read them from a file, each ended by a NUL."""
    return "".join(f"{word}\0" for word in words)


def names(plan: PlanData) -> dict[str, str]:
    """What resolves names of hosts: each host's first address of each family, and NAME-INTERFACE for all."""
    lines = ["127.0.0.1 localhost"]
    for node in plan["nodes"]:
        if node["kind"] != "host":
            continue
        first: set[bool] = set()
        for interface in node["interfaces"]:
            for address in interface["addresses"]:
                own = [f"{node['name']}-{interface['name']}"]
                if (":" in address) not in first:
                    own.insert(0, node["name"])
                    first.add(":" in address)
                lines.append(f"{address} {' '.join(own)}")
    return {"hosts": "\n".join(lines) + "\n", "nsswitch.conf": "hosts: files\n", "resolv.conf": ""}


def require(word: str, whose: str) -> None:
    """Raises EngineError, with the nearest program, where the machine does not have it."""
    if "/" in word:
        # a relative one is in its working folder, which does not exist yet
        if word.startswith("/") and not os.access(word, os.X_OK):
            raise EngineError(f"{whose}: {word} is no program that can be run")
        return
    if shutil.which(word, path=PATH) is None:
        hint = nearest(word, _known())
        better = f"did you mean '{hint}'?" if hint else f"it is not in {PATH}"
        raise EngineError(f"{whose}: no program '{word}' on this machine; {better}")


def _known() -> list[str]:
    return [entry.name for folder in PATH.split(":") if Path(folder).is_dir() for entry in os.scandir(folder)]


def lines(plan: PlanData) -> Iterator[tuple[int, str, str]]:
    """Lines of the job: time, kind, the rest."""
    last = any(program["ends_run"] for program in used(plan))
    for index, program in enumerate(used(plan)):
        begin, waited = program["start_ns"], program["ends_run"] if last else not program["background"]
        if program["background"]:
            begin = begin or _WITH_SERVERS
        host = plan["nodes"][program["host"]]["name"]
        mptcp = int(program["transport"] == "mptcp")
        words = f"program folder={FOLDER}/{index} name={host} mptcp={mptcp}"
        yield begin, "app" if waited else "helper", f"{namespace(program['host'])} {words}"


def executables(plan: PlanData) -> dict[str, Executable]:
    """Files that the run's folder needs for them, by name. Raises EngineError."""
    mptcp = any(program["transport"] == "mptcp" for program in used(plan))
    return {PRELOAD: programs.library("mptcp")} if mptcp else {}


def rows(plan: PlanData, folder: Path) -> Iterator[dict[str, Any]]:
    """A row of the table `programs` for each; `folder` is the run's."""
    for index, program in enumerate(used(plan)):
        place = folder / FOLDER / str(index)
        end_ns, state, code = _end(place)
        output = hashlib.sha256()
        sizes = {name: _read(place / name, output) for name in ("stdout", "stderr")}
        yield {
            "name": program["name"],
            "host": plan["nodes"][program["host"]]["name"],
            "start_ns": program["start_ns"],
            "end_ns": end_ns,
            "state": state,
            "exit_code": code,
            "stdout_bytes": sizes["stdout"],
            "stderr_bytes": sizes["stderr"],
            "output_sha256": output.hexdigest(),
        }


def _end(place: Path) -> tuple[int | None, str, int | None]:
    try:
        time, state, code = (place / "end").read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return None, "open" if (place / "stdout").exists() else "not started", None
    return int(time), state, int(code)


def _read(path: Path, into: Any) -> int:
    """The bytes of a plain file, which go into a hash; none where it is something else."""
    size = 0
    try:
        with _opened(path) as file:
            while chunk := file.read(_CHUNK):
                into.update(chunk)
                size += len(chunk)
    except OSError:
        return 0
    return size


def _opened(path: Path) -> Any:
    """A plain file for reading: a program may have put a link or a pipe there. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is no plain file")
    return os.fdopen(descriptor, "rb")


class Tail:
    """Hands on what programs print while they run, to `output`: name, "stdout" or "stderr", bytes."""

    def __init__(self, plan: PlanData, folder: Path, output: Output | None) -> None:
        self._output = output
        self._places = {
            (program["name"], name): folder / FOLDER / str(index) / name
            for index, program in enumerate(used(plan) if output is not None else ())
            for name in ("stdout", "stderr")
        }
        self._read = dict.fromkeys(self._places, 0)

    def follow(self, progress: Callable[[int], None]) -> Callable[[int], None]:
        """A callback of progress that looks for output, too."""

        def told(now_ns: int) -> None:
            self.read()
            progress(now_ns)

        return told

    def read(self) -> None:
        """What was printed since the last time."""
        for key, path in self._places.items():
            with suppress(OSError), _opened(path) as file:
                file.seek(self._read[key])
                while self._output is not None and (chunk := file.read(_CHUNK)):
                    self._read[key] += len(chunk)
                    self._output(*key, chunk)


def take(plan: PlanData, folder: Path, directory: Path | None) -> None:
    """Copies what the programs printed and wrote to `directory`; links and pipes among it stay behind."""
    if directory is None:
        return
    for index, program in enumerate(used(plan)):
        place, kept = folder / FOLDER / str(index), directory / program["name"]
        kept.mkdir(parents=True, exist_ok=True)
        for name in ("stdout", "stderr"):
            _copy(place / name, kept / name)
        for at, below, plain in os.walk(place / "files"):
            below.sort()
            for name in sorted(plain):
                source = Path(at, name)
                target = kept / layout.PROGRAM_FILES / source.relative_to(place / "files")
                target.parent.mkdir(parents=True, exist_ok=True)
                _copy(source, target)


def _copy(source: Path, target: Path) -> None:
    try:
        file = _opened(source)
    except OSError:
        return
    with file, target.open("wb") as written:
        shutil.copyfileobj(file, written, _CHUNK)
