"""The axes of a sweep, as the table `[vary]` writes them.

An axis has one of these forms:

    [vary]
    "defaults.receive_buffer" = ["300 kB", "1 MB"]          a path that --set takes, and its values
    "link.path0.rate, link.path1.rate" = ["10 Mbps", ..]    several paths that take the same value
    seeds = 10                                              seeds from the scenario's own upwards

    [vary.loss]                                             an axis with a name, and its values with labels
    none = {}
    wifi = { "link.path0.loss" = "1 %", "link.path0.jitter" = "2 ms" }

    [vary.point]                                            an axis of the rows of a CSV (`polypath.scenario.rows`)
    csv = "points.csv"
    set = { "link.path0.rate" = "{rate_mbps} Mbps" }

    [vary.network]                                          an axis of drawn values (`polypath.scenario.drawn`)
    draw = 60
    set = { "link.path0.rate" = { log_uniform = ["1 Mbps", "100 Mbps"] } }
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, prod
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema

from polypath import units
from polypath.scenario import drawn, files, rows
from polypath.scenario import seeds as counts
from polypath.scenario.errors import ScenarioError
from polypath.scenario.fields import fault
from polypath.units import Quantity, UnitError

SEED = "seed"
SEEDS = counts.KEY
MOST_POINTS = 100_000
LISTS = frozenset({"application", "event", "route"})
"""What of a scenario is a list, which a setting may replace."""

_SUFFIXES: Mapping[str, tuple[str, int]] = {
    units.RATE.name: ("bps", 1),
    units.TIME.name: ("s", 10**9),
    units.SIZE.name: ("bytes", 1),
    units.PACKETS.name: ("packets", 1),
}
"""Of each quantity: what a column of its numbers is called after, and base units in one of it."""


@dataclass(frozen=True)
class Value:
    """One place on an axis: its label, and what it sets."""

    label: str
    settings: Mapping[str, Any]
    #: Of a row of a file where it stands, as "points.csv:12".
    origin: str | None = None


@dataclass(frozen=True)
class Axis:
    """What is varied: a name, which is the path or paths unless it was given one, and its values in order."""

    name: str
    values: tuple[Value, ...]
    #: The values were drawn: only a list tells what they are.
    listed: bool = False

    @property
    def labels(self) -> list[str]:
        return [value.label for value in self.values]

    @property
    def paths(self) -> list[str]:
        """Every path that some value sets, in order."""
        return list(dict.fromkeys(path for value in self.values for path in value.settings))

    def numbers(self) -> tuple[str, list[float]] | None:
        """A unit (bps, s, bytes, packets, or none) and the labels as numbers in it; None where they are no numbers."""
        return _numbers(self.labels)

    def properties(self) -> dict[str, tuple[str, list[float]]]:
        """The same of each path whose settings are numbers of one unit."""
        found = {}
        for path in self.paths:
            texts = [label(value.settings.get(path)) for value in self.values]
            if (numbers := _numbers(texts)) is not None:
                found[path] = numbers
        return found


def _numbers(labels: list[str]) -> tuple[str, list[float]] | None:
    for quantity in (units.RATE, units.TIME, units.SIZE, units.PACKETS):
        if (found := _parsed(quantity, labels)) is not None:
            suffix, size = _SUFFIXES[quantity.name]
            return suffix, [number / size for number in found]
    try:
        return "fraction", [units.parse_share(label) for label in labels]
    except UnitError:
        pass
    try:
        numbers = [float(label) for label in labels]
    except ValueError:
        return None
    return ("", numbers) if all(map(isfinite, numbers)) else None


def shown(number: float, unit: str) -> str:
    """A number in a unit of `Axis.numbers` as a person writes it, with three significant digits."""
    if unit == "fraction":
        return units.format_share(float(f"{number:.3g}"))
    for quantity in (units.RATE, units.TIME, units.SIZE, units.PACKETS):
        suffix, size = _SUFFIXES[quantity.name]
        if suffix == unit:
            return quantity.shown(round(float(f"{number * size:.3g}")))
    return f"{number:.3g}"


def _parsed(quantity: Quantity, labels: list[str]) -> list[int] | None:
    try:
        return [quantity.parse(label) for label in labels]
    except UnitError:
        return None


def label(value: Any) -> str:
    """A value in words, as the column of its axis has it."""
    match value:
        case bool():
            return str(value).lower()
        case list():
            return " / ".join(label(item) for item in value)
        case {"file": str(file), **rest} if not rest:
            return file
        case {"kind": str(name), **rest}:
            return " ".join([name, *(f"{key}={label(item)}" for key, item in rest.items())])
        case dict():
            return " ".join(f"{key}={label(item)}" for key, item in value.items())
        case _:
            return str(value)


def axes(vary: Mapping[str, Any], seed: int) -> list[Axis]:
    """The axes of a table `[vary]` that `check` has accepted; `seed` is the scenario's."""
    return [_axis(key, given, seed) for key, given in vary.items()]


