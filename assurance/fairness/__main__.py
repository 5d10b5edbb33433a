"""Every congestion control beside every other at one bottleneck, as a page and a heat map.

usage: python -m assurance.fairness [--count N] [--jobs J] [--kept FOLDER] [--out PAGE] [--figure FILE]

It continues where it stopped if the program is the same. The exit code is 1 if two flows of one controller share
unevenly without a cause in causes.toml.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean

from assurance import kept

from polypath import _core

from .drawing import Shares, draw
from .pairs import CONTROLS, QUEUES, ROUND_TRIPS, SEEDS, Case, Row, cases, tried

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).parent
TEXT = FOLDER / "page.md"
CAUSES = FOLDER / "causes.toml"
WHY = FOLDER / "why.md"
KEPT = ROOT / "target" / "fairness"
#: Jain's index of two flows of one controller, on average, from which on they share evenly: 62 to 38.
EVEN = 0.945


def program() -> str:
    """A name for what rows are of: the native module, what is run and how."""
    return kept.digest([Path(_core.__file__), FOLDER / "pairs.py", FOLDER / "two.toml"])


def rows(missing: Sequence[Case], jobs: int) -> Iterator[Row]:
    """The rows of these."""
    if jobs == 1:
        yield from map(tried, missing)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        yield from pool.map(tried, missing, chunksize=10)


def jain(row: Row) -> float:
    """1 where both have the same, 0.5 where one has all."""
    return (row.one_mbps + row.other_mbps) ** 2 / 2 / (row.one_mbps**2 + row.other_mbps**2)


def shares(found: Iterable[Row]) -> Shares:
    """Mean share of a controller beside another, by round trip and queue."""
    values = defaultdict[tuple[int, float, str, str], list[float]](list)
    for row in found:
        values[row.round_trip, row.queue, row.one, row.other].append(row.share)
        if row.one != row.other:
            values[row.round_trip, row.queue, row.other, row.one].append(1 - row.share)
    return {place: fmean(each) for place, each in values.items()}


def beside(found: Sequence[Row]) -> list[str]:
    """The share of each controller beside those that the Internet has, over queues and round trips."""
    lines = ["| share beside | " + " | ".join(f"{queue:g}" for _ in ROUND_TRIPS for queue in QUEUES) + " |"]
    lines.append("|---|" + "--:|" * (len(ROUND_TRIPS) * len(QUEUES)))
    there = shares(found)
    for other in ("cubic", "reno", "bbr3"):
        for own in CONTROLS:
            if own == other:
                continue
            fields = [there.get((trip, queue, own, other)) for trip in ROUND_TRIPS for queue in QUEUES]
            told = " | ".join("" if field is None else f"{field:.0%}" for field in fields)
            lines.append(f"| `{own}` beside `{other}` | {told} |")
    return lines


def alike(found: Sequence[Row]) -> dict[tuple[str, int, float], float]:
    """Jain's index of two flows of one controller, averaged over seeds."""
    values = defaultdict[tuple[str, int, float], list[float]](list)
    for row in found:
        if row.one == row.other:
            values[row.one, row.round_trip, row.queue].append(jain(row))
    return {place: fmean(each) for place, each in values.items()}


def same(found: Sequence[Row]) -> list[str]:
    """Two flows of one controller."""
    there = alike(found)
    lines = ["| two of | " + " | ".join(f"{queue:g}" for _ in ROUND_TRIPS for queue in QUEUES) + " | cause |"]
    lines.append("|---|" + "--:|" * (len(ROUND_TRIPS) * len(QUEUES)) + "---|")
    for own in CONTROLS:
        fields = [there.get((own, trip, queue)) for trip in ROUND_TRIPS for queue in QUEUES]
        uneven = any(field is not None and field < EVEN for field in fields)
        told = " | ".join("" if field is None else f"{field:.2f}" for field in fields)
        cause = causes().get(own, "**not known**") if uneven else ""
        lines.append(f"| `{own}` | {told} | {cause} |")
    return lines


def used(found: Sequence[Row]) -> str:
    """The least of what both flows had together."""
    return f"{min(row.one_mbps + row.other_mbps for row in found):.1f}"


def causes() -> dict[str, str]:
    """Why two flows of a controller share unevenly."""
    found: dict[str, str] = tomllib.loads(CAUSES.read_text(encoding="utf-8"))
    return found


def page(found: Sequence[Row]) -> str:
    seeds = len({row.seed for row in found})
    places = {
        "{runs}": f"{len(found):,}",
        "{seeds}": str(seeds),
        "{least}": used(found),
        "{why}": WHY.read_text(encoding="utf-8").strip(),
        "{beside}": "\n".join(beside(found)),
        "{same}": "\n".join(same(found)),
    }
    text = TEXT.read_text(encoding="utf-8")
    for place, value in places.items():
        text = text.replace(place, value)
    return text


def main() -> int:
    reader = argparse.ArgumentParser(prog="python -m assurance.fairness", description=__doc__)
    reader.add_argument("--count", type=int, default=len(SEEDS), help="seeds of each pair")
    reader.add_argument("--jobs", type=int, default=1, help="processes")
    reader.add_argument("--kept", type=Path, help="folder of rows that are there; left out: the program's own")
    reader.add_argument("--out", type=Path, help="the page to write")
    reader.add_argument("--figure", type=Path, help="the heat map to write")
    given = reader.parse_args()
    folder = given.kept or KEPT / program()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "rows.jsonl"
    found = kept.rows(file, Row.load)
    there = {row.case for row in found}
    missing = [case for case in cases() if case.seed <= given.count and case not in there]
    with file.open("a", encoding="utf-8") as lines:
        for row in rows(missing, given.jobs):
            found.append(row)
            print(row.json(), file=lines, flush=True)
    if given.figure:
        draw(shares(found), given.figure)
    if given.out:
        given.out.write_text(page(found), encoding="utf-8")
    return int(any(index < EVEN and own not in causes() for (own, _, _), index in alike(found).items()))


if __name__ == "__main__":
    sys.exit(main())
