"""A person's folders on a machine, and what the same commands leave on a friendly one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests.processes import session

from polypath import folders

from .commands import FILES, STORED
from .registry import Command, Start, tree

COMMAND = Path(sysconfig.get_path("scripts")) / "polypath"
#: A command that takes longer hangs.
LIMIT_S = 120.0
#: Memory of a file of that many bytes on a tmpfs comes in such pieces.
PAGE = 4096
SHM = Path("/dev/shm")


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str
    #: Processes that it left.
    running: Sequence[str]


@dataclass(frozen=True)
class Prepared:
    """Made once, on this machine as it is: the person's files, results among them, and what each command does."""

    folder: Path

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def files(self) -> dict[str, bytes]:
        return tree(self.work)

    def prepare(self, commands: Sequence[Command]) -> None:
        self.work.mkdir(parents=True)
        for name, text in FILES.items():
            (self.work / name).write_text(text, encoding="utf-8")
        self._copy_cache()
        read = {Path(word).parts[0] for command in commands for word in command.words}
        for words in (words for name, words in STORED.items() if name in read):
            subprocess.run([COMMAND, *words], cwd=self.work, check=True, capture_output=True)
        for command in commands:
            with Place(self.folder / command.name, self, command).made() as place:
                place.fill()
                done = place.call(Start())
                (self.folder / f"{command.name}.made").mkdir()
                for name in command.makes:
                    if (place.work / name).exists():
                        (place.work / name).replace(self.folder / f"{command.name}.made" / name)
                for name, text in (("out", done.out), ("err", done.err), ("code", str(done.code))):
                    (self.folder / f"{command.name}.{name}").write_text(text, encoding="utf-8")

    @property
    def cache(self) -> Path:
        """A copy of what this machine has installed, which a trial may do to as it likes."""
        return self.folder / "cache"

    def _copy_cache(self) -> None:
        installed = folders.cache()
        for path in (
            *installed.glob("kernel/*/kernel.json"),
            *installed.glob("kernel/*/linux"),
            *installed.glob("programs/*"),
        ):
            copy = self.cache / "polypath" / path.relative_to(installed)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy)
        if (fonts := installed.parent / "matplotlib").is_dir():
            shutil.copytree(fonts, self.cache / "matplotlib")

    def said(self, command: Command, what: str) -> str:
        return (self.folder / f"{command.name}.{what}").read_text(encoding="utf-8")

    def made(self, command: Command) -> dict[str, bytes]:
        return tree(self.folder / f"{command.name}.made")


@dataclass
class Place:
    folder: Path
    prepared: Prepared
    command: Command
    #: As whom a command runs; None: as whoever started the trial.
    user: int | None = None
    before: dict[str, bytes] = field(default_factory=dict)
    #: What is in the temporary folders before.
    found: set[str] = field(default_factory=set)
    temporary: Path = field(init=False)

    def __post_init__(self) -> None:
        self.temporary = self.folder / "tmp"

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @contextmanager
    def made(self) -> Iterator[Place]:
        """The folders, empty."""
        for each in (self.work, self.home, self.temporary):
            each.mkdir(parents=True)
        self.folder.chmod(0o755)
        try:
            yield self
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def fill(self) -> None:
        """Puts the person's files there."""
        shutil.copytree(self.prepared.work, self.work, dirs_exist_ok=True)
        self.before = tree(self.work)
        if self.user is not None:
            for each in (self.folder, *self.folder.rglob("*")):
                os.chown(each, self.user, self.user, follow_symlinks=False)

    @cached_property
    def environment(self) -> dict[str, str]:
        """The kernel and the programs are this machine's."""
        return {
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "XDG_CACHE_HOME": str(self.prepared.cache),
            "PATH": os.environ["PATH"],
            "LC_ALL": "C.UTF-8",
        }

    def call(self, start: Start) -> Done:
        changed = {**self.environment, **start.environment}
        environment = {name: value for name, value in changed.items() if value is not None}
        process = subprocess.Popen(
            [*start.prefix, COMMAND, *self.command.words],
            cwd=self.work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            out, err = process.communicate()
            err += f"\nit took longer than {LIMIT_S:g} s".encode()
        said, told = (each.decode(errors="replace").replace(str(self.folder), "") for each in (out, err))
        return Done(process.returncode, said, told, session(process.pid))

    def twin(self, number: int) -> Place:
        """Another folder of the person's on the same machine."""
        other = Place(self.folder / f"twin{number}", self.prepared, self.command)
        other.work.mkdir(parents=True)
        other.home.mkdir()
        other.fill()
        other.temporary = self.temporary
        return other

    def listed(self) -> set[str]:
        """What is in the folders for temporary files."""
        return {str(path) for each in (self.temporary, SHM) for path in (each.iterdir() if each.is_dir() else ())}

    @property
    def writes(self) -> int:
        """Bytes that the command takes on a tmpfs."""
        return pages(self.prepared.made(self.command))

    @property
    def largest(self) -> int:
        """Bytes of the largest file that it writes."""
        return max(map(len, self.prepared.made(self.command).values()), default=0)


def pages(files: dict[str, bytes]) -> int:
    """Bytes that files take on a tmpfs."""
    return sum(-(-len(content) // PAGE) * PAGE for content in files.values())
