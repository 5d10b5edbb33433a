"""Where commands print: results on standard output, everything about the run on standard error."""

from __future__ import annotations

import codecs
import os
import re
import sys
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

#: Columns where standard output is not a terminal, and the environment's COLUMNS says nothing.
_WIDTH = 120
#: Between the columns of a table.
GAP: Final = 2
#: What stands for a character that standard output cannot encode.
_PLAIN: Final = {"→": ">", "±": "+-", "×": "x", "–": "-", "…": "..."} | dict(zip("▁▂▃▄▅▆▇█", ".:-=+*#@", strict=True))
_REPLACE: Final = "polypath"


def _open_streams() -> bool:
    """Gives a process that was started with closed standard streams empty ones; true where it has no output.

    Otherwise the first file that it opens becomes its standard output.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    closed = sys.stdout is None
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
    return closed


def _forget_impossible_sizes() -> None:
    """Takes a width or height out of the environment that no terminal has: rich would print into no columns."""
    for name in ("COLUMNS", "LINES"):
        given = os.environ.get(name)
        if given is not None and not re.fullmatch(r"0*[1-9][0-9]{0,4}", given):
            del os.environ[name]


def _replacement(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(each, "?") for each in error.object[error.start : error.end]), error.end


#: Whether the process was started without a standard output.
STARTED_CLOSED: Final = _open_streams()
_forget_impossible_sizes()
codecs.register_error(_REPLACE, _replacement)


def encode_what_can_be() -> None:
    """Replaces, instead of failing, what standard output has no character for."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_REPLACE)


def tell_warnings() -> None:
    """Prints what the package says of old names in one line, without the place in its source."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, FutureWarning):
            warn(str(message))
        else:
            usual(message, category, *where, **more)

    warnings.showwarning = show


def printable(text: str) -> str:
    """Text in one line without characters that a terminal obeys; these are written as Python escapes them."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or unicodedata.category(each) == "Zs" else _escaped(each) for each in text
    )


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def cannot_print(error: OSError) -> str:
    return f"cannot write to standard output: {error.strerror or error}"


def _harmless(given: Any) -> Any:
    return "\n".join(map(printable, given.split("\n"))) if isinstance(given, str) else given


class _Console(Console):
    #: Whether nobody reads any more what is printed.
    unread = False

    def print(self, *objects: Any, **options: Any) -> None:
        with self._heard():
            super().print(*map(_harmless, objects), **options)

    def verbatim(self, text: str) -> None:
        """Prints text without style or wrapping, for programs: rich takes a minute for 40 MB."""
        with self._heard():
            try:
                self.file.write("\t".join(map(_harmless, text.split("\t"))))
                self.file.flush()
            except BrokenPipeError:
                self.on_broken_pipe()

    @contextmanager
    def _heard(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.discard()
            if self.stderr:  # there is nowhere to say it, and the exit code says how the command ended
                return
            from polypath.results import OutputError

            raise OutputError(cannot_print(error)) from error

    def on_broken_pipe(self) -> None:
        self.discard()

    def discard(self) -> None:
        """Lets what is still to be printed go nowhere."""
        self.unread = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), (sys.stderr if self.stderr else sys.stdout).fileno())


class _Table(Table):
    def add_row(self, *cells: Any, **options: Any) -> None:
        super().add_row(*(printable(cell) if isinstance(cell, str) else cell for cell in cells), **options)


out = _Console(
    width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDTH,
    highlight=False,
    soft_wrap=False,
    emoji=False,
)
err = _Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def warn(message: str) -> None:
    err.print(f"warning: {printable(message)}", style="yellow", markup=False)


def _plain(text: str) -> Text:
    """Text in which brackets are brackets: names of a received result come here."""
    return Text(printable(text))


def table(
    *headings: str,
    numbers: frozenset[str] = frozenset(),
    whole: frozenset[str] = frozenset(),
    title: str | None = None,
) -> Table:
    """A table in the house style; columns in `numbers` are aligned to the right, those in `whole` not folded."""
    made = _Table(
        title=None if title is None else _plain(title),
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        padding=(0, GAP, 0, 0),
    )
    for heading in headings:
        justify: Literal["left", "right"] = "right" if heading in numbers else "left"
        no_wrap = heading in whole
        made.add_column(_plain(heading), justify=justify, header_style="dim", overflow="fold", no_wrap=no_wrap)
    return made
