"""The code that a scenario's file makes a run execute, and the files that it names outside of its folder.

A run reports both on standard error: code once per content, as editors do for a new folder, and outside files each
time. There is no prompt, and nothing else is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os.path import relpath
from pathlib import Path
from typing import Final

from polypath import folders
from polypath.cli.console import err, printable
from polypath.scenario import Scenario, files
from polypath.scenario.traffic import Command

#: What was told of, a hash a line, below `folders.state()`.
SEEN: Final = "code-seen"
#: A longer file is of somebody else, or has served: it begins again.
_MOST_BYTES: Final = 1_000_000
_SHOWN: Final = 4


@dataclass(frozen=True)
class Brought:
    """What the file at `path` names, but for what a command line put in its place."""

    path: Path
    #: Files whose content is executed; the scenario's own for the commands in it.
    code: Sequence[Path] = ()
    #: Files that are read though they are not in its folder.
    outside: Sequence[Path] = ()

    @classmethod
    def of(cls, path: Path, written: Scenario, made: Scenario) -> Brought:
        """`written` is what the file says, and `made` that with the command line's settings."""
        own, code = set(written.scripts()), made.code()
        commands = any(isinstance(each, Command) for each in made.application)
        return cls(
            path,
            [*(each for each in code if each in own), *([path] if commands else ())],
            files.outside((each for each in made.scripts() if each in own), path.parent),
        )

    def runs(self) -> str | None:
        """Which code a run executes; None: no code."""
        if not self.code:
            return None
        names = ["its own commands" if each == self.path else self._short(each) for each in self.code]
        return f"{self.path} runs code with your rights: {_listed(names)}"

    def reads(self) -> str | None:
        """Which files outside of its folder it reads; None: no such file."""
        if not self.outside:
            return None
        return f"{self.path} reads outside of its folder: {_listed([str(each.resolve()) for each in self.outside])}"

    def tell(self) -> None:
        """Says it before a run."""
        if (runs := self.runs()) is not None:
            contents = {_digest(each) for each in self.code}
            if not contents <= (seen := _seen()):
                _say(runs)
                _remember(sorted(contents - seen))
        if (reads := self.reads()) is not None:
            _say(reads)

    def _short(self, path: Path) -> str:
        return str(path.resolve()) if path in self.outside else relpath(path, self.path.parent)


def tell_of(path: Path, code: Mapping[str, str]) -> None:
    """Says before a run which code a plan brings along, by its names and contents."""
    digests = {hashlib.sha256(text.encode()).hexdigest() for text in code.values()}
    if code and not digests <= (seen := _seen()):
        _say(f"{path} runs code with your rights: {_listed(list(code))}")
        _remember(sorted(digests - seen))


def _say(line: str) -> None:
    err.print(f"polypath: {printable(line)}", markup=False)


def _listed(names: Sequence[str]) -> str:
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return ", ".join([*names[:_SHOWN], *more])


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _seen() -> frozenset[str]:
    try:
        with _file().open("rb") as file:
            return frozenset(file.read(_MOST_BYTES).decode("ascii", "replace").split())
    except (OSError, RuntimeError):
        return frozenset()


def _remember(digests: Sequence[str]) -> None:
    """A home that is not there, or cannot be written to, has it said again."""
    with suppress(OSError, RuntimeError):
        file = _file()
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        full = file.exists() and file.stat().st_size > _MOST_BYTES
        with file.open("w" if full else "a", encoding="ascii") as written:
            written.write("".join(f"{each}\n" for each in digests))


def _file() -> Path:
    return folders.state() / SEEN
