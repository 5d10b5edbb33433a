"""An axis whose values are the rows of a CSV file.

The axis is a table with these keys:

    [vary.point]
    csv = "points.csv"                                     relative to the scenario's file; the first line names columns
    label = "point"                                        the column that names the values; default: the first
    rows = { class = "low", point = ["0", "5*"] }          the rows, by columns: a text or several, with * and ?
    set = { "link.path0.rate" = "{rate0_mbps} Mbps" }      the settings of a row; {COLUMN} is its cell, in tables, too
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from polypath.scenario.errors import ScenarioError
from polypath.scenario.fields import fault
from polypath.scenario.reading import read_text
from polypath.units import nearest

KEYS: Final = ("csv", "label", "rows", "set")

#: How the text of a table begins.
_TABLE = re.compile(r"\s*\{[^{}]*=")
_COLUMN = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Table:
    """A file's columns, and its rows with their lines."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Row:
    """A value of the axis: its label, what it sets, and where it stands, as "points.csv:12"."""

    label: str
    settings: Mapping[str, Any]
    origin: str


def is_of_rows(given: object) -> bool:
    """Whether an axis takes its values from a file. One of values with labels has tables alone."""
    return isinstance(given, Mapping) and not isinstance(given.get("csv", {}), Mapping)


def parse(text: str, filename: str) -> Table:
    """The table of a file's text. Raises ScenarioError that names file and line."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[tuple[int, tuple[str, ...]]] = []
    try:
        columns = tuple(name.strip() for name in next(reader, []))
        if not any(columns):
            raise ScenarioError("the first line names no columns", filename, 1)
        for number, name in enumerate(columns, 1):
            if not name or name in columns[: number - 1]:
                what = f"column {number} has the name of one before it" if name else f"column {number} has no name"
                raise ScenarioError(what, filename, 1)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(columns):
                what = f"the row has {len(cells)} values, and there are {len(columns)} columns"
                raise ScenarioError(what, filename, reader.line_num)
            rows.append((reader.line_num, tuple(cell.strip() for cell in cells)))
    except csv.Error as error:
        raise ScenarioError(f"this is no CSV: {error}", filename, reader.line_num) from error
    if not rows:
        raise ScenarioError("there are no rows below the header", filename, 1)
    return Table(columns, tuple(rows))


_parsed = lru_cache(maxsize=8)(parse)
"""A sweep asks for the same text at each of its points."""


def values(given: Mapping[str, Any], literal: Callable[[str], Any]) -> list[Row]:
    """The rows of an axis that `check` has accepted; `literal` reads a cell that is a setting's whole value."""
    table = table_of(given)
    label = table.columns.index(given.get("label", table.columns[0]))
    found = []
    for line, cells in _chosen(table, given):
        there = dict(zip(table.columns, cells, strict=True))
        settings = dict(settings_of(given["set"], there, literal))
        found.append(Row(cells[label], settings, f"{given['csv']}:{line}"))
    return found


def table_of(given: Mapping[str, Any]) -> Table:
    """The file of an axis. Raises ScenarioError that names file and line."""
    return _parsed(read_text(Path(given["csv"]), "table of points"), given["csv"])


def _chosen(table: Table, given: Mapping[str, Any]) -> Iterator[tuple[int, tuple[str, ...]]]:
    wanted = [(table.columns.index(name), _patterns(which)) for name, which in given.get("rows", {}).items()]
    for line, cells in table.rows:
        if all(_matches(cells[at], patterns) for at, patterns in wanted):
            yield line, cells


def _matches(cell: str, patterns: Sequence[str]) -> bool:
    return any(cell == each or fnmatchcase(cell, each) for each in patterns)


def _patterns(which: Any) -> list[str]:
    return [str(each) for each in (which if isinstance(which, list) else [which])]


def settings_of(
    templates: Mapping[str, Any], there: Mapping[str, str], literal: Callable[[str], Any]
) -> Iterator[tuple[str, Any]]:
    """What a row sets, by columns. An empty cell leaves a setting as it is."""
    for path, template in templates.items():
        if all(there[name] for name in columns_in(template)):
            yield path, _filled(template, there, literal)


