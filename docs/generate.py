"""Writes the reference pages: scenario files and plans from their schemas, algorithms from the registries, Python from
docstrings, labs from their folders.

python docs/generate.py DIRECTORY
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import api
import laboratories

from polypath import _core, registry
from polypath.measures import REGISTRY, Measure
from polypath.measures.measure import Of
from polypath.results.settled import OLD
from polypath.scenario.schema import json_schema

Node = Mapping[str, Any]

FIGURES = Path(__file__).parents[1] / "benches" / "instructions.toml"

HEADINGS: dict[registry.Kind, str] = {
    "scheduler": "Packet schedulers",
    "congestion": "Congestion control",
    "path-manager": "Path managers",
    "queue": "Queue disciplines",
    "loss": "Loss models",
    "wifi": "Wi-Fi standards",
    "middlebox": "Middleboxes",
    "controller": "Routing of controllers",
    "spanning-tree": "Spanning tree protocols",
    "application": "Applications",
    "topology": "Topologies",
    "profile": "Profiles",
}


def scenario() -> str:
    """The page of scenario files."""
    root = json_schema()
    parts = [
        "# Scenario files",
        "A scenario is a TOML file. Every quantity carries its unit. This page is generated from the JSON Schema that"
        " `polypath schema` prints; an editor that is given that schema completes and checks while one types.",
        "## The file",
        *_fields(root),
    ]
    for name, node in sorted(root["$defs"].items()):
        parts += [f"## {name}", node.get("description", ""), *_fields(node)]
    return _page(parts)


def plan() -> str:
    """The page of plans."""
    root = json.loads(_core.plan_schema())
    parts = [
        "# Plans",
        "A plan is what a scenario becomes, and the only input of an engine: ids in place of names, numbers in place of"
        " quantities. Ids are places in the lists. Times are in ns from the start of the run, rates in bit/s, and"
        " sizes in bytes. `plan.json` of a result has it, and `polypath run plan.json` runs it. This page is generated"
        " from the JSON Schema that `polypath schema --plan` prints. `polypath.plan.types` has the same tables as types"
        " for Python.",
        "## The plan",
        *_fields(root),
    ]
    for name, node in sorted(root["$defs"].items()):
        parts += [f"## {name}", node.get("description", ""), *_fields(node)]
        for variant in node.get("oneOf", ()):
            if "title" in variant:
                parts += [f"### {variant['title']}", variant.get("description", ""), *_fields(variant)]
        if "properties" not in node:
            parts.append(", ".join(dict.fromkeys(_values(node))))
    return _page(parts)


def tables() -> str:
    """The page of a Recording's tables."""
    parts = [
        "# Tables",
        "The tables of [a Recording](../recording.md) and their columns. Times are in ns from the start of the run"
        " (`i64`). Every other column has its unit in its name. Ids are places in the plan's lists. `?` marks a type of"
        " which a value may be null. An optional table may be missing where it would be empty.",
    ]
    for each in json.loads(_core.tables()):
        rows = [
            (f"`{column['name']}`", f"`{column['type']}{'?' if column['nullable'] else ''}`", column["about"])
            for column in each["columns"]
        ]
        parts += [
            f"## `{each['name']}`" + (" (optional)" if each["optional"] else ""),
            f"One row: {each['about'][0].lower()}{each['about'][1:]}",
            _table(("column", "type", "meaning"), rows),
        ]
    return _page(parts)


def algorithms() -> str:
    """The page of what can be chosen by name."""
    parts = [
        "# Algorithms",
        "What a scenario can choose by name; `polypath algorithms` prints the same lists. Parameters are given in a"
        ' table, `scheduler = { kind = "kbest", k = 3 }`; queue disciplines, loss models and applications take theirs'
        " as [scenario files](scenario.md) describe.",
    ]
    for kind in registry.KINDS:
        parts += [f"## {HEADINGS[kind]}"]
        for entry in registry.entries(kind).values():
            parts += [f"### `{entry.name}`", f"{entry.description}.", f"Source: {entry.source}" if entry.source else ""]
            if entry.parameters:
                rows = [(f"`{key}`", "name", f"`{name}`", "") for key, name in entry.algorithms.items()]
                rows += [
                    (f"`{each.name}`", _range(each), _literal(each.written(each.default)), each.description)
                    for each in entry.parameters
                ]
                parts.append(_table(("parameter", "values", "default", "meaning"), rows))
    return _page(parts)


def instructions() -> str:
    """The table of instructions per packet-hop."""
    with FIGURES.open("rb") as file:
        figures = tomllib.load(file)
    rows = [(name, what, str(figures[name]["instructions"])) for name, what, _ in _core.works() if name in figures]
    return _page([_table(("work", "what", "instructions per packet-hop"), rows)])


