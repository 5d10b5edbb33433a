"""Names of runs, as short as possible while distinct."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

#: A point of a sweep: the sweep's name, and in brackets where it lies on each axis.
_POINT = re.compile(r"(?P<sweep>.*) \((?P<places>[^=]+=.*)\)", re.DOTALL)


def told_apart(names: Sequence[str]) -> list[str]:
    """The names without their common parts: the lab, the sweep, and axes on which all have the same place.

    A single name, and equal names, are unchanged.
    """
    found = _places(names) or _runs(names)
    return found if found and len(set(found)) == len(set(names)) > 1 else list(names)


def of_folders(folders: Sequence[Path]) -> list[str]:
    """The part of each path that tells it from the others, or all from there on where no single one does."""
    parts = [folder.resolve().parts for folder in folders]
    ends = ([own[-depth:] for own in parts] for depth in range(1, max(map(len, parts), default=0) + 1))
    apart = next((own for own in ends if len(set(own)) == len(set(parts))), [])
    names = [own[0] for own in apart]
    return names if len(set(names)) == len(names) else ["/".join(own) for own in apart]


def of_place(values: Mapping[str, str]) -> str:
    """Where a point of a sweep lies on each axis; empty for the one point of a scenario that varies nothing."""
    return ", ".join(f"{axis}={label}" for axis, label in values.items())


def _places(names: Sequence[str]) -> list[str]:
    """The differences of points of one sweep; if only one axis differs, the place without the axis's name."""
    points = [_POINT.fullmatch(name) for name in names]
    known = [point for point in points if point is not None]
    if len(known) < len(names) or len({point["sweep"] for point in known}) != 1:
        return []
    parts = [point["places"].split(", ") for point in known]
    if len({len(own) for own in parts}) != 1:
        return []
    varied = [place for place, each in enumerate(zip(*parts, strict=True)) if len(set(each)) > 1]
    left = [[own[place].partition("=") for place in varied] for own in parts]
    axes = {tuple(axis for axis, _, _ in own) for own in left}
    if len(axes) != 1:  # a label has a comma in it
        return [", ".join("".join(part) for part in own) for own in left]
    if len(varied) == 1:
        return [label for ((_, _, label),) in left]
    short = _last(axes.pop())
    return [", ".join(f"{axis}={label}" for axis, (_, _, label) in zip(short, own, strict=True)) for own in left]


def _last(axes: Sequence[str]) -> Sequence[str]:
    """What a setting is called in its table, where that tells the axes apart."""
    found = [axis.rpartition(".")[2] for axis in axes]
    return found if len(set(found)) == len(axes) else axes


def _runs(names: Sequence[str]) -> list[str]:
    """The names of runs, for runs of one lab."""
    labs = {name.partition("/")[0] for name in names}
    return [name.partition("/")[2] or name for name in names] if len(labs) == 1 else []
