"""The common part of all models of a scenario."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache
from typing import Self

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A table of a scenario: immutable, without unknown keys, described by the texts under its fields.

    A model is built when it is first used, and its texts are read by `descriptions`: both would take long at import.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    @classmethod
    @cache
    def empty(cls) -> Self:
        """The table that says nothing, one for all that share it. Making it does not build the model."""
        return cls.model_construct()


def descriptions(model: type[BaseModel]) -> Mapping[str, str]:
    """The text under each field of a model, its bases' fields included."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if issubclass(each, BaseModel) and each.__module__ in sys.modules:
            found |= _texts(each.__module__).get(each.__qualname__, {})
    return found


@cache
def _texts(module: str) -> dict[str, dict[str, str]]:
    """The texts of a module's classes: strings that stand right after the annotation of a field."""
    found: dict[str, dict[str, str]] = {}
    for each in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(each, ast.ClassDef):
            own = found.setdefault(each.name, {})
            for field, below in zip(each.body, each.body[1:], strict=False):
                match field, below:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                        own[name] = inspect.cleandoc(text)
    return found
