"""The arguments of a class in a Python file, from its text; nothing of the file is executed."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from polypath.units import nearest

#: Bases that say nothing of an instance's making.
_PLAIN = ("object", "Protocol")


@dataclass(frozen=True)
class _Takes:
    """The names that can be given, and those that have to be; `others`: any name."""

    known: tuple[str, ...]
    needed: tuple[str, ...]
    others: bool


def refused(made: ast.ClassDef, given: Iterable[str]) -> str | None:
    """Why an instance cannot be made with these arguments by name; None where it can, or the text does not tell."""
    takes = _takes(made)
    if takes is None:
        return None
    given = list(given)
    for name in given:
        if name not in takes.known and not takes.others:
            hint = nearest(name, takes.known)
            there = f"did you mean '{hint}'?" if hint else f"it takes {', '.join(takes.known) or 'none'}"
            return f"class '{made.name}' takes no argument '{name}'; {there}"
    for name in takes.needed:
        if name not in given:
            return f"class '{made.name}' needs the argument '{name}'"
    return None


def _takes(made: ast.ClassDef) -> _Takes | None:
    """None where the text does not tell: the class inherits, is decorated, or makes its methods in other ways."""
    own = all(isinstance(base, ast.Name) and base.id in _PLAIN for base in made.bases)
    if not own or made.keywords or made.decorator_list:
        return None
    found = None
    for node in made.body:
        match node:
            case ast.FunctionDef(name="__init__") if found is None and not node.decorator_list:
                found = node.args
            case ast.FunctionDef(name="__init__" | "__new__") | ast.AsyncFunctionDef(name="__init__" | "__new__"):
                return None
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)) if name not in (
                "__init__",
                "__new__",
            ):
                pass
            case _:
                return None
    if found is None:
        return _Takes((), (), others=False)
    # Without `self`: all are given by name, and those before "/" cannot be.
    positional = [*found.posonlyargs, *found.args]
    if not positional:
        return None
    needed = [each.arg for each in positional[1 : len(positional) - len(found.defaults)]]
    needed += [each.arg for each, value in zip(found.kwonlyargs, found.kw_defaults, strict=True) if value is None]
    known = [each.arg for each in positional[1:] if each not in found.posonlyargs]
    known += [each.arg for each in found.kwonlyargs]
    return _Takes(tuple(known), tuple(needed), found.kwarg is not None)
