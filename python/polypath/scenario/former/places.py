"""Where tables of a scenario stand in a document: in the file itself, in `[vary]`, in labs and rubrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from polypath.scenario import drawn, rows, seeds
from polypath.scenario.positions import Path

Pattern = tuple[str, ...]
"""Steps to a table of a scenario; "*" is any name or number."""
ANY: Final = "*"


class Setting(NamedTuple):
    """A path of a scenario that is a key, as axes and claims have it, and what it sets."""

    place: Path
    """Where the key stands in the document."""
    path: str
    values: Sequence[tuple[Path, Any]]

    @property
    def steps(self) -> list[list[str]]:
        """The steps of each path of the key; an axis may have several."""
        return [[step.strip() for step in path.split(".")] for path in self.path.split(",")]


class Text(NamedTuple):
    """A setting or an axis as a command line gives it, in a text of the document."""

    place: Path
    text: str
    axis: bool


def below(value: Any, place: Path, pattern: Pattern) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The tables at a pattern below a place; of a list there, each."""
    if not pattern:
        if isinstance(value, dict):
            yield place, value
        elif isinstance(value, list):
            for number, each in enumerate(value):
                yield from below(each, (*place, number), pattern)
        return
    step, *rest = pattern
    if isinstance(value, dict):
        for key in value if step == ANY else (step,):
            if key in value:
                yield from below(value[key], (*place, key), tuple(rest))
    elif isinstance(value, list) and step == ANY:
        for number, each in enumerate(value):
            yield from below(each, (*place, number), tuple(rest))


def fits(pattern: Pattern, steps: Sequence[str]) -> bool:
    """Whether these steps are the first of a pattern."""
    return len(steps) <= len(pattern) and all(
        wanted in (ANY, step) for wanted, step in zip(pattern, steps, strict=False)
    )


def settings(data: Any) -> Iterator[Setting]:
    """What `[vary]` sets by paths, and the paths by which claims of a lab and points of a rubric pick runs."""
    vary = data.get("vary")
    for name, axis in vary.items() if isinstance(vary, dict) else ():
        place: Path = ("vary", name)
        if name == seeds.KEY:
            continue
        if isinstance(axis, list):
            yield Setting(place, name, [((*place, number), each) for number, each in enumerate(axis)])
        elif rows.is_of_rows(axis) or drawn.is_drawn(axis):
            yield from _set(axis.get("set"), (*place, "set"))
        elif isinstance(axis, dict):
            for label, of_label in axis.items():
                yield from _set(of_label, (*place, label))
    for place, table in (
        *below(data, (), ("expect", ANY)),
        *below(data, (), ("expect", ANY, "relative_to")),
        *below(data, (), ("points", ANY)),
    ):
        at = table.get("at")
        for path in at if isinstance(at, dict) else ():
            yield Setting((*place, "at", path), path, ())


def _set(given: Any, place: Path) -> Iterator[Setting]:
    """Settings of one value. A value that is drawn stands in the lists of its distribution, too."""
    for path, value in given.items() if isinstance(given, dict) else ():
        here = (*place, path)
        within = value.items() if isinstance(value, dict) else ()
        lists = [((*here, key), each) for key, each in within if isinstance(each, list)]
        yield Setting(here, path, [(here, value), *lists])


def texts(data: Any) -> Iterator[Text]:
    """Settings and axes of a lab's runs."""
    for key in ("set", "vary"):
        for place, run in below(data, (), ("run", ANY)):
            given = run.get(key)
            for number, text in enumerate(given if isinstance(given, list) else ()):
                if isinstance(text, str):
                    yield Text((*place, key, number), text, key == "vary")
