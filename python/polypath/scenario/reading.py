"""Reading a person's file, with an error for each kind of failure."""

from __future__ import annotations

import math
import re
from pathlib import Path

from polypath.scenario.errors import ScenarioError

LARGEST_BYTES = 10_000_000

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def read_text(path: Path, what: str) -> str:
    """The file's text, UTF-8; `what` names the expected content in errors ("scenario", "minitopo topology").

    Raises ScenarioError if the file is missing, not a plain file, unreadable or not text. A file larger than 10 MB is
    refused before it is read.
    """
    return decode(read_bytes(path, what), str(path), what)


def read_bytes(path: Path, what: str) -> bytes:
    """As `read_text`, for content of any kind."""
    file = str(path)
    try:
        if path.is_dir():
            raise ScenarioError(f"this is a directory, not a {what}", file)
        if not path.exists():
            raise ScenarioError("no such file", file)
        if not path.is_file():
            raise ScenarioError(f"this is not a plain file, so no {what}", file)
        size = path.stat().st_size
        with path.open("rb") as opened:
            # Files of the system have more in them than their size says.
            data = b"" if size > LARGEST_BYTES else opened.read(LARGEST_BYTES + 1)
        if max(size, len(data)) > LARGEST_BYTES:
            has = f"{size / 1e6:.1f} MB" if size > LARGEST_BYTES else "more"
            raise ScenarioError(f"the file has {has}; a {what} has at most {LARGEST_BYTES // 10**6} MB", file)
    except (OSError, ValueError) as error:
        if isinstance(error, ScenarioError):
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ScenarioError(f"cannot be read: {reason}", file) from error
    return data


def decode(data: bytes, file: str, what: str) -> str:
    """The bytes as UTF-8 text; raises ScenarioError for other content, with the line where it begins."""
    junk = data.find(b"\0")
    if junk >= 0:
        raise ScenarioError(f"this is binary data, not a {what}", file, data.count(b"\n", 0, junk) + 1)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ScenarioError(f"not a {what}: the file is not UTF-8 text", file, line) from error


def decimal(text: str) -> float:
    """A number as tables have it; NaN for a text that is none, or is too large for one."""
    number = float(text) if _DECIMAL.fullmatch(text) else math.nan
    return number if math.isfinite(number) else math.nan
