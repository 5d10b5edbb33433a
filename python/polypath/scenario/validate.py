"""Converting data to a checked scenario, with every fault as a sentence at a path."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from polypath.scenario.base import Model
from polypath.scenario.errors import Problem
from polypath.scenario.fields import FAULT
from polypath.scenario.positions import Path
from polypath.scenario.schema import keys_at
from polypath.scenario.tables import Tables
from polypath.units import nearest

_KINDS = {
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a number",
    "string_type": "a text",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}


#: Faults that are told one by one.
_MOST = 1000
#: Single values of a scenario that are easily written below a table, whose they are then.
_OF_ALL = ("seed", "duration", "routing")


#: The keys that the table at a path of the data may have.
Keys = Callable[[Path, Any], list[str]]


def faults(error: ValidationError, data: Any, root: type[Model] = Tables, whole: str = "scenario") -> list[Problem]:
    """What pydantic found in the data of a `root`, in our words; `whole` is what the file is called."""
    found = error.errors(include_url=False)
    keys = partial(keys_at, root=root)
    told = [_fault(detail, data, keys, whole) for detail in found[:_MOST]]
    if len(found) > _MOST:
        told.append(Problem(told[-1].path, f"and {len(found) - _MOST} more faults"))
    return told


def _fault(detail: ErrorDetails, data: Any, keys: Keys, whole: str) -> Problem:
    kind, context = detail["type"], detail.get("ctx", {})
    path, value = _locate(detail["loc"], data, missing=kind == "missing")
    where = show(path)
    if kind == FAULT:
        message, hint, at = context["message"], context["hint"], context["at"]
        prefix = f"{where}: " if where else ""
        return Problem((*path, *at), f"{prefix}{message}", hint)
    if kind == "missing":
        return Problem(path[:-1], f"{show(path[:-1]) or whole}: '{path[-1]}' is missing")
    if kind == "extra_forbidden":
        return _unknown_key(path, data, keys)
    if kind == "union_tag_invalid":
        known = [tag.strip("'") for tag in str(context["expected_tags"]).split(", ")]
        hint = nearest(str(context["tag"]), known)
        message = f"{where}: unknown kind '{context['tag']}'"
        return Problem((*path, "kind"), message if hint else f"{message}; there is {', '.join(known)}", hint)
    if kind == "union_tag_not_found":
        return Problem(path, f"{where}: 'kind' is missing")
    if kind == "literal_error":
        known = [word.strip("'") for word in str(context["expected"]).replace(" or ", ", ").split(", ")]
        choices = " or ".join(filter(None, (", ".join(known[:-1]), known[-1])))
        return Problem(path, f"{where}: {value!r} is not {choices}", nearest(str(value), known))
    if kind in _KINDS:
        return Problem(path, f"{where}: expected {_KINDS[kind]}, not {_describe(value)}{_brackets(path, kind, value)}")
    if kind in ("greater_than_equal", "less_than_equal", "greater_than", "less_than"):
        limit = next(iter(context.values()))
        words = {"greater_than_equal": "at least", "less_than_equal": "at most"}
        return Problem(path, f"{where}: must be {words.get(kind, kind.replace('_', ' '))} {limit}, not {value}")
    if kind == "string_too_short":
        return Problem(path, f"{where}: the text is empty")
    if kind == "string_too_long":
        most = context["max_length"]
        return Problem(path, f"{where}: the text has {len(value)} characters, and {most} at most are taken")
    if kind in ("too_short", "too_long") and path[-1:] == ("ends",):
        return Problem(path, f"{where}: a link has two ends, not {len(value)}")
    if kind == "too_long":
        return Problem(path, f"{where}: there are {len(value)}, and {context['max_length']} at most are taken")
    return Problem(path, f"{where}: {detail['msg'][:1].lower()}{detail['msg'][1:]}")


def _unknown_key(path: Path, data: Any, keys: Keys) -> Problem:
    key, table = str(path[-1]), path[:-1]
    where = f" in {show(table)}" if table else ""
    known = keys(table, data)
    hint = nearest(key, known)
    message = f"unknown key '{key}'{where}"
    if table and hint is None and key in _OF_ALL:
        return Problem(path, f"{message}; of the whole scenario it stands above the first [table]")
    return Problem(path, message if hint or not known else f"{message}; there is {', '.join(known)}", hint)


def _locate(location: tuple[int | str, ...], data: Any, *, missing: bool) -> tuple[Path, Any]:
    """The path in the data of an error's location, which also names variants of unions and marks dictionary keys."""
    path: list[str | int] = []
    steps = [step for step in location if step != "[key]"]
    tagged = None
    for number, step in enumerate(steps):
        last = number == len(steps) - 1
        # the variant comes before the keys of its table, of which one may have the same name
        if isinstance(data, dict) and data is not tagged and data.get("kind") == step:
            tagged = data
            continue
        inside = step in range(len(data)) if isinstance(data, list) else isinstance(data, dict) and step in data
        if inside:
            path.append(step)
            data = data[step]
        elif last and missing:
            path.append(step)
        elif not isinstance(data, dict | list):
            break
    return tuple(path), data


def _describe(value: Any) -> str:
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, Model | str) else str(value)


def _brackets(path: Path, kind: str, value: Any) -> str:
    """How a header is written that has too few or too many brackets."""
    keys = ".".join(map(str, path))
    if kind == "list_type" and isinstance(value, dict) and len(path) == 1:
        return f"; write [[{keys}]]"
    if _KINDS[kind] == "a table" and value and isinstance(value, list) and isinstance(value[0], dict):
        named = kind == "dict_type" and path != ("vary",)
        return f"; write [{keys}.NAME]" if named else f"; write [{keys}]"
    return ""


def show(path: Path) -> str:
    """A path as people write it: "link.path0.rate", "application 2" (counted from one)."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f" {step + 1}"
        else:
            text += f".{step}" if text else step
    return text
