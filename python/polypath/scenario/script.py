"""Algorithms that a scenario takes from a Python file: "weighted.py:WeightedRoundRobin"."""

from __future__ import annotations

import ast
import base64
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from polypath.registry import Kind, RegistryError
from polypath.scenario.errors import ScenarioError
from polypath.scenario.reading import read_bytes, read_text
from polypath.units import nearest

DATA = "file"
"""The key of an argument that is what is in a file: `{ file = "policy.json" }`."""

NAME = "python"
"""What a plan calls an algorithm that it carries in source."""

METHODS: dict[str, tuple[str, ...]] = {
    "scheduler": ("select",),
    "path-manager": ("manage",),
    "congestion": ("on_ack", "control"),
    "controller": ("choose",),
}
"""The methods of which an algorithm of each kind must have one."""

ARGUMENTS: dict[str, str] = {
    "controller": "flow, paths",
    "congestion": "path, ack",
}
"""What the first of them takes besides `self`, where it is not `view`."""

PATTERN = r"^(?:[A-Za-z]:[\\/])?[^:]+\.py:[A-Za-z_][A-Za-z0-9_]*$"
_REFERENCE = re.compile(PATTERN)


def is_script(name: str) -> bool:
    """Whether an algorithm's name is a file and a class."""
    return _REFERENCE.match(name) is not None


def texts(files: Sequence[str]) -> dict[str, str]:
    """Text files by name, as a plan carries them. Raises RegistryError where one cannot be read."""
    found: dict[str, str] = {}
    for name in files:
        path = Path(name)
        if path.name in found:
            raise RegistryError(f"two files are named '{path.name}', and a program's folder has room for one")
        try:
            found[path.name] = read_text(path, "text file")
        except ScenarioError as error:
            raise RegistryError(str(error), error.hint) from error
    return found


def app(name: str) -> dict[str, Any]:
    """What a plan carries of an os-ken application: its source and that of the modules beside it which it imports.

    Raises RegistryError where a file cannot be read or is no Python.
    """
    main, *beside = sources(name).items()
    return {"file": main[0].name, "source": main[1], "modules": {file.name: text for file, text in sorted(beside)}}


def sources(name: str) -> dict[Path, str]:
    """The sources of an os-ken application by their files: its own, then those of the modules beside it which it
    imports. Raises RegistryError where one cannot be read or is no Python."""
    found: dict[Path, str] = {}
    left = [Path(name)]
    while left:
        file = left.pop()
        found[file], tree = _read(str(file))
        beside = (file.with_name(f"{module}.py") for module in _imported(tree))
        left += [other for other in beside if other not in found and other.is_file()]
    return found


def _imported(tree: ast.Module) -> list[str]:
    """The modules that a file imports, without their packages' parts."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.append(node.module)
    return sorted({name.partition(".")[0] for name in names})


def _check(given: Mapping[str, Any], name: str) -> None:
    """Raises RegistryError for an argument that a plan, which is JSON, cannot carry."""
    for key, value in given.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            wanted = "texts, finite numbers, booleans, lists and tables"
            raise RegistryError(f"argument '{key}' of {name} is {value!r}; it takes {wanted}", key=key) from error


def is_data(value: object) -> bool:
    """Whether an argument, or a part of one, stands for what is in a file."""
    return isinstance(value, Mapping) and set(value) == {DATA} and isinstance(value[DATA], str)


def _with_data(value: Any) -> Any:
    """An argument as a plan carries it: with the content of the files that it names, in text or in base64.

    Raises RegistryError where a file cannot be read, or is not what its name says.
    """
    if is_data(value):
        return _content(Path(value[DATA]))
    if isinstance(value, Mapping):
        return {key: _with_data(each) for key, each in value.items()}
    return [_with_data(each) for each in value] if isinstance(value, list) else value


def _content(file: Path) -> dict[str, str]:
    try:
        content = read_bytes(file, "data file")
    except ScenarioError as error:
        raise RegistryError(str(error), error.hint) from error
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return {DATA: file.name, "base64": base64.b64encode(content).decode()}
    if file.suffix == ".json":
        try:
            json.loads(text)
        except (ValueError, RecursionError) as error:
            line = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
            raise RegistryError(f"{file}{line}: this is no JSON") from error
    return {DATA: file.name, "text": text}


def given(value: Any) -> Any:
    """An argument that a plan carries, as the class gets it. A file in JSON is its data. Another one is its text, or
    bytes where it is no text."""
    match value:
        case {"file": str(file), "text": str(text)} if len(value) == 2:
            return json.loads(text) if file.endswith(".json") else text
        case {"file": str(), "base64": str(text)} if len(value) == 2:
            return base64.b64decode(text)
        case dict():
            return {key: given(each) for key, each in value.items()}
        case list():
            return [given(each) for each in value]
    return value


def _read(file: str) -> tuple[str, ast.Module]:
    """The source in a file, and its tree. Raises RegistryError where the file cannot be read or is no Python."""
    try:
        source = read_text(Path(file), "Python file")
        return source, ast.parse(source, file)
    except ScenarioError as error:
        raise RegistryError(str(error), error.hint) from error
    except SyntaxError as error:
        raise RegistryError(f"{file}:{error.lineno}: {error.msg}") from error
    except ValueError as error:
        raise RegistryError(f"{file}: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise RegistryError(f"{file}: nested too deeply") from error


def parameters(kind: Kind, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """What a plan carries of an algorithm in a file: its source, so that the plan runs anywhere.

    Raises RegistryError where the file cannot be read, is no Python, or has no such class with the method of its kind.
    """
    if kind not in METHODS:
        kinds = "schedulers, path managers, congestion controls and controllers"
        raise RegistryError(f"{name}: only {kinds} can be written in Python")
    _check(given, name)
    file, _, wanted = name.rpartition(":")
    source, tree = _read(file)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    if wanted not in classes:
        hint = nearest(wanted, classes)
        known = f"; there is {', '.join(classes)}" if classes and not hint else ""
        raise RegistryError(f"{file}: no class '{wanted}'{known}", hint)
    made = classes[wanted]
    methods = METHODS[kind]
    takes = ARGUMENTS.get(kind, "view")
    inherits = any(not (isinstance(base, ast.Name) and base.id in ("object", "Protocol")) for base in made.bases)
    if not inherits and not any(isinstance(node, ast.FunctionDef) and node.name in methods for node in made.body):
        raise RegistryError(f"{file}:{made.lineno}: class '{wanted}' has no method '{methods[0]}(self, {takes})'")
    return {
        "file": Path(file).name,
        "class": wanted,
        "source": source,
        "arguments": {key: _with_data(value) for key, value in given.items()},
    }
