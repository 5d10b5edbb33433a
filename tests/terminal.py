"""A command on a pseudo-terminal, as a person has it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .processes import LIMIT_S

#: Makes the terminal that it is given its own, so that Ctrl-C reaches it, and becomes the command.
_ADOPT = """
import os, sys
end = os.open(sys.argv[1], os.O_RDWR)
for number in (0, 1, 2):
    os.dup2(end, number)
os.execv(sys.executable, [sys.executable, "-m", "polypath", *sys.argv[2:]])
"""


class Dialog:
    """What is typed, and what comes back."""

    def __init__(self, process: subprocess.Popen[bytes], end: int) -> None:
        self.process = process
        self._end = end
        self._unread = ""

    def type(self, text: str) -> None:
        os.write(self._end, text.encode())

    def until(self, pattern: str) -> str:
        """What is printed up to and including what the pattern matches; AssertionError after the limit."""
        ends = time.monotonic() + LIMIT_S
        while not (found := re.search(pattern, self._unread)):
            assert time.monotonic() < ends, f"{pattern!r} in vain; there is {self._unread!r}"
            if select.select([self._end], [], [], 1.0)[0]:
                try:
                    more = os.read(self._end, 1 << 16)
                except OSError:  # its other end is closed
                    more = b""
                assert more, f"{pattern!r} in vain; at the end there is {self._unread!r}"
                self._unread += more.decode("utf-8", "replace").replace("\r\n", "\n")
        told, self._unread = self._unread[: found.end()], self._unread[found.end() :]
        return told

    def says(self, line: str) -> str:
        """What comes after a line was typed, up to the next prompt."""
        self.type(f"{line}\n")
        self.until(re.escape(line) + r"\n")
        return self.until(r"polypath> $").removesuffix("polypath> ")


@contextmanager
def dialog(*words: object) -> Iterator[Dialog]:
    """`polypath` with these words on a terminal; killed where it has not ended by itself."""
    end, other = pty.openpty()
    # so wide that no line is folded
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("4H", 50, 500, 0, 0))
    environment = {**os.environ, "TERM": "dumb", "INPUTRC": os.devnull}
    command = [sys.executable, "-c", _ADOPT, os.ttyname(other), *map(str, words)]
    with subprocess.Popen(command, start_new_session=True, env=environment, stdin=subprocess.DEVNULL) as process:
        try:
            yield Dialog(process, end)
        finally:
            process.kill()
            os.close(other)
            os.close(end)
