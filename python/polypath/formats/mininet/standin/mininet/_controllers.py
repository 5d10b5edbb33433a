"""The controllers that a file names, found in its text. Nothing that starts them is run."""

from __future__ import annotations

import ast
from dataclasses import dataclass

#: Controllers that only learn addresses; a scenario's switches need none for that.
LEARNING = frozenset({"Controller", "DefaultController", "OVSController", "NullController"})
_ELSEWHERE = frozenset({"RemoteController", "Ryu", "NOX"})


@dataclass(frozen=True)
class Named:
    """A controller: its name, its class, and the line that names them."""

    name: str
    kind: str
    line: int


def controllers(tree: ast.Module) -> list[Named]:
    """The controllers of a file, in the order of its lines, each once."""
    found: dict[int, Named] = {}
    for node in ast.walk(tree):
        for each in _in(node):
            known = found.get(each.line)
            if known is None or each.kind not in LEARNING:
                found[each.line] = each
    return [found[line] for line in sorted(found)]


def _in(node: ast.AST) -> list[Named]:
    match node:
        case ast.Assign(targets=[ast.Name(id="controllers")], value=ast.Dict(keys=keys, values=values)):
            pairs = zip(keys, values, strict=True)
            return [Named(_text(key) or "?", _kind(value), value.lineno) for key, value in pairs]
        case ast.Call(func=function) if _last(function) == "addController":
            chosen = next((each.value for each in node.keywords if each.arg == "controller"), None)
            name = next((each.value for each in node.keywords if each.arg == "name"), None)
            first = node.args[0] if node.args else name
            if chosen is None and len(node.args) > 1:
                chosen = node.args[1]
            if chosen is None and isinstance(first, ast.Call):
                return [Named(_text(first.args[0]) or "c0" if first.args else "c0", _kind(first), node.lineno)]
            return [Named(_text(first) or "c0", "Controller" if chosen is None else _kind(chosen), node.lineno)]
        case ast.Call(func=function) if _last(function) == "Mininet":
            given = [each.value for each in node.keywords if each.arg == "controller"]
            return [Named("c0", _kind(each), each.lineno) for each in given if _kind(each)]
        case ast.Call(func=function, args=arguments) if _last(function) in _ELSEWHERE:
            name = arguments[0] if arguments else None
            return [Named(_text(name) or "c0", _last(function), node.lineno)]
    return []


def _kind(node: ast.expr) -> str:
    """The class that an expression gives; empty for None."""
    match node:
        case ast.Constant(value=None):
            return ""
        case ast.Lambda(body=body):
            return _kind(body)
        case ast.Call(func=function, args=[first, *_]) if _last(function) in ("partial", "custom"):
            return _kind(first)
        case ast.Call(func=function):
            return _last(function)
    return _last(node)


def _last(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return "?"


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
