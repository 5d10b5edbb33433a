"""A topology as plain data."""

from __future__ import annotations

import types
from collections.abc import Iterator
from functools import partial
from typing import Any

from .topo import IMPLICIT, LINE, Topo

_LONGEST = 200


def described(topo: Topo) -> dict[str, Any]:
    """Nodes and links in the order in which they were added, with their options and lines."""
    nodes = [
        {"name": str(name), "line": info.get(LINE), "options": _options(info)}
        for name, info in topo.g.node.items()
        if IMPLICIT not in info
    ]
    links = [{"line": info.get(LINE), "options": _options(info)} for *_, info in topo.g.edges_iter(data=True)]
    return {"nodes": nodes, "links": links}


def _options(info: dict[str, Any]) -> dict[str, Any]:
    return {str(key): plain(value) for key, value in info.items() if key != LINE}


def plain(value: Any) -> Any:
    """A value as JSON has it; classes, partial functions and tables as tables of one key that says what they are."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value[:_LONGEST]
    if isinstance(value, type):
        return {"class": _class(value)}
    if isinstance(value, partial):
        return {"partial": plain(value.func), "options": _options(value.keywords)}
    if isinstance(value, dict):
        return {"table": _options(value)}
    for convert in ("__index__", "__float__"):  # numbers of numpy
        if hasattr(value, convert):
            return getattr(value, convert)()
    return {"other": type(value).__name__}


def _class(made: type) -> dict[str, Any]:
    """A class by the stand-in that it derives from, and what classes of the file's own change of it."""
    own = [each for each in made.__mro__ if each is not object and not each.__module__.startswith("mininet.")]
    base = next((each for each in made.__mro__ if each.__module__.startswith("mininet.")), None)
    changes = [
        name
        for each in own
        for name in vars(each)
        if name == "__init__" or not (name.startswith("__") and name.endswith("__"))
    ]
    return {
        "name": made.__name__,
        "base": None if base is None else base.__name__,
        "changes": list(dict.fromkeys(changes)),
        "forwards": any("ip_forward" in text for each in own for text in _texts(vars(each))),
    }


def _texts(members: Any) -> Iterator[str]:
    """The texts in a class's methods."""
    todo = [each.__code__ for each in members.values() if isinstance(each, types.FunctionType)]
    while todo:
        code = todo.pop()
        for constant in code.co_consts:
            if isinstance(constant, str):
                yield constant
            elif isinstance(constant, types.CodeType):
                todo.append(constant)
