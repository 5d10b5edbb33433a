"""Signals that end a command: Ctrl-C, and SIGTERM and SIGHUP like it, so that what is finished is kept."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import Final

_HANDLED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: An algorithm in Python may swallow the exception; this many signals end the process all the same.
_MOST: Final = 3


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


def code() -> int:
    """The exit code of a command that a signal ended, as shells give it."""
    return 128 + _received.last


def word() -> str:
    """What became of the command."""
    return "interrupted" if _received.last == signal.SIGINT else "terminated"
