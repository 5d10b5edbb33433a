"""The algorithms of the engine, each with its parameters. Only this module asks the native module for them.

Everything that names an algorithm (validation, lists on the command line, the JSON Schema, documentation) reads it
from here.
"""

from __future__ import annotations

import importlib
import json
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, get_args

from polypath import units
from polypath.errors import PolypathError
from polypath.units import nearest

Kind = Literal[
    "scheduler",
    "congestion",
    "path-manager",
    "queue",
    "loss",
    "wifi",
    "middlebox",
    "controller",
    "spanning-tree",
    "application",
    "topology",
    "profile",
]
KINDS: tuple[Kind, ...] = get_args(Kind)

TITLES: dict[Kind, str] = {
    "scheduler": "scheduler",
    "congestion": "congestion control",
    "path-manager": "path manager",
    "queue": "queue discipline",
    "loss": "loss model",
    "wifi": "Wi-Fi standard",
    "middlebox": "middlebox",
    "controller": "controller's routing",
    "spanning-tree": "spanning tree protocol",
    "application": "application",
    "topology": "topology",
    "profile": "profile",
}


class RegistryError(PolypathError, ValueError):
    """An algorithm, parameter or value that does not exist; `hint` is the nearest that does, `key` the parameter."""

    def __init__(self, message: str, hint: str | None = None, key: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.key = key


@dataclass(frozen=True)
class Parameter:
    """A parameter of an algorithm."""

    name: str
    kind: str
    """`integer`, `integers`, `number`, `boolean`, `text` or `texts`; of a model of the network or an application also
    `packets`, `share`, `rate`, `time`, `period`, `size` or `depth`, which a scenario writes with a unit."""
    default: Any
    minimum: float | None
    maximum: float | None
    choices: tuple[Any, ...] | None
    description: str
    field: str = ""
    """Its name in a Plan, where that has a unit."""
    real: bool = False
    """A Plan has it as a number with a fraction, be that zero."""
    required: bool = False
    exclusive: bool = False
    """The minimum itself is not allowed."""
    rest: bool = False
    """Left out, it is the time to the end of the run."""
    seldom: bool = False
    """A Plan has it only where it is not the default."""
    only: str = ""
    """Of what alone it is a setting (`tcp`, `quic`, `mpquic`; the first two with what is multipath); empty: of all."""

    @property
    def has_unit(self) -> bool:
        return self.kind in _WITH_UNIT

    @property
    def measure(self) -> str:
        """Its kind of value, for people; the text leaves out that it may be empty."""
        return {"period": "time", "depth": "size"}.get(self.kind, self.kind)

    def written(self, value: Any) -> Any:
        """The value as a scenario has it: a text where that has a unit."""
        return _WITH_UNIT[self.kind](value) if self.has_unit and value is not None else value

    def check(self, value: Any, owner: str) -> None:
        """Raises RegistryError when `value` is not one that the parameter takes."""
        article, fits = _TESTS[self.kind]
        where = f"parameter '{self.name}' of {owner}"
        if not fits(value):
            raise RegistryError(f"{where} takes {article}, not {_show(value)}", key=self.name)
        for number in value if isinstance(value, list) else [value]:
            if self.minimum is not None and number < self.minimum:
                raise RegistryError(f"{where} is at least {_number(self.minimum)}, not {_show(number)}", key=self.name)
            if self.maximum is not None and number > self.maximum:
                raise RegistryError(f"{where} is at most {_number(self.maximum)}, not {_show(number)}", key=self.name)
        if self.choices and value not in self.choices:
            hint = nearest(str(value), [str(choice) for choice in self.choices])
            known = ", ".join(str(choice) for choice in self.choices)
            raise RegistryError(f"{where} is one of {known}, not {_show(value)}", hint, self.name)


@dataclass(frozen=True)
class Traffic:
    """What an application sends, as results need to know it."""

    direction: Literal["one-way", "fetched", "both-ways"] = "both-ways"
    """From the client, or back with `reverse`; from the server, for what the client asks; or both."""
    delays: Literal["none", "requests", "messages", "parts", "echoes"] = "none"
    """What the rows of table `requests` are: none, requests and their answers, messages until they arrive, requests for
    parts of what has figures of its own (a video, a page), or echo requests."""


@dataclass(frozen=True)
class Entry:
    """An algorithm."""

    kind: Kind
    name: str
    description: str
    source: str
    """Paper, RFC section or kernel file."""
    parameters: tuple[Parameter, ...]
    not_over_quic: str | None = None
    """Why connections of QUIC cannot have it."""
    not_on_noq: str | None = None
    """Why a host whose stack is noq cannot have it."""
    transports: tuple[str, ...] = ()
    """What an application runs over; the first unless a scenario says otherwise."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What a profile sets, as a Plan has it."""
    traffic: Traffic = Traffic()
    """Of an application."""

    @property
    def algorithms(self) -> Mapping[str, str]:
        """The names of the algorithms that a profile sets."""
        return {key: each["name"] for key, each in self.settings.items() if isinstance(each, dict) and "name" in each}


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_integers(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(map(_is_integer, value))


_WITH_UNIT: Mapping[str, Callable[[Any], str]] = {
    "packets": lambda value: units.PACKETS.format(int(value)),
    "share": units.format_share,
    "rate": units.RATE.format,
    "time": units.TIME.format,
    "period": units.TIME.format,
    "size": units.SIZE.format,
    "depth": units.SIZE.format,
}

_TESTS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "integer": ("a whole number", _is_integer),
    "integers": ("a list of whole numbers", _is_integers),
    "number": ("a number", lambda value: _is_integer(value) or (isinstance(value, float) and value == value)),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "text": ("a text", lambda value: isinstance(value, str)),
    "texts": ("a list of texts", lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value)),
}


