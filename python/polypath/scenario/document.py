"""Reading a TOML file of another kind than a scenario into its model, with every fault at its line."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Generic, TypeVar

from pydantic import ValidationError

from polypath.scenario import syntax
from polypath.scenario.base import Model
from polypath.scenario.errors import Problem, ScenarioError
from polypath.scenario.positions import Path, Positions
from polypath.scenario.reading import read_text
from polypath.scenario.validate import faults

_Of = TypeVar("_Of", bound=Model)


@dataclass(frozen=True)
class Document(Generic[_Of]):
    """What a file says, and where it says it."""

    file: FilePath
    said: _Of
    positions: Positions

    def line(self, path: Path) -> int | None:
        """The line of what is at a path."""
        return self.positions.line(path)

    def error(self, problem: Problem) -> ScenarioError:
        """A fault at its line."""
        return ScenarioError(problem.message, str(self.file), self.line(problem.path), problem.hint)

    def require(self, problems: Iterable[Problem]) -> None:
        """Raises ScenarioError with every fault, if there is one."""
        if found := [self.error(each) for each in problems]:
            raise _collected(found)


def load(
    file: FilePath, what: str, model: type[_Of], renewed: Callable[[str, str], str] = lambda text, filename: text
) -> Document[_Of]:
    """Reads a file; `what` names its content in errors, `renewed` puts old forms of a text into new
    ones, line by line. Raises ScenarioError with every fault found."""
    text = read_text(file, what)
    syntax.require_shallow(text, str(file))
    try:
        text = renewed(text, str(file))
        data = tomllib.loads(text)
        positions = Positions(text)
    except RecursionError as error:
        raise ScenarioError("invalid TOML: nested too deeply", str(file)) from error
    except ValueError as error:
        raise syntax.fault(error, text, str(file)) from error
    try:
        return Document(file, model.model_validate(data), positions)
    except ValidationError as error:
        problems = faults(error, data, model, what)
        located = [ScenarioError(each.message, str(file), positions.line(each.path), each.hint) for each in problems]
        raise _collected(located) from error


def _collected(errors: list[ScenarioError]) -> ScenarioError:
    """One error that carries them all by line, what is missing last: a key that is misspelt is missing, too."""
    ordered = sorted(errors, key=lambda error: error.line or sys.maxsize)
    ordered[0].errors = ordered
    return ordered[0]
