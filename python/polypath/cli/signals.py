"""Signals that end a command: Ctrl-C, SIGTERM and SIGHUP, with all finished work kept."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import typer

from polypath.errors import PolypathError

if sys.platform == "win32":
    _HANDLED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGBREAK)
else:
    _HANDLED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    #: Has a read of the terminal return, and says nothing else.
    _NUDGE: Final = signal.SIGURG
#: An algorithm in Python may swallow the exception; this many signals end the process all the same.
_MOST: Final = 3
_NUDGES: Final = 20
_BETWEEN_NUDGES_S: Final = 0.1


class _Received:
    def __init__(self) -> None:
        self.last: int = signal.SIGINT
        self.count = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.last = number
        self.count += 1
        if self.count >= _MOST:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        raise KeyboardInterrupt


_received = _Received()


def forgive() -> None:
    """Has the next signal count as the first: an interruption was dealt with."""
    _received.count = 0


def is_end() -> bool:
    """Whether the last signal asked for more than an interruption."""
    return _received.last != signal.SIGINT


def install() -> None:
    """Makes every one of them a KeyboardInterrupt, but for those that whoever started this process has it ignore."""
    for number in _HANDLED:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _received)


def lost() -> Callable[[], None]:
    """A check for a loop that begins now: raises the interrupt of a signal that came since, and nothing while an
    exception is dealt with.

    Python drops what a signal raises in a destructor or in a callback of C.
    """
    before = _received.count

    def check() -> None:
        if _received.count > before and sys.exception() is None:
            raise KeyboardInterrupt

    return check


@contextmanager
def unwrapped() -> Iterator[None]:
    """Raises the interrupt of a signal that compiled code wrapped in its own error. pydantic does so with every
    exception of a serialiser.
    """
    before = _received.count
    try:
        yield
    except (PolypathError, OSError, typer.Exit, typer.Abort, typer.TyperException):
        raise
    except Exception as error:
        if _received.count > before:
            raise KeyboardInterrupt from error
        raise


@contextmanager
def heard_while_reading() -> Iterator[None]:
    """Has a signal end a read of readline that only began after it came.

    CPython looks at signals before it waits in select, which a signal in between does not end. Windows has no readline.
    """
    if sys.platform == "win32":
        yield
        return
    heard, tell = os.pipe()
    os.set_blocking(tell, False)
    reader, ended = threading.get_ident(), threading.Event()

    def nudge() -> None:
        while number := os.read(heard, 1):
            left = _NUDGES if number[0] in _HANDLED else 0
            while left and not ended.wait(_BETWEEN_NUDGES_S):
                signal.pthread_kill(reader, _NUDGE)
                left -= 1

    handler = signal.signal(_NUDGE, lambda number, frame: None)
    before = signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    thread = threading.Thread(target=nudge, daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        ended.set()
        os.close(tell)
        thread.join()
        os.close(heard)
        signal.signal(_NUDGE, handler)


def code() -> int:
    """The exit code of a command that a signal ended, as shells give it."""
    return 128 + _received.last


def word() -> str:
    """What became of the command."""
    return "interrupted" if _received.last == signal.SIGINT else "terminated"
