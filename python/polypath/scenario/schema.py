"""The JSON Schema of scenarios, for editors, and its description of a place in one."""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from polypath import registry
from polypath.scenario import script
from polypath.scenario.algorithms import REGISTRY_KEY
from polypath.scenario.base import Model, descriptions
from polypath.scenario.declared import OneOf
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
    schema = _with_algorithms(Tables.model_json_schema(schema_generator=_AsWritten))
    assert isinstance(schema, dict)
    return {"$schema": DIALECT, **schema, "title": "Polypath scenario"}


class _AsWritten(GenerateJsonSchema):
    """Defaults as a scenario writes them, with their units; the texts under fields."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        described = super().model_schema(schema)
        properties = described.get("properties", {})
        for name, text in descriptions(schema["cls"]).items():
            if name in properties:
                properties[name]["description"] = text
        return described

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        described = super().default_schema(schema)
        inner: Any = schema["schema"]
        while inner["type"] == "function-after":
            inner = inner["schema"]
        written = inner.get("serialization")
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
    "properties": {"kind": _SCRIPT},
    "required": ["kind"],
    "additionalProperties": {"description": "An argument of the class."},
}


def _table(entry: registry.Entry) -> dict[str, Any]:
    properties: dict[str, Any] = {"kind": {"const": entry.name, "description": entry.description}}
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
    return {"type": "object", "properties": properties, "required": ["kind"], "additionalProperties": False}


def keys_at(path: Path, data: Any, root: type[Model] = Tables) -> list[str]:
    """The keys that the table at `path` of a scenario's `data`, or another `root`'s, may have; empty when there is no
    such table."""
    place: Any = root
    for step in path:
        place = _inside(place, step, data)
        data = _descend(data, step)
    model = _model(place, data)
    return [] if model is None else [field.alias or name for name, field in model.model_fields.items()]


def _inside(place: Any, step: str | int, data: Any) -> Any:
    """What is at a step below a place of this type; None where nothing is."""
    for choice in _choices(place):
        match get_origin(choice), get_args(choice):
            case (origin, (member,)) if origin is list:
                return member if isinstance(step, int) else None
            case (origin, (_, member)) if origin is dict:
                return member if isinstance(step, str) else None
    model = _model(place, data)
    field = None if model is None or isinstance(step, int) else model.model_fields.get(step)
    return None if field is None else field.annotation


def _model(place: Any, data: Any) -> type[Model] | None:
    """The table at a place of this type: of several the one that the data's `kind` names."""
    models = [each for each in _choices(place) if isinstance(each, type) and issubclass(each, Model)]
    if len(models) < 2:
        return models[0] if models else None
    kind = data.get("kind") if isinstance(data, dict) else None
    return next((each for each in models if kind in get_args(each.model_fields["kind"].annotation)), None)


def _choices(place: Any) -> list[Any]:
    """A type without annotations, or each of those that a union has."""
    if get_origin(place) is Annotated:
        of, *marks = get_args(place)
        one_of = next((mark for mark in marks if isinstance(mark, OneOf)), None)
        return list(one_of.tables()) if one_of else _choices(of)
    if get_origin(place) in (Union, UnionType):
        return [choice for each in get_args(place) for choice in _choices(each)]
    return [place]


def _descend(data: Any, step: str | int) -> Any:
    try:
        return data[step]
    except (KeyError, IndexError, TypeError):
        return None
