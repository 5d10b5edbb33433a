"""Files that build a network by hand, as MiniEdit writes them: `net = Mininet()`, `net.addHost(..)`.

Such a file has no topology class. It is run as a program. Where that makes no network, its only function that makes one
is called.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from . import _net
from ._place import Refused
from .topo import Topo


def functions(tree: ast.Module) -> list[str] | None:
    """The names of the functions of a file that make a network; None if it has topologies of its own or makes none."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(bases=bases) if any(_last(base).endswith("Topo") for base in bases):
                return None
            case ast.Assign(targets=[ast.Name(id="topos")]):
                return None
    if not any(_makes(node) for node in ast.walk(tree)):
        return None
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and _takes_nothing(node.args) and any(map(_makes, ast.walk(node)))
    ]


def built(
    tree: ast.Module,
    candidates: list[str],
    execute: Callable[[str], dict[str, Any]],
    guarded: Callable[[Callable[[], Any]], Any],
) -> Topo | None:
    """The network that the file builds; None if it builds none. Raises what `guarded` does."""
    _net.install()
    names = _until_started(lambda: execute("__main__"), guarded) or {}
    for name in candidates:
        if not _net.networks and callable(names.get(name)):
            _until_started(names[name], guarded)
    return _net.described()


def _until_started(call: Callable[[], Any], guarded: Callable[[Callable[[], Any]], Any]) -> Any:
    """What a call gives; None if it came to the end of what a network is."""

    def ends() -> Any:
        try:
            return call()
        except _net.Done:
            return None

    try:
        return guarded(ends)
    except (Exception, Refused):
        if not _net.started():
            raise
        _net.forget_refusals()
        return None


def _takes_nothing(arguments: ast.arguments) -> bool:
    needed = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return needed == 0 and all(default is not None for default in arguments.kw_defaults)


def _makes(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _last(node.func) == "Mininet"


def _last(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""
