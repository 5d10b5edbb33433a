"""The page of the Python package: its public names with their signatures and docstrings, read from the source."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType

#: The modules that a person uses, and the page that tells what they are for.
MODULES = {
    "polypath": "[Sweeps](../sweeps.md) and [figures](../figures.md) have pages of their own.",
    "polypath.results": "The tables of a Recording: [The Recording](../recording.md).",
    "polypath.results.metrics": "What tables, figures and `summary.json` are made of.",
    "polypath.results.exposure": "See [Exposure](../exposure.md).",
    "polypath.stepping": "See [Stepping a run](../stepping.md).",
    "polypath.gym": "See [Learning agents](../learning.md).",
    "polypath.sweeps": "See [Sweeps](../sweeps.md).",
    "polypath.plots": "See [Figures](../figures.md).",
    "polypath.labs": "See [Validation](../../assurance/records/validation.md).",
}
#: Signatures up to so many characters stand on one line.
WIDTH = 88
_DATA = "value"


@dataclass(frozen=True)
class Name:
    """A public name of a module, or of a class."""

    name: str
    #: class, function, method, property, attribute, value or module.
    kind: str
    #: As it stands in the source, without its body.
    signature: str
    #: Empty where there is none.
    text: str
    members: tuple[Name, ...] = ()


def page() -> str:
    """The page, in Markdown."""
    parts = [
        "# Python",
        "The public names of the package, generated from its docstrings. [Figures](../figures.md#from-python),"
        " [sweeps](../sweeps.md#from-python) and [algorithms in Python](../python.md) have introductions of their own."
        " What begins with an underscore, and what is not here, may change without notice.",
    ]
    for module, link in MODULES.items():
        parts += [f"## `{module}`", _text(inspect.getdoc(importlib.import_module(module)) or ""), link]
        for each in names(module):
            parts += list(_entry(each, module))
    return "\n\n".join(part for part in parts if part) + "\n"


def names(module: str) -> list[Name]:
    """The names in `__all__`, else what the module defines; what has a heading of its own elsewhere is left to that."""
    found = importlib.import_module(module)
    return [
        _named(found, name)
        for name in getattr(found, "__all__", None) or _defined(found)
        if f"{module}.{name}" not in MODULES and not _is_elsewhere(module, name)
    ]


def _defined(module: ModuleType) -> list[str]:
    """Its public functions and classes, in the order of the source."""
    tree, _ = _source(module)
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    ]


def _is_elsewhere(module: str, name: str) -> bool:
    """Whether `polypath` itself has the name, under which it is described."""
    first = importlib.import_module("polypath")
    return (
        module != "polypath"
        and name in first.__all__
        and getattr(first, name) is getattr(importlib.import_module(module), name)
    )


def _named(module: ModuleType, name: str) -> Name:
    value = getattr(module, name)
    if isinstance(value, ModuleType):
        return Name(name, "module", "", inspect.getdoc(value) or "")
    node, lines = _definition(module, name)
    if isinstance(node, ast.ClassDef):
        return Name(name, "class", _class(name, node), ast.get_docstring(node) or "", tuple(_members(node, lines)))
    if isinstance(node, ast.FunctionDef):
        return Name(name, "function", _function(node, name), ast.get_docstring(node) or "")
    return Name(name, _DATA, "", "" if node is None else _comment(node, lines))


@cache
def _source(module: ModuleType) -> tuple[ast.Module, list[str]]:
    text = inspect.getsource(module)
    return ast.parse(text), text.splitlines()


def _definition(module: ModuleType, name: str) -> tuple[ast.stmt | None, list[str]]:
    """Where a name is defined: in the module, or where that has it from."""
    tree, lines = _source(module)
    for node in (inner for each in tree.body for inner in (each.body if isinstance(each, ast.If) else [each])):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return node, lines
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in _targets(node):
            return node, lines
        if isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                if (each.asname or each.name) == name:
                    return _definition(importlib.import_module(node.module), each.name)
    return None, lines


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _members(of: ast.ClassDef, lines: list[str]) -> Iterator[Name]:
    """Public attributes, properties and methods that the class itself has."""
    for place, node in enumerate(of.body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and not node.target.id.startswith("_"):
            below = of.body[place + 1] if place + 1 < len(of.body) else None
            yield Name(node.target.id, "attribute", ast.unparse(node), _comment(node, lines) or _string(below))
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            is_property = bool(_marks(node) & {"property", "cached_property"})
            text = ast.get_docstring(node) or ""
            signature = f"{node.name}: {ast.unparse(node.returns)}" if is_property and node.returns else _function(node)
            yield Name(node.name, "property" if is_property else "method", signature, text)


def _string(node: ast.stmt | None) -> str:
    """The docstring below an attribute."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return inspect.cleandoc(node.value.value)
    return ""


