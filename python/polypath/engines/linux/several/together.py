"""The guests of a run, each in its folder, and what they leave as if they had been one."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from polypath.engines.base import EngineError
from polypath.engines.linux import guest, processor
from polypath.engines.linux.several.calendar import SOCKET, Calendar
from polypath.engines.namespaces import run
from polypath.engines.trusted import Executable

#: Guests have the same seed, and each random numbers of its own: the 64-bit golden ratio apart.
_APART = 0x9E3779B97F4A7C15
_LINKS = "links"


@contextmanager
def started(
    parts: Sequence[tuple[Any, Mapping[str, str]]],
    lookahead_ns: int,
    executables: Mapping[str, Executable],
    seed: int,
    memory_mb: int,
    progress: Callable[[int], None],
) -> Iterator[tuple[Path, run.Ended]]:
    """Runs a guest for each kernel with its files, to the end of all: the folder with what all left, and how they end.
    Raises EngineError with the last words of the one that failed."""
    with contextlib.ExitStack() as stack:
        folders = [stack.enter_context(guest.folder(kernel, files, executables)) for kernel, files in parts]
        for folder in folders:
            peers = folder / "peers"
            peers.write_text("".join(f"{each}\n" for each in folders if each != folder), encoding="utf-8")
            peers.chmod(0o644)
        ended = _run(folders, lookahead_ns, seed, memory_mb, progress)
        _gather(folders)
        yield folders[0], ended


def _run(
    folders: Sequence[Path], lookahead_ns: int, seed: int, memory_mb: int, progress: Callable[[int], None]
) -> run.Ended:
    found: list[run.Ended | None] = [None] * len(folders)
    failures: list[BaseException] = []

    def follow(number: int) -> None:
        command = guest.command((seed + number * _APART) % 2**63, memory_mb, f"ext:{SOCKET}")
        say = progress if number == 0 else _nothing
        try:
            with processor.reserved() as core:
                found[number] = run.follow(command, folders[number], guest.LIMIT, say, core)
        except BaseException as error:
            failures.append(error)

    calendar = Calendar(folders, lookahead_ns)
    threads = [threading.Thread(target=follow, args=(number,), daemon=True) for number in range(len(folders))]
    interrupted = False
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads) and not failures and not _failed(found):
            calendar.serve(0.2)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        calendar.close()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    if interrupted:
        return run.Ended(interrupted=True)
    whole = [each for each in found if each is not None]
    _judge(whole, folders)
    return whole[0]


def _failed(found: Sequence[run.Ended | None]) -> bool:
    return any(each is not None and each.code != 0 for each in found)


def _judge(ended: Sequence[run.Ended], folders: Sequence[Path]) -> None:
    """Raises EngineError; a guest that ends because another one did has the least to say."""
    whose = "the guest (`polypath kernel status` checks its kernel)"
    faults: list[tuple[bool, EngineError]] = []
    for each, folder in zip(ended, folders, strict=True):
        try:
            guest.judge(each)
            run.require_end(each, folder, whose)
        except EngineError as error:
            faults.append(("external link is broken" in str(error), error))
    if faults:
        raise min(faults, key=lambda fault: fault[0])[1]


def _gather(folders: Sequence[Path]) -> None:
    """Puts the others' logs beside the first guest's; of links each guest knows those that begin in it."""
    into = folders[0] / "out"
    lines = [line for folder in folders for line in _lines(folder / "out" / _LINKS)]
    lines.sort(key=lambda line: int(line.split()[1]))
    (into / _LINKS).write_text("".join(lines), encoding="utf-8")
    for folder in folders[1:]:
        for path in sorted((folder / "out").iterdir()):
            if path.is_file() and not (into / path.name).exists():
                shutil.copyfile(path, into / path.name)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines(keepends=True)
    except OSError:
        return []


def _nothing(now_ns: int) -> None:
    """Only the first guest tells the progress."""
