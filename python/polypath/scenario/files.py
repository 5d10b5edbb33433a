"""The files that a scenario names, and which of its texts are file names."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from polypath.scenario import compiled, rows, script
from polypath.scenario.positions import Path as Place
from polypath.scenario.stack import ALGORITHMS

_APP: Final = "app"
#: Keys that name files: of data, a controller's application, and what programs are given.
_KEYS: Final = frozenset({"trace", "csv", "har", _APP, "files"})
#: Those of them whose files a run executes, or gives to a program.
_EXECUTED: Final = frozenset({_APP, "files"})
#: Keys below which no text names a file that Polypath reads.
_VERBATIM: Final = frozenset({"description", "command", "environment", "objects", "rows"})
#: Tables of algorithms: of one in a file, the rest are the arguments of its class.
_ALGORITHMS: Final = frozenset({*ALGORITHMS, "routing"})
#: Tables whose keys are names that a person chose, or paths of settings.
_BY_NAME: Final = frozenset({"host", "router", "switch", "link", "medium", "interface", "vary"})
_AXES: Final = ("vary",)


class Named(NamedTuple):
    """A text that names a file, and where it stands; of an algorithm in Python it names the class, too."""

    place: Place
    text: str
    algorithm: bool

    @property
    def file(self) -> Path:
        return Path((self.algorithm and self.text.rpartition(":")[0]) or self.text)


def named(data: Any) -> list[Named]:
    """What names files in a scenario's data. A setting by its path names them as its last step does."""
    return list(_named(data, (), "", False))


def _named(data: Any, place: Place, key: str, of_file: bool) -> Iterator[Named]:
    if place == _AXES and isinstance(data, dict):
        for name, axis in data.items():
            yield from _of_axis(axis, (*place, name), name)
    elif isinstance(data, dict):
        plain = "gaps_ms" not in data
        for name, value in data.items():
            step = "" if key in _BY_NAME and "." not in name else name.rpartition(".")[2]
            if argument := _argument(key, name):
                yield from _of_argument(value, (*place, name), argument[1:])
            elif step not in _VERBATIM:
                yield from _named(value, (*place, name), step, plain and step in _KEYS)
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from _named(value, (*place, number), key if key in _ALGORITHMS else "", of_file)
    elif isinstance(data, str) and (of_file or script.is_script(data) or compiled.is_at(place, data)):
        yield Named(place, data, not of_file)


def _of_axis(axis: Any, place: Place, name: str) -> Iterator[Named]:
    """An axis is a list of values for its path, a table of a file, or a table of settings for each label."""
    step = name.rpartition(".")[2] if "." in name else ""
    if isinstance(axis, list):
        if argument := _argument(_AXES[0], name):
            yield from _of_argument(axis, place, argument[1:])
        elif step not in _VERBATIM:
            yield from _named(axis, place, step, step in _KEYS)
    elif rows.is_of_rows(axis):
        yield from _named(axis, place, "", False)
    elif isinstance(axis, dict):
        for label, settings in axis.items():
            yield from _named(settings, (*place, label), "", False)


def _of_argument(value: Any, place: Place, within: Sequence[str]) -> Iterator[Named]:
    """The data files that an argument of a class names, as `{ file = "policy.json" }`; `within`: the steps of a
    setting's path that lead into the argument."""
    if isinstance(value, str):
        if within[-1:] == [script.DATA]:
            yield Named(place, value, False)
    elif script.is_data(value):
        yield Named((*place, script.DATA), value[script.DATA], False)
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _of_argument(each, (*place, name), ())
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _of_argument(each, (*place, number), within)


def _argument(key: str, name: str) -> Sequence[str]:
    """The steps from an algorithm's argument on, of a name below a key; none where it names no argument. In a setting's
    path, the algorithm's table may be within."""
    *steps, _ = within = [key, *name.split(".")]
    tables = [number for number, step in enumerate(steps) if step in _ALGORITHMS]
    chosen = (number for number in tables if number == 0 or steps[number - 1] not in _BY_NAME)
    return next((within[number + 1 :] for number in chosen if within[number + 1 :] != ["kind"]), ())


def anchored(data: Any, folder: Path) -> Any:
    """The data of a scenario file, in which the names of files are relative to its folder, with full names."""
    made = copy.deepcopy(data)
    for each in named(data):
        *steps, last = each.place
        inner = made
        for step in steps:
            inner = inner[step]
        inner[last] = str(folder.absolute() / each.text)
    return made


def sources(data: Any) -> list[Path]:
    """The files that a scenario's data names, and the modules that a controller's application imports from beside
    itself. Raises RegistryError where these cannot be read."""
    return list(dict.fromkeys(path for each in named(data) for path in behind(each)))


def executed(data: Any) -> list[Path]:
    """Those of `sources` that a run executes, or gives to a program that it starts."""
    run = (each for each in named(data) if each.algorithm or _key(each) in _EXECUTED)
    return list(dict.fromkeys(path for each in run for path in behind(each)))


def outside(paths: Iterable[Path], folder: Path) -> list[Path]:
    """Those that are not in a folder, however they are named: where links and `..` lead decides."""
    real = folder.resolve()
    return [path for path in paths if not path.resolve().is_relative_to(real)]


def behind(each: Named) -> Iterable[Path]:
    """The file that it names; of a controller's application, the modules beside it, too. Raises RegistryError."""
    return script.sources(each.text) if is_app(each) else [each.file]


def is_app(each: Named) -> bool:
    """Whether it names a controller's application."""
    return _key(each) == _APP and not each.algorithm


def _key(each: Named) -> str:
    """The key under which it stands; in a setting's path, the last one."""
    return next(step for step in reversed(each.place) if isinstance(step, str)).rpartition(".")[2]
