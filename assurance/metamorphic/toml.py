"""A scenario's data as TOML, a table a section and a line a setting: quick to write, and short enough to read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
#: Of which each entry is a section of its own.
GROUPS = frozenset({"host", "router", "switch", "link", "medium"})
LISTS = frozenset({"application", "event", "route"})


def text(data: Mapping[str, Any]) -> str:
    """TOML that `tomllib` reads as `data`."""
    plain = {key: value for key, value in data.items() if not isinstance(value, dict) and key not in LISTS}
    return "\n".join([*_lines(plain), *_sections(data)]) + "\n"


def _sections(data: Mapping[str, Any]) -> Iterator[str]:
    for key, value in data.items():
        if key in LISTS:
            for entry in value:
                yield from ("", f"[[{key}]]", *_lines(entry))
        elif key in GROUPS:
            for name, entry in value.items():
                yield from ("", f"[{key}.{_key(name)}]", *_lines(entry))
        elif isinstance(value, dict):
            yield from ("", f"[{key}]", *_lines(value))


def _lines(table: Mapping[str, Any]) -> Iterator[str]:
    return (f"{_key(key)} = {_value(value)}" for key, value in table.items())


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(_lines(value))} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False)
