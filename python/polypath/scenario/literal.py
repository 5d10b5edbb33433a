"""Values as a command line gives them."""

from __future__ import annotations

import tomllib
from typing import Any


def value(text: str) -> Any:
    """A TOML value where the text is one (true, 3, ["1 kB", "2 kB", "3 kB"], {name = ..}), else the text itself."""
    try:
        data = tomllib.loads(f"value = {text}\n")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    if list(data) != ["value"] or not isinstance(data["value"], bool | int | float | str | list | dict):
        return text
    return data["value"]
