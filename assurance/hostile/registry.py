"""What is tried: each machine with each command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .place import Place

#: A machine without a size.
ALWAYS: Final = (None,)


class Wrong(Exception):
    """What a command did that it must not, in one line."""


@dataclass(frozen=True)
class Command:
    name: str
    words: Sequence[str]
    #: What it leaves in the person's folder.
    makes: Sequence[str] = ()
    #: Its output is the same each time.
    exact: bool = True
    #: It has a line for each of several points.
    lines: bool = False
    #: What it has to say is its answer, on standard output, whatever the exit code.
    answers: bool = False


@dataclass(frozen=True)
class Start:
    """How a command is started there."""

    #: Before the command.
    prefix: Sequence[str] = ()
    environment: dict[str, str | None] = field(default_factory=dict)
    #: Whether standard output and standard error reach the judge.
    shown: bool = True
    said: bool = True
    #: So many commands at a time, each in a folder of its own.
    times: int = 1


Enter = Callable[["Place", float | None], AbstractContextManager[Start]]


@dataclass(frozen=True)
class Machine:
    name: str
    what: str
    enter: Enter
    #: What is true of it, of which a command's error must say something.
    says: str
    #: How much of it there is, each tried apart.
    levels: Sequence[float | None]
    #: It has another user, and only root can become that.
    root: bool


MACHINES: Final[dict[str, Machine]] = {}


def machine(
    name: str, what: str, says: str, *, levels: Sequence[float | None] = ALWAYS, root: bool = False
) -> Callable[[Enter], Enter]:
    """Registers one."""

    def register(enter: Enter) -> Enter:
        MACHINES[name] = Machine(name, what, enter, says, levels, root)
        return enter

    return register


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below, by its path there; a link by what it names."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_symlink():
            found[str(path.relative_to(folder))] = bytes(path.readlink())
        elif path.is_file():
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found
