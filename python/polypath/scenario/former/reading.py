"""Reading old forms: a document's data in the new form, and the warning that shows it."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from polypath.scenario.former.forms import FORMS, Rename
from polypath.scenario.former.places import Setting
from polypath.scenario.positions import Path


def renewed(data: dict[str, Any]) -> tuple[dict[str, Any], list[Rename]]:
    """The data of a document in the new form, and what was old; the data itself where nothing was."""
    found: list[Rename] = []
    for form in FORMS:
        if old := list(form.of(data)):
            data = _renamed(copy.deepcopy(data), old)
            found += old
    return data, found


def setting(path: str, value: Any) -> tuple[str, Any, list[Rename]]:
    """A setting in the new form, and what was old."""
    found: list[Rename] = []
    for form in FORMS:
        old = list(form.of_setting(Setting((path,), path, [((path,), value)])))
        if old:
            ((path, value),) = _renamed({path: copy.deepcopy(value)}, old).items()
            found += old
    return path, value, found


def tell(found: Sequence[Rename], where: Callable[[Path], tuple[str | None, int | None]]) -> None:
    """Warns of old forms, once for a file or a setting: of the first, with the number of the others."""
    if found:
        warn(*where(found[0].place), found[0].said, len(found) - 1)


def warn(file: str | None, line: int | None, said: str, others: int) -> None:
    """Warns of an old form at a line of a file, which has others besides."""
    at = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
    more = f" ({others} more)" if others else ""
    how = f"; `polypath upgrade {file}` shows the new form" if line is not None else ""
    warnings.warn(f"{at}old form: {said}{more}{how}", FutureWarning, stacklevel=3)


def _renamed(data: dict[str, Any], renames: Iterable[Rename]) -> dict[str, Any]:
    """The data with keys renamed in place, what is within others first; their order stays."""
    for each in sorted(renames, key=lambda each: -len(each.place)):
        *steps, old = each.place
        table: Any = data
        for step in steps:
            table = table[step]
        made = {each.key if key == old else key: value for key, value in table.items()}
        table.clear()
        table.update(made)
    return data