def _show(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def read(kind: Kind) -> str:
    """The native module's JSON list of a kind's algorithms; raises RegistryError when the module is not built."""
    return str(_native().registry(kind))


def _native() -> types.ModuleType:
    try:
        return importlib.import_module("polypath._core")
    except PolypathError:
        raise
    except ImportError as error:
        raise RegistryError("the native module polypath._core is not built; run `make build`") from error


@lru_cache(maxsize=32)
def wifi_rates(standard: str, width_mhz: int, streams: int, short_guard: bool) -> list[int | None] | None:
    """The rate in bit/s of each MCS of a Wi-Fi standard, None where there is none; None for another standard."""
    found: list[int | None] | None = _native().wifi_rates(standard, width_mhz, streams, short_guard)
    return found


def fault(kind: Kind, name: str, given: Mapping[str, Any]) -> str | None:
    """What is wrong with parameters together, each of which an algorithm takes; None where they fit."""
    found: str | None = _native().fault(kind, name, json.dumps(given))
    return found


_PROVIDED: dict[Kind, Callable[[], dict[str, Entry]]] = {}


def provide(kind: Kind, made: Callable[[], dict[str, Entry]]) -> None:
    """Says what lists the entries of a kind that the native module does not know."""
    _PROVIDED[kind] = made


@lru_cache(maxsize=len(KINDS))
def entries(kind: Kind) -> dict[str, Entry]:
    """The algorithms of a kind by name, in the engine's order."""
    if kind in _PROVIDED:
        return _PROVIDED[kind]()
    found: dict[str, Entry] = {}
    for item in json.loads(read(kind)):
        parameters = tuple(
            Parameter(
                name=parameter["name"],
                kind=parameter.get("kind", "text"),
                default=parameter.get("default"),
                minimum=parameter.get("minimum"),
                maximum=parameter.get("maximum"),
                choices=tuple(parameter["choices"]) if parameter.get("choices") else None,
                description=parameter.get("description", ""),
                field=parameter.get("field", parameter["name"]),
                real=parameter.get("real", False),
                required="default" not in parameter,
                exclusive=parameter.get("exclusive", False),
                rest=parameter.get("rest", False),
                seldom=parameter.get("seldom", False),
                only=parameter.get("only", ""),
            )
            for parameter in item.get("parameters", [])
        )
        found[item["name"]] = Entry(
            kind,
            item["name"],
            item["description"],
            item.get("source", ""),
            parameters,
            item.get("not_over_quic"),
            item.get("not_on_noq"),
            tuple(item.get("transports", ())),
            item.get("settings", {}),
            Traffic(**item.get("traffic", {})),
        )
    return found


def traffic(application: str) -> Traffic:
    """What an application of that kind sends; of one that a capture holds nothing is known."""
    entry = entries("application").get(application)
    return Traffic() if entry is None else entry.traffic


def find(kind: Kind, name: str) -> Entry:
    """The algorithm of that name; raises RegistryError with the nearest name otherwise."""
    known = entries(kind)
    if name not in known:
        hint = nearest(name, known)
        message = f"unknown {TITLES[kind]} '{name}'"
        raise RegistryError(message if hint else f"{message}; there is {', '.join(known)}", hint)
    return known[name]


def resolve(kind: Kind, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The algorithm's parameters with defaults filled in; raises RegistryError for what it does not take."""
    entry = find(kind, name)
    owner = f"{TITLES[kind]} '{name}'"
    known = {parameter.name: parameter for parameter in entry.parameters}
    for key, value in given.items():
        if key not in known:
            hint = nearest(key, known)
            message = f"{owner} has no parameter '{key}'"
            if hint is None and known:
                message += f"; it has {', '.join(known)}"
            raise RegistryError(message, hint, key)
        known[key].check(value, owner)
    for parameter in entry.parameters:
        if parameter.kind == "texts" and parameter.name in given:
            problem = fault(kind, name, {parameter.name: given[parameter.name]})
            if problem is not None:
                raise RegistryError(problem, key=parameter.name)
    filled = {name: parameter.default for name, parameter in known.items() if parameter.default is not None}
    return {**filled, **given}
