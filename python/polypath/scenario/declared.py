"""Tables of a scenario that are made from the engine's registry: their fields, and their form in a Plan.

An entry's name, its settings with texts, units, bounds and defaults, and their relations are declared once, in the
engine.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, ClassVar, Literal, Self

from annotated_types import Ge, Gt, Le
from pydantic import AfterValidator, BeforeValidator, Field, GetCoreSchemaHandler, create_model
from pydantic_core import CoreSchema

from polypath import registry
from polypath.scenario.base import Model
from polypath.scenario.fields import Depth, Packets, Period, Rate, Share, Size, Time, fault

_TYPES: Mapping[str, Any] = {
    "boolean": bool,
    "integer": int,
    "number": float,
    "packets": Packets,
    "share": Share,
    "rate": Rate,
    "time": Time,
    "period": Period,
    "size": Size,
    "depth": Depth,
}


class Declared(Model):
    """A table by its kind, with the settings that the registry gives that kind."""

    registry_kind: ClassVar[registry.Kind]
    kind: str

    @classmethod
    def table(cls, entry: registry.Entry) -> type[Self]:
        """The table of an entry: this one with its settings."""
        return made(cls, entry, entry.name + "-" + cls.registry_kind)

    def __reduce__(self) -> tuple[Any, ...]:
        """Its class is no name of a module: it is found again by its kind."""
        base = next(each for each in type(self).__mro__ if "registry_kind" in vars(each))
        return _blank, (base, self.kind), self.__getstate__()


def made(base: type[Any], entry: registry.Entry, name: str, **more: Any) -> type[Any]:
    """`base` with the settings of an entry, but those that it describes itself, and `more` fields."""
    own = inspect.get_annotations(base)
    settings = {each.name: _field(each) for each in entry.parameters if each.name not in own}
    return create_model(
        "".join(part.capitalize() for part in name.split("-")),
        __base__=base,
        __doc__=f"{entry.description[0].upper()}{entry.description[1:]}.",
        **{"kind": (Literal[entry.name], ...), **more, **settings},
    )


def optional(entry: registry.Entry) -> dict[str, tuple[Any, Any]]:
    """The settings of an entry as optional fields."""
    return {
        each.name: (_of(each) | None, Field(default=None, description=each.description)) for each in entry.parameters
    }


@cache
def tables(base: type[Declared]) -> Mapping[str, type[Declared]]:
    """The table of each entry, by name."""
    return {name: base.table(entry) for name, entry in registry.entries(base.registry_kind).items()}


def _blank(base: type[Declared], kind: str) -> Declared:
    table = tables(base)[kind]
    return table.__new__(table)


class OneOf:
    """For the annotation of a base: one of its tables, or of the others, by the table's `kind`."""

    def __init__(self, base: type[Declared], *others: type[Model]) -> None:
        self.base = base
        self.others = others

    def tables(self) -> tuple[type[Model], ...]:
        return (*tables(self.base).values(), *self.others)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(Annotated[reduce(or_, self.tables()), Field(discriminator="kind")])


def planned(entry: registry.Entry, given: Mapping[str, Any], rest: int | None = None) -> dict[str, Any]:
    """What a Plan says of an entry with these settings, the others as its defaults say; `rest`: the time in ns to the
    end of the run."""
    found: dict[str, Any] = {}
    for each in entry.parameters:
        value = given.get(each.name, each.default)
        if each.seldom and value == each.default:
            continue
        if each.rest and value is None:
            value = rest
        found[each.field] = float(value) if each.real else value
    return found


def written(entry: registry.Entry, plan: Mapping[str, Any]) -> dict[str, Any]:
    """What a scenario says of an entry's settings in a Plan."""
    given = [(each, value) for each in entry.parameters if (value := plan.get(each.field)) is not None]
    return {"kind": entry.name} | {each.name: each.written(value) for each, value in given}


def _of(parameter: registry.Parameter) -> Any:
    of: Any = _one_of(parameter.choices) if parameter.choices else _TYPES[parameter.kind]
    for bound in _bounds(parameter):
        of = Annotated[of, bound]
    return of


def _field(parameter: registry.Parameter) -> tuple[Any, Any]:
    of = _of(parameter)
    if parameter.required:
        return of, Field(description=parameter.description)
    optional = of if parameter.default is not None else of | None
    return optional, Field(default=parameter.default, description=parameter.description)


def _one_of(words: tuple[Any, ...]) -> Any:
    def read(value: object) -> object:
        """A version such as 1.3 may stand without quotes."""
        return str(value) if isinstance(value, float) else value

    return Annotated[Literal[words], BeforeValidator(read)]


def _bounds(parameter: registry.Parameter) -> list[Any]:
    if parameter.kind in ("integer", "number"):
        number = int if parameter.kind == "integer" else float
        above = Gt if parameter.exclusive else Ge
        least = [] if parameter.minimum is None else [above(number(parameter.minimum))]
        return least + ([] if parameter.maximum is None else [Le(number(parameter.maximum))])
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