#: What a figure is of, as a heading, in the order of the page.
SUBJECTS: dict[Of, str] = {
    "run": "Of a run",
    "connection": "Of a connection",
    "connections": "Of several connections",
    "requests": "Of an application's requests",
    "flows": "Of the flows of a group",
    "video": "Of a video",
    "page": "Of a web page",
    "subflow": "Of a subflow or a path",
    "link": "Of a link",
    "tunnel": "Of a tunnel",
    "controller": "Of a controller",
}


def measures() -> str:
    """All figures, by what they are of."""
    parts = [
        "# Measures",
        "All figures of a run by name. Claims of a lab and points of a rubric bound them, `polypath compare --measure`"
        " and plots choose among those with a column. The column is that of a sweep's tables and has the unit of data."
        " The other unit is that of claims and of tables for people. A parameter in brackets may be left out.",
    ]
    for of, heading in SUBJECTS.items():
        rows = [
            (
                f"`{each.name}`",
                each.unit.shown,
                f"`{each.column}`" if each.kept else "",
                _parameters(each),
                each.definition,
                each.source,
            )
            for each in REGISTRY.values()
            if each.of == of
        ]
        parts += [f"## {heading}", _table(("measure", "unit", "column", "parameters", "what", "source"), rows)]
    rows = [(f"`{name}`", f"`{now}`") for name, now in OLD.items()]
    parts += ["## Old names", "They are still read, with a warning.", _table(("old", "present"), rows)]
    return _page(parts)


def _parameters(measure: Measure) -> str:
    return ", ".join(
        f"`{each.name}`" if each.default is each.empty else f"[`{each.name}`]" for each in measure.parameters.values()
    )


PAGES: dict[str, Callable[[], str]] = {
    "scenario.md": scenario,
    "plan.md": plan,
    "tables.md": tables,
    "algorithms.md": algorithms,
    "instructions.md": instructions,
    "python.md": api.page,
    "labs.md": laboratories.page,
    "measures.md": measures,
}


def write(directory: Path) -> None:
    """Writes every page into the directory, which is made if it is missing."""
    pages = {name: page() for name, page in PAGES.items()}
    pages |= {f"{laboratories.FOLDER}/{name}": page for name, page in laboratories.pages().items()}
    for name, page in pages.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")


def _fields(node: Node) -> list[str]:
    required = node.get("required", ())
    rows = [
        (
            f"`{key}`" + (" (required)" if key in required else ""),
            ", ".join(dict.fromkeys(_values(value))),
            "" if key in required else _default(value),
            value.get("description", ""),
        )
        for key, value in node.get("properties", {}).items()
    ]
    return [_table(("key", "values", "default", "meaning"), rows)] if rows else []


def _values(node: Node) -> Iterator[str]:
    """The values that a schema allows, alternative by alternative, without the absent value."""
    if "title" in node and "kind" in node.get("properties", {}):
        yield f"[{node['title']}](#{node['title'].lower()})"
    elif "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[-1]
        yield f"[{name}](#{name.lower()})"
    elif "const" in node:
        yield f"`{node['const']}`"
    elif "enum" in node:
        yield from (f"`{value}`" for value in node["enum"])
    elif alternatives := node.get("anyOf") or node.get("oneOf"):
        for each in alternatives:
            yield from _values(each)
    elif "patternProperties" in node:
        for each in node["patternProperties"].values():
            yield from (f"name = {value}" for value in _values(each))
    elif isinstance(node.get("additionalProperties"), Mapping):
        yield from (f"name = {value}" for value in _values(node["additionalProperties"]))
    elif "prefixItems" in node:
        yield " and ".join(value for each in node["prefixItems"] for value in _values(each))
    elif node.get("type") == "array":
        yield "list of " + " or ".join(_values(node.get("items", {})))
    elif "const" in node.get("properties", {}).get("name", {}):
        yield "[a table with parameters](algorithms.md)"
    elif examples := node.get("examples"):
        yield "such as " + " or ".join(f"`{value}`" for value in examples[:2])
    elif isinstance(node.get("type"), list):
        yield from (value for each in node["type"] for value in _values({**node, "type": each}))
    elif "type" in node and node["type"] != "null":
        yield node["type"] + _bounds(node)


def _bounds(node: Node) -> str:
    low, high = node.get("minimum"), node.get("maximum")
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}"
    return f" from {low:g}" if low is not None else f" up to {high:g}" if high is not None else ""


def _range(of: registry.Parameter) -> str:
    if of.choices:
        return ", ".join(f"`{choice}`" for choice in of.choices)
    if not of.has_unit:
        return of.measure + _bounds({"minimum": of.minimum, "maximum": of.maximum})
    least = int(of.minimum or 0)
    return f"{of.measure} from {of.written(least)}" if least > 1 else of.measure


def _default(node: Node) -> str:
    value = node.get("default")
    return "" if isinstance(value, Mapping | list) else _literal(value)


def _literal(value: Any) -> str:
    if value is None or value == "":
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in line) + " |" for line in lines
    )


def _page(parts: list[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        raise SystemExit("usage: generate.py FOLDER, to which the reference pages are written")
    write(Path(sys.argv[1]))
