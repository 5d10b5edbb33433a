"""Algorithms in a scenario: a kind, or a table of a kind and parameters, checked by the engine's registry."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, PlainSerializer, WithJsonSchema

from polypath import registry
from polypath.scenario import compiled, script
from polypath.scenario.fields import fault

REGISTRY_KEY = "x-registry"
"""Marks in the JSON Schema the places where `schema` puts a registry's names and parameters."""


class Algorithm(BaseModel):
    """An algorithm by name, with the parameters that differ from its defaults."""

    model_config = ConfigDict(frozen=True)

    name: str
    parameters: dict[str, Any] = {}


def _reader(kind: registry.Kind) -> BeforeValidator:
    def read(value: object) -> Algorithm:
        if isinstance(value, Algorithm):
            return value
        if isinstance(value, str):
            return Algorithm(name=value)
        if isinstance(value, dict):
            given = dict(value)
            name = given.pop("kind", None)
            if isinstance(name, str):
                return Algorithm(name=name, parameters=given)
        example = next(iter(registry.entries(kind)))
        raise fault(f'expected a name such as "{example}", or a table with its kind and parameters')

    return BeforeValidator(read)


def _write(value: Algorithm) -> str | dict[str, Any]:
    return {"kind": value.name, **value.parameters} if value.parameters else value.name


def resolved(kind: registry.Kind, algorithm: Algorithm) -> dict[str, Any]:
    """What a plan says of an algorithm; raises RegistryError for one that the engine does not take."""
    name, given = algorithm.name, algorithm.parameters
    if script.is_script(name):
        return {"name": script.NAME, "parameters": script.parameters(kind, name, given)}
    if kind == "scheduler" and compiled.is_file(name):
        return {"name": compiled.NAME, "parameters": compiled.parameters(name, given)}
    if name.endswith(".py") and kind in script.METHODS:
        raise registry.RegistryError(f"'{name}' is a file; name its class, too, as '{name}:CLASS'")
    return {"name": name, "parameters": registry.resolve(kind, name, given)}


def _known(kind: registry.Kind) -> AfterValidator:
    def check(value: Algorithm) -> Algorithm:
        try:
            resolved(kind, value)
        except registry.RegistryError as error:
            raise fault(error.message, error.hint, (error.key or "kind",)) from error
        return value

    return AfterValidator(check)


def _named(kind: registry.Kind) -> tuple[Any, ...]:
    return (
        _reader(kind),
        _known(kind),
        PlainSerializer(_write, return_type=str | dict[str, Any]),
        WithJsonSchema({REGISTRY_KEY: kind}),
    )


Scheduler = Annotated[Algorithm, *_named("scheduler")]
Congestion = Annotated[Algorithm, *_named("congestion")]
PathManager = Annotated[Algorithm, *_named("path-manager")]
Routing = Annotated[Algorithm, *_named("controller")]
SpanningTree = Annotated[Algorithm, *_named("spanning-tree")]
Middlebox = Annotated[Algorithm, *_named("middlebox")]


def _one_or_more(value: object) -> object:
    if value == []:
        raise fault("expected a middlebox or several, or none written at all")
    return value if isinstance(value, list) else [value]


def _write_all(value: list[Algorithm]) -> str | dict[str, Any] | list[str | dict[str, Any]]:
    written = [_write(each) for each in value]
    return written[0] if len(written) == 1 else written


Middleboxes = Annotated[
    list[Middlebox],
    BeforeValidator(_one_or_more),
    PlainSerializer(_write_all, return_type=str | dict[str, Any] | list[str | dict[str, Any]]),
    WithJsonSchema(
        {"anyOf": [{REGISTRY_KEY: "middlebox"}, {"type": "array", "items": {REGISTRY_KEY: "middlebox"}, "minItems": 1}]}
    ),
]
"""One middlebox or several, in order."""