def _axis(key: str, given: Any, seed: int) -> Axis:
    if key == SEEDS:
        return Axis(SEED, tuple(seed_value(seed + number) for number in range(counts.read(given).least)))
    if drawn.is_drawn(given):
        return Axis(key, tuple(Value(each.label, each.settings) for each in drawn.values(given, literal)), listed=True)
    if rows.is_of_rows(given):
        return Axis(key, tuple(Value(row.label, row.settings, row.origin) for row in rows.values(given, literal)))
    if isinstance(given, dict):
        return Axis(key, tuple(Value(name, dict(settings)) for name, settings in given.items()))
    paths = _paths(key)
    settings = [dict.fromkeys(paths, value) for value in given]
    folder = _folder(settings)
    labels = [label(value).replace(folder, "") if folder else label(value) for value in given]
    return Axis(", ".join(paths), tuple(map(Value, labels, settings)))


def _folder(settings: list[dict[str, Any]]) -> str:
    """What the full names of all files that these name begin with: labels are the same wherever the scenario is."""
    folders = [each.file.parent for each in files.named(settings) if each.file.is_absolute()]
    common = os.path.commonpath(folders) if folders else os.sep
    return "" if common == os.sep else f"{common}{os.sep}"


def seed_value(seed: int) -> Value:
    """The place of a seed on its axis."""
    return Value(str(seed), {SEED: seed})


def _paths(key: str) -> list[str]:
    return [".".join(step.strip() for step in path.split(".")) for path in key.split(",")]


def extended(vary: Mapping[str, Any], text: str) -> tuple[dict[str, Any], str]:
    """`[vary]` with an axis as `--vary PATH=A,B` gives it, which may replace one; and the axis's key.

    For an axis of a file's rows, `AXIS=A,B*` and `AXIS.COLUMN=A,B*` choose among all of them. Raises ScenarioError.
    """
    name, equals, given = (part.strip() for part in text.partition("="))
    words = split(given)
    if not name or not equals or not all(words):
        raise ScenarioError("an axis is PATH=VALUE,VALUE, such as link.path0.rate=5 Mbps,10 Mbps", f"--vary {text}")
    axis, _, column = name.partition(".")
    if drawn.is_drawn(vary.get(name)):
        return {**vary, name: _drawn(vary[name], given, text)}, name
    if rows.is_of_rows(vary.get(axis)):
        return {**vary, axis: rows.with_rows(vary[axis], column or None, words)}, axis
    if name != SEEDS and isinstance(vary.get(name), dict):
        return {**vary, name: _chosen(vary[name], words, text)}, name
    if name == SEEDS:
        made: Any = literal(given)
    else:
        made = literal(given) if given.startswith("[") and isinstance(literal(given), list) else [*map(literal, words)]
    replaced = {key: _same(key, name) for key in vary}
    found = {name if replaced[key] else key: made if replaced[key] else old for key, old in vary.items()}
    return {**found, name: made}, name


def _drawn(axis: Mapping[str, Any], given: str, text: str) -> dict[str, Any]:
    """The axis with another number of values; those with smaller numbers stay."""
    if not given.isdecimal():
        raise ScenarioError(
            f"an axis that draws its values takes their number, such as {axis['draw']}", f"--vary {text}"
        )
    return {**axis, "draw": int(given)}


def anchored(text: str, folder: Path, *, axis: bool = False) -> str:
    """A setting as `--set` gives it, or an axis as `--vary` does, with the full names of files in a folder."""
    path, equals, given = text.partition("=")
    given = given.strip()
    value = literal(given)
    if axis and not isinstance(value, list):
        value = [literal(word) for word in split(given)]
    made = files.anchored({path.strip(): value}, folder)[path.strip()]
    if not equals or made == value:
        return text
    from polypath.scenario import writing  # its library is not needed where no file is named

    return f"{path}={made if isinstance(made, str) else writing.in_line(made)}"


def _same(key: str, name: str) -> bool:
    return {key, name} == {SEED, SEEDS} or _paths(key) == _paths(name)


def _chosen(axis: Mapping[str, Any], labels: list[str], text: str) -> dict[str, Any]:
    for word in labels:
        if word not in axis:
            raise no_value(word, list(axis), f"--vary {text}")
    return {word: axis[word] for word in labels}


def no_value(label: str, known: Sequence[str], origin: str) -> ScenarioError:
    """That an axis has no value with that label."""
    hint = units.nearest(label, known)
    message = f"the axis has no value '{label}'" + ("" if hint else f"; it has {', '.join(known)}")
    return ScenarioError(message, origin, hint=hint)


