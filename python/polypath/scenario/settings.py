"""Settings of single values, as given by `--set link.path0.rate="10 Mbps"` and by the axes of a sweep."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from polypath.scenario import former
from polypath.scenario.errors import ScenarioError, unknown
from polypath.scenario.positions import Path
from polypath.scenario.schema import keys_at
from polypath.scenario.stack import SETTINGS
from polypath.scenario.tables import Tables, application_names, between_hosts
from polypath.scenario.vary import LISTS, Axis, literal
from polypath.units import nearest

_ALGORITHMS = {"scheduler", "path_manager", "congestion"}
_FIXED = {"host", "router", "switch", "link"}
"""Tables whose members a setting changes but does not add."""

Inherited = Callable[[Path], str | None]


class Setting:
    """One setting: where it goes and what it is; `origin` names in errors what asked for it."""

    def __init__(self, path: str, value: Any, origin: str | None) -> None:
        path, value, old = former.setting(path, value)
        former.tell(old, lambda _: (origin, None))
        self.steps = [step.strip() for step in path.strip().split(".")]
        self.value = value
        self.origin = origin
        if not all(self.steps):
            raise self.error("a setting is PATH=VALUE, such as link.path0.rate=10 Mbps")
        if self.steps[0] == "vary":
            raise self.error("the axes of a sweep are changed by --vary")

    @classmethod
    def parse(cls, text: str) -> Self:
        """A setting as `--set` gives it."""
        path, equals, given = text.partition("=")
        return cls(path if equals else "", literal(given.strip()), f"--set {text}")

    def error(self, message: str, hint: str | None = None) -> ScenarioError:
        """An error in this setting."""
        return ScenarioError(message, self.origin, hint=hint)

    def apply(self, data: dict[str, Any], names: list[str], inherited: Inherited) -> Path:
        """Sets the value in `data` and returns its path.

        `names` are the applications' names; `inherited` gives the algorithm in force where only a parameter is set.
        """
        path: list[str | int] = []
        table: Any = data
        for number, step in enumerate(self.steps):
            last = number == len(self.steps) - 1
            if isinstance(table, list):
                key: str | int = self._index(step, path, table, names)
            else:
                key = self._key(step, path, table, data)
            path.append(key)
            if last:
                table[key] = copy.deepcopy(self.value)
                return tuple(path)
            table = self._enter(table, key, path, inherited)
        raise AssertionError("a setting has at least one step")

    def _index(self, step: str, path: list[str | int], table: list[Any], names: list[str]) -> int:
        what = str(path[-1])
        if what == "application" and step in names:
            return names.index(step)
        if step.isdecimal() and 1 <= int(step) <= len(table):
            return int(step) - 1
        if (
            what in LISTS
            and step == f"{len(table) + 1}"
            and self.steps[-2:] == [what, step]
            and isinstance(self.value, dict)
        ):
            table.append({})  # one more, whole
            return len(table) - 1
        if what == "application":
            raise self.error(*unknown(what, step, names))
        if not table:
            raise self.error(f"the scenario has no {what}")
        raise self.error(f"there is no {what} {step}; they are counted from 1 to {len(table)}")

    def _key(self, step: str, path: list[str | int], table: dict[str, Any], data: dict[str, Any]) -> str:
        if len(path) == 1 and path[0] in _FIXED:
            if step not in table:
                raise self.error(*unknown(str(path[0]), step, table))
            return step
        known = keys_at(tuple(path), data)
        if known and step not in known:
            where = ".".join(str(part) for part in path) or "a scenario"
            hint = nearest(step, known)
            message = f"unknown key '{step}' in {where}"
            raise self.error(message if hint else f"{message}; there is {', '.join(known)}", hint)
        return step

    def _enter(self, table: Any, key: str | int, path: list[str | int], inherited: Inherited) -> Any:
        if isinstance(table, dict) and key not in table:
            table[key] = [] if len(path) == 1 and key in LISTS else {}
            if key in _ALGORITHMS and (name := inherited(tuple(path))) is not None:
                table[key] = name
        inner = table[key]
        if isinstance(inner, str) and key in _ALGORITHMS:
            inner = table[key] = {"kind": inner}
        if not isinstance(inner, dict | list):
            where = ".".join(str(part) for part in path)
            raise self.error(f"{where} is {inner!r}, not a table: there is nothing to set in it")
        return inner


def made(settings: Mapping[str, Any], origin: str | None) -> list[Setting]:
    """The settings of a table of paths and values."""
    return [Setting(path, given, origin) for path, given in settings.items()]


def apply(
    data: dict[str, Any], settings: Sequence[Setting], names: list[str], inherited: Inherited
) -> tuple[dict[str, Any], dict[Path, Setting]]:
    """A copy of `data` with the settings applied in order, and which setting made each path. Raises ScenarioError."""
    changed = copy.deepcopy(data)
    origins: dict[Path, Setting] = {}
    for setting in settings:
        origins[setting.apply(changed, names, inherited)] = setting
    return changed, origins


def overrides(tables: Tables, axis: Axis) -> list[str]:
    """The tables that override the axis's setting in a more general table, as "host.server".

    Applications count only if all of them do. One with its own setting may be the reference for the others.
    """
    found = [table for path in axis.paths for table in _closer(tables, path.split("."))]
    return list(dict.fromkeys(found))


def _closer(tables: Tables, steps: list[str]) -> Iterator[str]:
    match steps:
        case ["defaults", key, *_] if key in SETTINGS:
            for name, host in tables.host.items():
                if getattr(host, key) is not None:
                    yield f"host.{name}"
            yield from _applications(tables, None, key)
        case ["host", host_name, key, *_] if key in SETTINGS:
            yield from _applications(tables, host_name, key)


def _applications(tables: Tables, host: str | None, key: str) -> list[str]:
    found = []
    names = application_names(tables)
    for index, application in between_hosts(tables):
        for side in ("client", "server"):
            if host not in (None, getattr(application, side)):
                continue
            own = [
                f"application.{names[index]}.{table}"
                for table in ("stack", f"{side}_stack")
                if getattr(getattr(application, table, None), key, None) is not None
            ]
            if not own:
                return []
            found += own
    return found
