"""Random scenarios under metamorphic relations: a change without effect must change no result.

usage: python -m assurance.metamorphic [--count N] [--first K] [--jobs J] [--kept FOLDER] [--out PAGE]
       python -m assurance.metamorphic --again FILE

It continues where it stopped if the program is the same. A scenario that fails is kept in the folder, reduced, as
RELATION-NUMBER.toml; --again tries such a file. The exit code is 1 if a relation did not hold.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from assurance import kept

import polypath
from polypath import _core

from . import drawn
from .families import ALL
from .trial import Row, fault_of_text, reduced, tried

ROOT = Path(__file__).resolve().parents[2]
TEXT = Path(__file__).parent / "page.md"
KEPT = ROOT / "target" / "metamorphic"
_FIRST_LINE = "# relation: "


def program() -> str:
    """A name for what rows are of: the native module, the package and these relations."""
    folders = (Path(polypath.__file__).parent, Path(__file__).parent)
    files = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    return kept.digest([Path(_core.__file__), *files])


def rows(numbers: Sequence[int], jobs: int) -> Iterator[Row]:
    """The rows of these scenarios."""
    if jobs == 1:
        yield from map(tried, numbers)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        yield from pool.map(tried, numbers, chunksize=20)


def keep(row: Row, folder: Path) -> None:
    """Keeps each failure of a scenario, reduced."""
    for name, message in row.broken.items():
        file = folder / f"{name}-{row.number}.toml"
        text = reduced(ALL[name], drawn.scenario(row.number))
        now = fault_of_text(ALL[name], text) or message
        told = " ".join(now.split())
        file.write_text(f"{_FIRST_LINE}{name}\n# {told}\n\n{text}", encoding="utf-8")
        print(f"{row.number}: {name}: {message}\n  {file}", flush=True)


def table(found: Iterable[Row]) -> list[str]:
    """A line for each relation: how often it was applied, and how often it did not hold."""
    applied, broken = Counter[str](), Counter[str]()
    for row in found:
        applied.update(row.applied)
        broken.update(row.broken.keys())
    lines = ["| relation | statement | reason | applied | broken |", "|---|---|---|--:|--:|"]
    for each in ALL.values():
        count, failed = applied[each.name], broken[each.name] or "none"
        name = f"{each.family}: `{each.name}`"
        lines.append(f"| {name} | {each.statement} | {each.reason} | {count:,} | {failed} |")
    return lines


def page(found: Sequence[Row]) -> str:
    places = {
        "{drawn}": f"{len(found):,}",
        "{refused}": f"{sum(row.refused is not None for row in found):,}",
        "{relations}": f"{len(ALL)}",
        "{applied}": f"{sum(len(row.applied) for row in found):,}",
        "{table}": "\n".join(table(found)),
    }
    text = TEXT.read_text(encoding="utf-8")
    for place, value in places.items():
        text = text.replace(place, value)
    return text


def again(file: Path) -> int:
    text = file.read_text(encoding="utf-8")
    name = text.splitlines()[0].removeprefix(_FIRST_LINE)
    found = fault_of_text(ALL[name], text)
    print(f"{name}: {found or 'holds'}")
    return int(found is not None)


def main() -> int:
    reader = argparse.ArgumentParser(prog="python -m assurance.metamorphic", description=__doc__)
    reader.add_argument("--count", type=int, default=20_000, help="scenarios to draw")
    reader.add_argument("--first", type=int, default=0, help="number of the first one")
    reader.add_argument("--jobs", type=int, default=1, help="processes")
    reader.add_argument("--kept", type=Path, help="folder of rows that are there; left out: the program's own")
    reader.add_argument("--out", type=Path, help="the page to write")
    reader.add_argument("--again", type=Path, metavar="FILE", help="a failure that was kept")
    given = reader.parse_args()
    if given.again:
        return again(given.again)
    folder = given.kept or KEPT / program()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "rows.jsonl"
    found = kept.rows(file, Row.load)
    there = {row.number for row in found}
    numbers = [number for number in range(given.first, given.first + given.count) if number not in there]
    with file.open("a", encoding="utf-8") as lines:
        for row in rows(numbers, given.jobs):
            keep(row, folder)
            found.append(row)
            print(row.json(), file=lines, flush=True)
    if given.out:
        given.out.write_text(page(found), encoding="utf-8")
    return int(any(row.broken for row in found))


if __name__ == "__main__":
    sys.exit(main())
