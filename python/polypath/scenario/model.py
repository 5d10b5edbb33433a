"""The scenario as an object: loaded, changed, written, and converted to a plan."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path as FilePath
from typing import Any, Literal, Self

from pydantic import PrivateAttr, ValidationError

from polypath.registry import RegistryError
from polypath.scenario import files, former, rows, script, seeds, syntax
from polypath.scenario import plan as planning
from polypath.scenario import settings as setting
from polypath.scenario import vary as varying
from polypath.scenario.errors import Problem, ScenarioError
from polypath.scenario.plan import Plan
from polypath.scenario.positions import Path, Positions
from polypath.scenario.reading import LARGEST_BYTES, read_text
from polypath.scenario.resolve import resolve
from polypath.scenario.seeds import Seeds
from polypath.scenario.settings import Setting
from polypath.scenario.stored import Stored, relocated
from polypath.scenario.tables import SEEDS_END, Tables, application_names, inherited_algorithm
from polypath.scenario.unused import unused
from polypath.scenario.validate import faults
from polypath.scenario.vary import Axis, Value

Where = Callable[[Path], tuple[str | None, int | None]]
"""The file and line of a path."""


class _Places(dict[str, str]):
    """Where parts of a scenario were written. They are no part of what it says, so all are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Places)

    __hash__ = None