def _comment(node: ast.stmt, lines: list[str]) -> str:
    """The comment of lines `#:` above a definition."""
    found: list[str] = []
    for line in reversed(lines[: node.lineno - 1]):
        if not line.lstrip().startswith("#:"):
            break
        found.insert(0, line.lstrip()[2:].strip())
    return " ".join(found)


def _class(name: str, node: ast.ClassDef) -> str:
    own = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
    if own is not None:
        return f"class {_function(own, name).removeprefix('def ').removesuffix(' -> None')}"
    return f"class {name}"


def _function(node: ast.FunctionDef, name: str | None = None) -> str:
    """The head of a definition, on one line or with a line for each parameter."""
    given = node.args
    own = [*given.posonlyargs, *given.args]
    if own and own[0].arg in ("self", "cls"):
        (given.posonlyargs or given.args).pop(0)
    back = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    head = f"def {name or node.name}"
    marks = "".join(f"@{mark}\n" for mark in _marks(node) & {"classmethod", "contextmanager"})
    line = f"{head}({', '.join(_parameters(given))}){back}"
    if len(line) <= WIDTH:
        return marks + line
    return marks + "\n".join([f"{head}(", *(f"    {each}," for each in _parameters(given)), f"){back}"])


def _marks(node: ast.FunctionDef) -> set[str]:
    """The names of its decorators."""
    return {ast.unparse(mark).rpartition(".")[2] for mark in node.decorator_list}


def _parameters(given: ast.arguments) -> Iterator[str]:
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + list(given.defaults)
    for each, default in zip(plain, defaults, strict=True):
        yield _parameter(each, default)
    if given.vararg is not None:
        yield f"*{ast.unparse(given.vararg)}"
    elif given.kwonlyargs:
        yield "*"
    for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _parameter(each, default)
    if given.kwarg is not None:
        yield f"**{ast.unparse(given.kwarg)}"


def _parameter(of: ast.arg, default: ast.expr | None) -> str:
    return ast.unparse(of) + ("" if default is None else f" = {ast.unparse(default)}")


def _entry(of: Name, module: str) -> Iterator[str]:
    yield f"### `{module}.{of.name}`"
    if of.signature and of.signature != f"class {of.name}":
        yield _code(of.signature)
    yield _text(of.text)
    attributes = [each for each in of.members if each.kind in ("attribute", "property")]
    if attributes:
        yield "\n".join(f"- `{each.signature}`" + (f": {_line(each.text)}" if each.text else "") for each in attributes)
    for each in of.members:
        if each.kind == "method":
            yield f"#### `{of.name}.{each.name}`"
            yield _code(each.signature)
            yield _text(each.text)


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


def _line(text: str) -> str:
    return " ".join(text.split())


def _text(docstring: str) -> str:
    """A docstring's paragraphs; lines of code, which docstrings have at their end, as code."""
    parts = []
    for part in textwrap.dedent(docstring).split("\n\n"):
        lines = part.splitlines()
        is_code = lines and all(_is_code(line) for line in lines)
        parts.append(_code(part) if is_code else part)
    return re.sub(r"\bdocs/([a-z-]+\.md)", r"[\1](../\1)", "\n\n".join(parts))


def _is_code(line: str) -> bool:
    try:
        tree = ast.parse(line.strip())
    except SyntaxError:
        return False
    return bool(tree.body) and (not isinstance(tree.body[0], ast.Expr) or "  # " in line or "(" in line)
