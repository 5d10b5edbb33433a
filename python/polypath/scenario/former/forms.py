"""The old forms that are still read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from polypath.scenario.former.places import ANY, Pattern, Setting, below, fits, settings
from polypath.scenario.positions import Path
from polypath.scenario.validate import show


@dataclass(frozen=True)
class Rename:
    """A key of a document that is to be called otherwise; `said`: why, in words that show the new form."""

    place: Path
    key: str
    said: str


@dataclass(frozen=True)
class Renamed:
    """A form: a key of some tables of a scenario has another name now. Only a text under the old name is the old form,
    and only where the new name is not there."""

    name: str
    tables: tuple[Pattern, ...]
    old: str
    new: str
    example: tuple[str, str]
    """The old and the new form, as a file has them."""

    def of(self, data: Any) -> Iterator[Rename]:
        """Where a document has the old form."""
        for pattern in self.tables:
            for place, table in below(data, (), pattern):
                yield from self._in(place, table, show(place))
        for setting in settings(data):
            yield from self.of_setting(setting)

    def of_setting(self, setting: Setting) -> Iterable[Rename]:
        """Where a path of a scenario, or what it sets, has the old form, each place once."""
        return dict.fromkeys(self._of_setting(setting))

    def _of_setting(self, setting: Setting) -> Iterator[Rename]:
        changed = [self._path(steps) for steps in setting.steps]
        if changed != setting.steps:
            path = ", ".join(".".join(steps) for steps in changed)
            yield Rename(setting.place, path, f'write "{path}" in place of "{setting.path}"')
        for steps in setting.steps:
            for pattern in self.tables:
                if fits(pattern, steps):
                    for at, value in setting.values:
                        for place, table in below(value, at, pattern[len(steps) :]):
                            yield from self._in(place, table, setting.path)

    def _path(self, steps: list[str]) -> list[str]:
        *table, last = steps
        if last == self.old and any(len(table) == len(each) and fits(each, table) for each in self.tables):
            return [*table, self.new]
        return steps

    def _in(self, place: Path, table: dict[str, Any], where: str) -> Iterator[Rename]:
        value = table.get(self.old)
        if isinstance(value, str) and self.new not in table:
            said = f'{where}: write {self.new} = "{value}" in place of {self.old}'
            yield Rename((*place, self.old), self.new, said)


_STACKS: Final[tuple[Pattern, ...]] = (
    ("defaults",),
    ("host", ANY),
    *(("application", ANY, stack) for stack in ("stack", "client_stack", "server_stack")),
)
"""The tables with settings of a transport."""

FORMS: Final[tuple[Renamed, ...]] = (
    Renamed(
        name="kind",
        tables=(
            *((*stack, key) for stack in _STACKS for key in ("scheduler", "path_manager", "congestion")),
            ("link", ANY, "middlebox"),
            ("controller", "routing"),
            ("bridging", "protocol"),
        ),
        old="name",
        new="kind",
        example=('scheduler = { name = "kbest", k = 3 }', 'scheduler = { kind = "kbest", k = 3 }'),
    ),
)
"""Each is applied to what those before it have made."""
