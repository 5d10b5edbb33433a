"""A scenario's data as the TOML that a person would write."""

from __future__ import annotations

from typing import Any

import tomlkit

from polypath.scenario import seeds


def to_toml(data: dict[str, Any]) -> str:
    """Small tables of algorithms, queues and losses in a line; everything else as tables of their own."""
    document = tomlkit.document()
    for key, value in data.items():
        document.add(key, _axes(value) if key == "vary" else _item(key, value))
    return tomlkit.dumps(document)


def in_line(value: Any) -> str:
    """A value as TOML in one line."""
    if isinstance(value, list):
        return f"[{', '.join(map(in_line, value))}]"
    return str(tomlkit.item(_one_line(value)).as_string())


def _axes(vary: dict[str, Any]) -> Any:
    """Paths with their values and the seeds, then the axes with names, each a table of one line a value. An axis with a
    name that comes before one of the others is a table in one line: the order is that of the points."""
    table = tomlkit.table()
    last = max(
        (n for n, (key, given) in enumerate(vary.items()) if key == seeds.KEY or isinstance(given, list)), default=0
    )
    for number, (key, given) in enumerate(vary.items()):
        axis = given
        if key == seeds.KEY or (number < last and isinstance(given, dict)):
            axis = _one_line(given)
        elif isinstance(given, dict):
            axis = tomlkit.table()
            for label, settings in given.items():
                axis.add(label, _one_line(settings))
        elif isinstance(given, list):
            axis = tomlkit.array()
            for value in given:
                axis.append(_one_line(value))
        table.add(key, axis)
    return table


def _one_line(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inline = tomlkit.inline_table()
    for key, inner in value.items():
        inline.add(key, _one_line(inner))
    return inline


_INLINE = {
    "scheduler",
    "path_manager",
    "congestion",
    "queue",
    "loss",
    "rate",
    "wifi",
    "conditions",
    "stack",
    "client_stack",
    "server_stack",
}


def _item(key: str, value: Any) -> Any:
    if isinstance(value, dict):
        table: Any = tomlkit.inline_table() if key in _INLINE else tomlkit.table(is_super_table=_only_tables(value))
        for name, inner in value.items():
            table.add(name, _inline(inner) if key in _INLINE else _item(name, inner))
        return table
    if key == "middlebox" and isinstance(value, list):
        boxes = tomlkit.array()
        boxes.extend(map(_one_line, value))
        return boxes
    if isinstance(value, list) and value and isinstance(value[0], dict):
        tables = tomlkit.aot()
        for inner in value:
            tables.append(_item("", inner))
        return tables
    return value


def _inline(value: Any) -> Any:
    return _item("queue", value) if isinstance(value, dict) else value


def _only_tables(value: dict[str, Any]) -> bool:
    return bool(value) and all(isinstance(inner, dict) for inner in value.values())
