"""The JSON Schema of scenarios, for editors, and what it says about a place in one."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from polypath import registry
from polypath.scenario import script
from polypath.scenario.algorithms import REGISTRY_KEY
from polypath.scenario.positions import Path
from polypath.scenario.tables import Tables

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_JSON_TYPES = {
    "integer": "integer",
    "integers": "array",
    "texts": "array",
    "number": "number",
    "boolean": "boolean",
    "text": "string",
}


def json_schema() -> dict[str, Any]:
    """The schema of a scenario, with the algorithms that the engine knows. Raises RegistryError without an engine."""
    schema = _with_algorithms(_structure())
    assert isinstance(schema, dict)
    return {"$schema": DIALECT, **schema, "title": "Polypath scenario"}


@lru_cache(maxsize=1)
def _structure() -> dict[str, Any]:
    return Tables.model_json_schema(by_alias=True, mode="validation", schema_generator=_AsWritten)


class _AsWritten(GenerateJsonSchema):
    """Defaults as a scenario writes them, with their units."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        described = super().default_schema(schema)
        written = schema["schema"].get("serialization")
        if written is not None and written["type"] == "function-plain" and described.get("default") is not None:
            described["default"] = written["function"](described["default"])
        return described


def _with_algorithms(node: Any) -> Any:
    if isinstance(node, list):
        return [_with_algorithms(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain = {key: _with_algorithms(value) for key, value in node.items() if key not in (REGISTRY_KEY, "default")}
    if "default" in node and isinstance(node["default"], (bool, int, str, float)):
        plain["default"] = node["default"]
    return {**plain, **_choice(node[REGISTRY_KEY])} if REGISTRY_KEY in node else plain


def _present(of: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in of.items() if value is not None}


def _choice(kind: registry.Kind) -> dict[str, Any]:
    known = registry.entries(kind)
    written = [_SCRIPT, _SCRIPT_TABLE] if kind in script.METHODS else []
    return {
        "anyOf": [{"type": "string", "enum": list(known)}, *(_table(entry) for entry in known.values()), *written],
        "examples": list(known),
    }


_SCRIPT = {"type": "string", "pattern": script.PATTERN, "description": "A class in a Python file."}
_SCRIPT_TABLE = {
    "type": "object",
    "properties": {"name": _SCRIPT},
    "required": ["name"],
    "additionalProperties": {"description": "An argument of the class."},
}


def _table(entry: registry.Entry) -> dict[str, Any]:
    properties: dict[str, Any] = {"name": {"const": entry.name, "description": entry.description}}
    for parameter in entry.parameters:
        bounds = {"minimum": parameter.minimum, "maximum": parameter.maximum}
        items = {"integers": {"items": {"type": "integer", **_present(bounds)}, "minItems": 1}}
        items["texts"] = {"items": {"type": "string"}}
        described = {
            "type": _JSON_TYPES[parameter.kind],
            "description": parameter.description,
            "default": parameter.default,
            "enum": list(parameter.choices) if parameter.choices else None,
            **items.get(parameter.kind, bounds),
        }
        properties[parameter.name] = _present(described)
    return {"type": "object", "properties": properties, "required": ["name"], "additionalProperties": False}


def keys_at(path: Path, data: Any) -> list[str]:
    """The keys that the table at `path` of a scenario's `data` may have; empty when there is no such table."""
    structure = _structure()
    node: dict[str, Any] | None = structure
    for step in path:
        node = _variant(structure, node, data)
        if node is None:
            return []
        node = node.get("items") if isinstance(step, int) else _member(node, step)
        data = _descend(data, step)
    node = _variant(structure, node, data)
    return list(node.get("properties", {})) if node else []


def _member(node: dict[str, Any], key: str) -> dict[str, Any] | None:
    properties: dict[str, Any] = node.get("properties", {})
    if key in properties:
        found: dict[str, Any] = properties[key]
        return found
    patterns: dict[str, Any] = node.get("patternProperties", {})
    extra = next(iter(patterns.values()), node.get("additionalProperties"))
    return extra if isinstance(extra, dict) else None


def _descend(data: Any, step: str | int) -> Any:
    try:
        return data[step]
    except (KeyError, IndexError, TypeError):
        return None


def _variant(structure: dict[str, Any], node: dict[str, Any] | None, data: Any) -> dict[str, Any] | None:
    """The schema behind references and choices, taking the alternative that the data's `kind` names."""
    while node is not None:
        if "$ref" in node:
            node = structure["$defs"][node["$ref"].rsplit("/", 1)[1]]
        elif "discriminator" in node:
            kind = data.get("kind") if isinstance(data, dict) else None
            reference = node["discriminator"]["mapping"].get(kind)
            node = {"$ref": reference} if reference else None
        elif "anyOf" in node:
            tables = [option for option in node["anyOf"] if option.keys() & {"$ref", "discriminator", "anyOf"}]
            node = tables[0] if tables else None
        elif "allOf" in node:
            node = node["allOf"][0]
        else:
            return node
    return None