def _filled(template: Any, there: Mapping[str, str], literal: Callable[[str], Any]) -> Any:
    if isinstance(template, dict):
        return {key: _filled(inner, there, literal) for key, inner in template.items()}
    named = columns_in(template)
    if not named:
        return template
    if template == f"{{{named[0]}}}":
        return literal(there[named[0]])
    return _COLUMN.sub(lambda found: there[found[1]], template)


def check(key: str, given: Mapping[str, Any]) -> None:
    """Raises the fault of an axis that is not as its file and this module's text have it."""
    for name in given:
        if name not in KEYS:
            hint = nearest(name, KEYS)
            message = f"unknown key '{name}' in axis '{key}', which takes its values from a file"
            raise fault(message if hint else f"{message}; there is {', '.join(KEYS)}", hint, at=(key, name))
    for name, kind, what in (("csv", str, "a file's name"), ("label", str, "a column"), ("rows", dict, "a table")):
        if name in given and not isinstance(given[name], kind):
            raise fault(f"axis '{key}': '{name}' is {what}", at=(key, name))
    if not isinstance(given.get("set"), dict) or not given["set"]:
        example = 'set = { "link.path0.rate" = "{rate_mbps} Mbps" }'
        raise fault(f"axis '{key}' sets nothing: give it {example}", at=(key, "set") if "set" in given else (key,))
    try:
        table = table_of(given)
    except ScenarioError as error:
        raise fault(str(error), at=(key, "csv")) from error
    _check_columns(key, given, table)
    _check_rows(key, given, table)


def _check_columns(key: str, given: Mapping[str, Any], table: Table) -> None:
    named: list[tuple[tuple[str, ...], str]] = [(("rows", name), name) for name in given.get("rows", {})]
    if "label" in given:
        named.append((("label",), given["label"]))
    for path, template in given["set"].items():
        if isinstance(template, str) and _TABLE.match(template):
            example = '{ trace = "{file}" }'
            raise fault(
                f"{template!r} is a text, not a table; write it without quotes around it, as {example}",
                at=(key, "set", path),
            )
        named += [(("set", path), name) for name in columns_in(template)]
    for at, name in named:
        if name not in table.columns:
            raise fault(f"{given['csv']} has no column '{name}'", at=(key, *at))


def columns_in(template: Any) -> list[str]:
    """The columns that a setting's value is made of."""
    if isinstance(template, dict):
        return [name for inner in template.values() for name in columns_in(inner)]
    return _COLUMN.findall(template) if isinstance(template, str) else []


def _check_rows(key: str, given: Mapping[str, Any], table: Table) -> None:
    for name, which in given.get("rows", {}).items():
        there = dict.fromkeys(row[table.columns.index(name)] for _, row in table.rows)
        for pattern in _patterns(which):
            if not any(_matches(cell, [pattern]) for cell in there):
                message = f"{given['csv']} has no row whose '{name}' is '{pattern}'"
                raise fault(message, at=(key, "rows", name))
    rows = list(_chosen(table, given))
    if not rows:
        raise fault(f"{given['csv']} has no row that 'rows' of axis '{key}' chooses", at=(key, "rows"))
    label = table.columns.index(given.get("label", table.columns[0]))
    lines: dict[str, int] = {}
    for line, cells in rows:
        name = cells[label]
        where = f"{given['csv']}:{line}"
        if not name:
            raise fault(f"{where}: the row has no text in column {label + 1}, which names it", at=(key, "csv"))
        if name in lines:
            remedy = "; choose with 'rows'" if len(rows) == len(table.rows) else ""
            raise fault(f"{where}: the row has the name of line {lines[name]}{remedy}", at=(key, "csv"))
        lines[name] = line


def with_rows(given: Mapping[str, Any], column: str | None, wanted: Sequence[str]) -> dict[str, Any]:
    """The axis with other rows, not checked: those whose column, by default that of the labels, is one of the texts."""
    name = column or given.get("label") or table_of(given).columns[0]
    return {**given, "rows": {**given.get("rows", {}), name: list(wanted)}}