class Scenario(Tables):
    """A network with several paths, what runs over it, and what happens to it."""

    _written: _Places = PrivateAttr(default_factory=_Places)
    """Where each Python file and class was named, each application, and each axis, as "vary.KEY"."""

    @classmethod
    def load(cls, path: FilePath | str) -> Self:
        """Reads a scenario from a TOML file; raises ScenarioError with every fault found."""
        path = FilePath(path)
        stem = path.parent.name if path.stem == "scenario" and path.parent.name else path.stem
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", stem)[:63].lstrip("-")
        return cls.parse(read_text(path, "scenario"), str(path), default_name=name or None, folder=path.parent)

    @classmethod
    def parse(
        cls, text: str, filename: str, *, default_name: str | None = None, folder: FilePath | None = None
    ) -> Self:
        """Reads a scenario from TOML text; `filename` is for errors, and the names of Python files are relative to
        `folder`, without it to the working directory. Raises ScenarioError with every fault found."""
        if len(text) > LARGEST_BYTES:
            raise ScenarioError(f"the text has {len(text) / 1e6:.1f} MB; a scenario has at most 10 MB", filename)
        syntax.require_shallow(text, filename)
        try:
            data = tomllib.loads(text)
            positions = Positions(text)
            data, old = former.renewed(data)
            former.tell(old, lambda path: (filename, positions.line(path)))
            if folder is not None:
                data = files.anchored(data, folder)
        except RecursionError as error:
            raise ScenarioError("invalid TOML: nested too deeply", filename) from error
        except ValueError as error:
            raise syntax.fault(error, text, filename) from error
        if default_name:
            data.setdefault("name", default_name)
        return cls._checked(data, lambda path: (filename, positions.line(path)))

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Self:
        """Reads a scenario from plain data, as TOML would give it; raises ScenarioError with every fault found."""
        return cls._checked(data, lambda path: (None, None))

    @classmethod
    def _checked(cls, data: dict[str, Any], where: Where, written: dict[str, str] | None = None) -> Self:
        data, old = former.renewed(data)
        former.tell(old, where)
        try:
            scenario = cls.model_validate(data)
            scenario._resolved  # noqa: B018, raises Inconsistent
        except ValidationError as error:
            raise _located(faults(error, data), where) from error
        except RecursionError as error:
            raise ScenarioError("nested too deeply", *where(())) from error
        except RegistryError as error:
            raise ScenarioError(str(error), *where(())) from error
        except ScenarioError as error:
            raise _located(getattr(error, "problems", [Problem((), error.message, error.hint)]), where) from error
        if found := list(scenario._vary_problems()):
            raise _located(found, where)
        scenario._written = _Places(written or {})
        for each in files.named(data):
            file, line = where(each.place)
            if each.algorithm and file is not None:
                scenario._written.setdefault(each.text, file if line is None else f"{file}:{line}")
        for index, name in enumerate(application_names(scenario)):
            file, line = where(("application", index))
            if file is not None:
                scenario._written.setdefault(name, file if line is None else f"{file}:{line}")
        for key in scenario.vary:
            file, line = where(("vary", key))
            if file is not None:
                scenario._written.setdefault(f"vary.{key}", file if line is None else f"{file}:{line}")
        return scenario

    def _repr_html_(self) -> str:
        return str(import_module("polypath.notebook").of_scenario(self))

    def where_varied(self, axis: str) -> str | None:
        """Where the axis of this name was written, as "scenario.toml:12"."""
        keys = {each.name: key for key, each in zip(self.vary, self.axes, strict=True)}
        return self.where_named(f"vary.{keys[axis]}") if axis in keys else None

    def where_named(self, file_and_class: str, source: str | None = None) -> str | None:
        """Where "FILE.py:CLASS" was chosen, as "scenario.toml:12". FILE may lack its folder; `source`, its content,
        then distinguishes files with the same name. For an application, by its name, it is where it was written. For an
        axis, by its key, it is "vary.seeds".
        """
        found = [name for name in self._written if file_and_class in (name, FilePath(name).name)]
        if len(found) > 1 and source is not None:
            found = [name for name in found if _holds(name, source)] or found
        return self._written[found[0]] if found else None

    def scripts(self) -> list[FilePath]:
        """Further files of the scenario or of an axis's values: algorithms and controllers in Python, their
        imports, traces, tables, and files for programs.
        """
        return files.sources(self._naming())

    def code(self) -> list[FilePath]:
        """Those of `scripts()` that a run executes, or gives to a program that it starts."""
        return files.executed(self._naming())

    def _naming(self) -> dict[str, Any]:
        """What can name files: what was written, with the settings of every value of an axis."""
        settings = [dict(value.settings) for axis in self.axes for value in axis.values]
        tables = [{"csv": given["csv"]} for given in self.vary.values() if rows.is_of_rows(given)]
        return {**self.to_data(), "vary": settings + tables}

    def to_data(self) -> dict[str, Any]:
        """What was written, as plain data: `Scenario.from_data(s.to_data()) == s`."""
        data = self.model_dump(mode="json", exclude_unset=True, exclude_none=True)
        assert isinstance(data, dict)
        return data

    def with_settings(self, settings: list[str]) -> Self:
        """A scenario with single values changed, "link.path0.rate=10 Mbps"; raises ScenarioError.

        A path names tables by their keys, applications by name or number, events and routes by number (from 1). The
        name of an axis that has one, "loss=wifi", fixes it at the value with that label, which other settings change.
        """
        found, single = self, []
        for text in settings:
            name, equals, label = (part.strip() for part in text.partition("="))
            if equals and name not in type(self).model_fields and isinstance(self.vary.get(name), dict):
                found = found._fixed(name, label, f"--set {text}")
            else:
                single.append(Setting.parse(text))
        return found._set(single) if single else found

    def with_more(self, group: Literal["application", "event"], added: Sequence[Mapping[str, Any]]) -> Self:
        """A scenario with more applications or events, each as a file's table would give it; raises ScenarioError."""
        data = self.to_data()
        data[group] = [*data.get(group, []), *map(dict, added)]
        return self._checked(data, lambda path: (None, None), self._written)

    @property
    def axes(self) -> list[Axis]:
        """What `[vary]` varies, in the order written; empty: the scenario is one run."""
        return varying.axes(self.vary, self.seed)

    @property
    def adaptive(self) -> Seeds | None:
        """How `[vary]` takes seeds until intervals are narrow; None where their number is fixed."""
        found = seeds.read(self.vary[seeds.KEY]) if seeds.KEY in self.vary else None
        return found if found is not None and found.until else None

    def with_axes(self, texts: Sequence[str]) -> Self:
        """A scenario with axes added or replaced, "link.path0.rate=5 Mbps,10 Mbps"; of an axis with a name, the labels
        that stay. Raises ScenarioError."""
        if not texts:
            return self
        vary, origins = dict(self.vary), {}
        for text in texts:
            vary, key = varying.extended(vary, text)
            origins[key] = f"--vary {text}"

        written = {name: place for name, place in self._written.items() if name.removeprefix("vary.") not in origins}

        def where(path: Path) -> tuple[str | None, int | None]:
            key = str(path[1]) if path[:1] == ("vary",) and len(path) > 1 else ""
            return (origins.get(key) or written.get(f"vary.{key}") or f"--vary {texts[-1]}", None)

        return self._checked({**self.to_data(), "vary": vary}, where, written)

    def with_(self, settings: Mapping[str, Any]) -> Self:
        """A copy with settings by their paths, {"link.path1.delay": "200 ms"}. Raises ScenarioError."""
        return (
            self._set([Setting(path, value, f"{path}={value}") for path, value in settings.items()])
            if settings
            else self
        )

    def varied(self, axes: Mapping[str, Sequence[Any] | Mapping[str, Any] | int]) -> Self:
        """A copy with axes added or replaced, {"defaults.scheduler": ["default", "blest"], "seeds": 10}, as a table
        `[vary]` has them. Raises ScenarioError."""
        added = {name: list(values) if isinstance(values, tuple | range) else values for name, values in axes.items()}
        written = {place: at for place, at in self._written.items() if place.removeprefix("vary.") not in added}

        def where(path: Path) -> tuple[str | None, int | None]:
            key = str(path[1]) if path[:1] == ("vary",) and len(path) > 1 else ""
            return (f"axis {key!r}" if key in added else written.get(f"vary.{key}"), None)

        return self._checked({**self.to_data(), "vary": {**self.vary, **added}}, where, written)

    def at(self, values: Sequence[Value]) -> Self:
        """The scenario at one point of its sweep, without axes. Raises ScenarioError for values that do not fit."""
        return self._at(values, {}, None)

    def _at(self, values: Sequence[Value], vary: Mapping[str, Any], origin: str | None) -> Self:
        given = [one for value in values for one in setting.made(value.settings, origin)]
        fields = self.model_fields_set if vary else self.model_fields_set - {"vary"}
        base = type(self).model_construct(**{**dict(self), "vary": vary}, _fields_set=fields)
        base._written = self._written
        return base._set(given) if given else base

    def _fixed(self, name: str, label: str, origin: str) -> Self:
        """The scenario at one value of the axis, with the other axes."""
        (axis,) = [axis for axis in self.axes if axis.name == name]
        values = [value for value in axis.values if value.label == label]
        if not values:
            raise varying.no_value(label, axis.labels, origin)
        return self._at(values, {key: given for key, given in self.vary.items() if key != name}, origin)

    def _set(self, settings: Sequence[Setting]) -> Self:
        data, origins = self._applied(settings)
        data["vary"] = self._still_varied(origins)

        def where(path: Path) -> tuple[str | None, int | None]:
            for made, origin in reversed(origins.items()):
                if path[: len(made)] == made or made[: len(path)] == path != ():
                    return origin.origin, None
            return settings[-1].origin, None

        return self._checked(data, where, self._written)

    def _applied(self, settings: Sequence[Setting]) -> tuple[dict[str, Any], dict[Path, Setting]]:
        data = self.to_data()
        if self.topology is not None:
            for host in self.topology.network.hosts:
                if any(made.steps[:2] == ["host", host] for made in settings):
                    data.setdefault("host", {}).setdefault(host, {})
        return setting.apply(data, settings, application_names(self), lambda path: inherited_algorithm(self, path))

    def _still_varied(self, fixed: dict[Path, Setting]) -> dict[str, Any]:
        """`[vary]` without the axes that settings fix; raises ScenarioError where one fixes part of an axis."""
        kept = {}
        for (key, given), axis in zip(self.vary.items(), self.axes, strict=True):
            places = [place for path in axis.paths for place in self._applied([Setting(path, None, None)])[1]]
            if all(place in fixed for place in places) and places:
                continue
            for place in places:
                for other, made in fixed.items():
                    if place[: len(other)] == other or other[: len(place)] == place:
                        raise made.error(f"axis '{axis.name}' varies this; --vary '{axis.name}=..' chooses its values")
            kept[key] = given
        return kept

    def _vary_problems(self) -> Iterator[Problem]:
        for (key, given), axis in zip(self.vary.items(), self.axes, strict=True):
            last = len(axis.values) - 1
            for number, value in enumerate(axis.values):
                if key == seeds.KEY and 0 < number < last:
                    continue  # each is one more than the one before
                try:
                    self.at([value])
                except ScenarioError as error:
                    of_table = (value.label if isinstance(given, dict) else number,)
                    if value.origin:
                        # what is wrong quotes the value, which is a file's
                        paths = [path for path in value.settings if error.message.startswith(path)]
                        named = ", ".join(paths or value.settings)
                        message = f"{value.origin}: axis '{axis.name}': no scenario has what this row sets: {named}"
                        yield Problem(("vary", key), message)
                        break
                    message = f"axis '{axis.name}' at {value.label}: {error.message}"
                    yield Problem(("vary", key, *of_table), message, error.hint)
                    break

    @property
    def unused(self) -> list[str]:
        """A line for each setting of `[defaults]` or of a host that changes nothing. Raises ScenarioError."""
        return unused(self, self._resolved)

    @cached_property
    def _resolved(self) -> Tables:
        """The scenario checked as a whole, with nothing left out. Raises ScenarioError."""
        return resolve(self)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As pydantic's: a copy with the fields of `update` replaced, unchecked."""
        made = super().model_copy(update=update, deep=deep)
        made.__dict__.pop("_resolved", None)
        return made

    def resolved(self) -> Self:
        """The same scenario with nothing left out (interfaces, addresses, transport settings, ports); same plan."""
        return type(self).from_data(_data(self._resolved))

    def to_toml(self, *, resolved: bool = False) -> str:
        """The scenario as TOML that loads back to an equal one; `resolved`: the equal one is `self.resolved()`."""
        from polypath.scenario.writing import to_toml

        return to_toml(_data(self._resolved) if resolved else _ordered(self.to_data() | {"seed": self.seed}))

    def stored(self) -> Stored:
        """The scenario as a result's folder has it, with the files that it names. Raises ScenarioError."""
        from polypath.scenario.writing import to_toml

        try:
            # a file without a name has that of its folder
            data, found = relocated(_ordered(self.to_data() | {"name": self.name, "seed": self.seed}), self.axes)
        except RegistryError as error:
            raise ScenarioError(error.message, hint=error.hint) from error
        return Stored(to_toml(data), found)

    def plan(self, seed: int | None = None) -> Plan:
        """What an engine runs; `seed` replaces the scenario's own. Raises ScenarioError, of a sweep too."""
        if self.vary:
            names = ", ".join(axis.name for axis in self.axes)
            raise ScenarioError(f"the scenario varies {names}: each point of the sweep is a run of its own")
        try:
            given = self.seed if seed is None else _seed(seed)
            own = given == self.seed
            return planning.build(self._resolved if own else resolve(self.model_copy(update={"seed": given})))
        except RegistryError as error:
            raise ScenarioError(error.message, hint=error.hint) from error

    def actions(self, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The changes that an event means in this scenario, as a plan has them. Raises ScenarioError."""
        tables = self.with_more("event", [event])._resolved
        return planning.actions(tables, tables.event[-1])


def _holds(file_and_class: str, source: str) -> bool:
    try:
        return read_text(FilePath(file_and_class.rpartition(":")[0] or file_and_class), "Python file") == source
    except ScenarioError:
        return False


def _seed(given: object) -> int:
    if not isinstance(given, int) or isinstance(given, bool):
        raise ScenarioError(f"seed: expected a whole number, not {given!r}")
    if not 0 <= given < SEEDS_END:
        wanted = "at least 0" if given < 0 else f"less than {SEEDS_END}"
        raise ScenarioError(f"seed: must be {wanted}, not {given}")
    return given


def _data(tables: Tables) -> dict[str, Any]:
    """Every value that is not None, and no table that says nothing."""
    data = tables.model_dump(mode="json", exclude_none=True)
    assert isinstance(data, dict)
    pruned: dict[str, Any] = _pruned(data)
    for group in ("host", "router", "switch"):
        pruned[group] = {name: pruned.get(group, {}).get(name, {}) for name in data[group]}
    return _ordered(pruned | {"vary": data["vary"], "seed": tables.seed})


def _ordered(data: dict[str, Any]) -> dict[str, Any]:
    """What a scenario says, in the order in which a person would."""
    made = dict(data)
    made["link"] = {name: _first(link, "ends") for name, link in data.get("link", {}).items()}
    if data.get("topology"):
        made["topology"] = _first(data["topology"], "kind")
    made["application"] = [_first(one, "name", "kind") for one in data.get("application", [])]
    return {key: made[key] for key in Tables.model_fields if key == "seed" or made.get(key)}


def _first(table: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The table with some keys before the others."""
    return {key: table[key] for key in keys if key in table} | table


def _pruned(node: Any) -> Any:
    if isinstance(node, list):
        return [_pruned(item) for item in node]
    if isinstance(node, dict):
        name = node.get("kind")
        if isinstance(name, str) and script.is_script(name):
            return node  # its class knows what an empty argument says
        inner = {key: _pruned(value) for key, value in node.items()}
        return {key: value for key, value in inner.items() if value not in ({}, "")}
    return node


def _located(found: list[Problem], where: Where) -> ScenarioError:
    errors = []
    for problem in found:
        file, line = where(problem.path)
        errors.append(ScenarioError(problem.message, file, line, problem.hint))
    return ScenarioError.collect(errors)