def split(text: str) -> list[str]:
    """At the commas that stand in no brackets and no quotes."""
    words, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        else:
            depth += (character in "[{") - (character in "]}")
        if character == "," and not quote and depth == 0:
            words.append("")
        else:
            words[-1] += character
    return [word.strip() for word in words]


def check(vary: dict[str, Any]) -> dict[str, Any]:
    """The table as it is, if every axis has the form of one."""
    for key, given in vary.items():
        if key == SEEDS:
            counts.check(given)
            continue
        if drawn.is_drawn(given):
            drawn.check(key, given)
        elif rows.is_of_rows(given):
            rows.check(key, given)
        elif isinstance(given, dict):
            _check_named(key, given)
        elif not isinstance(given, list):
            raise fault(f"axis '{key}' needs a list of values, such as [{given!r}]", at=(key,))
        if not given:
            raise fault(f"axis '{key}' has no values", at=(key,))
    made = axes(vary, 0)
    # before anything that takes time for each value
    if prod(len(axis.values) for axis in made) > MOST_POINTS:
        raise fault(f"the axes span more than {MOST_POINTS} points")
    for key, axis in zip(vary, made, strict=True):
        for text in (axis.name, *axis.labels):
            if not text.isprintable():
                raise fault(f"{text!r} has a character that cannot be printed", at=(key,))
    for key, axis in zip(vary, made, strict=True):
        seen: set[str] = set()
        for name in axis.labels:
            if name in seen:
                raise fault(f"axis '{axis.name}' has the value '{name}' twice", at=(key,))
            seen.add(name)
    for path, key in _repeated(dict(zip(vary, made, strict=True))):
        raise fault(f"'{path}' is varied by two axes", at=(key,))
    return vary


def _check_named(key: str, given: dict[str, Any]) -> None:
    for name, settings in given.items():
        if (rest := _unquoted(settings)) is not None:
            raise fault(f'a path is written in quotes: "{key}.{name}{rest}" = [..]', at=(key, name))
        if not isinstance(settings, dict):
            raise fault(
                f"a value of the named axis '{key}' is a table of settings, "
                f'such as {name} = {{ "link.path0.rate" = "10 Mbps" }}',
                at=(key, name),
            )


def _unquoted(settings: Any) -> str | None:
    """The rest of a path without quotes, which leaves tables for its steps and a list of values below them."""
    if isinstance(settings, list):
        return ""
    for step, value in settings.items() if isinstance(settings, dict) else ():
        if isinstance(value, list) and "." not in step and step not in LISTS:
            return f".{step}"
        if isinstance(value, dict) and value and all(isinstance(inner, list) for inner in value.values()):
            return f".{step}.{next(iter(value))}"
    return None


def _repeated(made: Mapping[str, Axis]) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for key, axis in made.items():
        for path in axis.paths:
            if path in seen:
                yield path, key
            seen.add(path)


def literal(text: str) -> Any:
    """A value as a command line gives it: TOML where the text is that (true, 3, ["1 kB"], {kind = ..}), else text."""
    try:
        data = tomllib.loads(f"value = {text}\n")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    if list(data) != ["value"] or not isinstance(data["value"], bool | int | float | str | list | dict):
        return text
    return data["value"]


Vary = Annotated[
    dict[str, Any],
    AfterValidator(check),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {
                SEEDS: counts.SCHEMA,
            },
            "additionalProperties": {
                "anyOf": [
                    {"type": "array", "minItems": 1},
                    {
                        "type": "object",
                        "properties": {
                            "csv": {"type": "string", "description": "A file with a row for each value."},
                            "label": {"type": "string", "description": "The column that names the values."},
                            "rows": {"type": "object", "description": "Which rows, by columns."},
                            "set": {"type": "object", "description": "What each sets: {COLUMN} is what it has there."},
                        },
                        "required": ["csv", "set"],
                        "additionalProperties": False,
                    },
                    {
                        "type": "object",
                        "properties": {
                            "draw": {"type": "integer", "minimum": 1, "description": "How many values are drawn."},
                            "seed": {"type": "integer", "minimum": 0, "description": "Of the draws."},
                            "csv": {"type": "string", "description": "A file of which each value draws a row."},
                            "set": {
                                "type": "object",
                                "description": "What each sets: a distribution, or a text in which {COLUMN} is a cell.",
                            },
                        },
                        "required": ["draw", "set"],
                        "additionalProperties": False,
                    },
                    {"type": "object", "minProperties": 1, "additionalProperties": {"type": "object"}},
                ]
            },
            "examples": [{"defaults.receive_buffer": ["300 kB", "1 MB", "8 MB"], SEEDS: 10}],
        }
    ),
]
"""Axes by name or path."""
