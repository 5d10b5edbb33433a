"""Models of the network as tables of a scenario: queue disciplines and loss models, made from the engine's registry.

What a model is called, its settings with their texts, units, bounds and defaults, and how they fit together are said
once, where the engine has the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, ClassVar, Literal, Self

from annotated_types import Ge, Gt, Le
from pydantic import AfterValidator, Field, GetCoreSchemaHandler, create_model, model_validator
from pydantic_core import CoreSchema

from polypath import registry
from polypath.scenario.base import Model
from polypath.scenario.fields import Packets, Period, Share, Size, fault

_TYPES: Mapping[str, Any] = {
    "boolean": bool,
    "integer": int,
    "number": float,
    "packets": Packets,
    "share": Share,
    "period": Period,
    "size": Size,
}


class NetworkModel(Model):
    """A model by its kind, with its settings."""

    registry_kind: ClassVar[registry.Kind]
    kind: str

    def planned(self) -> dict[str, Any]:
        """What a Plan says of it: times in nanoseconds, sizes in bytes."""
        settings = {name: getattr(self, name) for name in type(self).model_fields if name != "kind"}
        return self.plan_of(self.kind, **settings)

    @classmethod
    def plan_of(cls, name: str, **given: Any) -> dict[str, Any]:
        """What a Plan says of the model of that name with these settings, the others as its defaults say."""
        entry = registry.find(cls.registry_kind, name)
        values = {each: given.get(each.name, each.default) for each in entry.parameters}
        return {"kind": name} | {each.field: float(value) if each.real else value for each, value in values.items()}

    @classmethod
    def written(cls, planned: Mapping[str, Any]) -> dict[str, Any]:
        """What a scenario says of a model in a Plan."""
        entry = registry.find(cls.registry_kind, planned["kind"])
        given = [(each, value) for each in entry.parameters if (value := planned.get(each.field)) is not None]
        return {"kind": entry.name} | {each.name: each.written(value) for each, value in given}

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        settings = self.planned()
        problem = registry.fault(self.registry_kind, settings.pop("kind"), settings)
        if problem is not None:
            raise fault(problem)
        return self


class Discipline(NetworkModel):
    """A queue discipline."""

    registry_kind = "queue"


class LossModel(NetworkModel):
    """A loss model."""

    registry_kind = "loss"


BASES: Mapping[str, type[NetworkModel]] = {"queue": Discipline, "loss": LossModel}
"""By the key of a link that chooses a model."""


class OneOf:
    """For the annotation of a base: one of its models, by the table's `kind`."""

    def __init__(self, base: type[NetworkModel]) -> None:
        self.base = base

    def tables(self) -> tuple[type[NetworkModel], ...]:
        return tuple(tables(self.base).values())

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(Annotated[reduce(or_, self.tables()), Field(discriminator="kind")])


@cache
def tables(base: type[NetworkModel]) -> Mapping[str, type[NetworkModel]]:
    """The table of each model, by name."""
    return {name: _table(base, entry) for name, entry in registry.entries(base.registry_kind).items()}


def _table(base: type[NetworkModel], entry: registry.Entry) -> type[NetworkModel]:
    fields: dict[str, Any] = {each.name: _field(each) for each in entry.parameters}
    return create_model(
        "".join(part.capitalize() for part in [*entry.name.split("-"), base.registry_kind]),
        __base__=base,
        __doc__=f"{entry.description[0].upper()}{entry.description[1:]}.",
        **{"kind": (Literal[entry.name], ...), **fields},
    )


def _field(parameter: registry.Parameter) -> tuple[Any, Any]:
    of: Any = _TYPES[parameter.kind]
    for bound in _bounds(parameter):
        of = Annotated[of, bound]
    if parameter.required:
        return of, Field(description=parameter.description)
    optional = of if parameter.default is not None else of | None
    return optional, Field(default=parameter.default, description=parameter.description)


def _bounds(parameter: registry.Parameter) -> list[Any]:
    if parameter.kind in ("integer", "number"):
        least, most = parameter.minimum, parameter.maximum
        above = Gt if parameter.exclusive else Ge
        return ([] if least is None else [above(least)]) + ([] if most is None else [Le(most)])
    if parameter.kind == "size" and (parameter.minimum or 0) > 1:
        return [AfterValidator(_at_least(parameter))]
    return []


def _at_least(parameter: registry.Parameter) -> Callable[[int], int]:
    least = int(parameter.minimum or 0)

    def check(value: int) -> int:
        if value < least:
            raise fault(f"must be at least {parameter.written(least)}, not {parameter.written(value)}")
        return value

    return check
