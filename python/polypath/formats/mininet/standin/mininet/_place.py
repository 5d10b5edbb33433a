"""The place of an event in the file, and parts that cannot be represented."""

from __future__ import annotations

import sys

#: The file as the user named it; its code has this name, too.
file = ""
#: Everything refused so far: a file that catches one does not get away with it.
refusals: list[Refused] = []


class Refused(BaseException):
    """What an import does not run or cannot represent, at the line of the file that asked for it."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.hint, self.line = message, hint, line()
        refusals.append(self)


def line() -> int | None:
    """The line of the file that is being executed; None outside of the file."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back  # type: ignore[assignment]
    return None if frame is None else frame.f_lineno
