"""Captures of networks whose parameters are hidden, and what `polypath twin` finds of them.

usage: python -m assurance.twins [--count N] [--first K] [--asked N] [--show NUMBER] [--kept FOLDER] [--out PAGE]

Goes on where it stopped, if the program is the same. Exit code 1 where less is near the truth than is claimed.
--show prints the scenario of a number.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from assurance import kept
from assurance.beside.program import program

import polypath

from .asked import Asked, asked
from .compared import BOUNDS, Compared, Figure, compared
from .drawn import drawn

HERE = Path(__file__).resolve().parent
KEPT = HERE.parents[1] / "target" / "twins"
#: Of each figure, the part that is to be near the truth, and of all intervals the part that is to hold it.
NEAR, HELD = 0.85, 0.85
#: Of what-if's choices, the part that is to be as good as the best.
GOOD = 0.9
#: Those with an interval.
ESTIMATED = ("rate", "delay", "jitter", "queue", "loss")
#: What the page tells of, and nobody is promised.
UNPROMISED = ("jitter",)
SAYS = {
    "rate": "within 5 %",
    "delay": "within 5 % or 1 ms",
    "jitter": "within 25 % or 0.2 ms, where it showed",
    "queue": "within 25 %, where it overflowed",
    "loss": "within a factor of 1.5, where 30 and more were lost at random",
    "goodput": "the twin's within 10 % of the capture's",
    "RTT": "the twin's 95th percentile within 15 % of the capture's",
}


def rows(file: Path, numbers: Sequence[int]) -> list[Compared]:
    """Rows of these numbers."""
    there = {row.number: row for row in kept.rows(file, Compared.load)}
    with file.open("a", encoding="utf-8") as kept_rows:
        for number in numbers:
            if number in there:
                continue
            there[number] = row = compared(number)
            print(row.json(), file=kept_rows, flush=True)
            for each in row.figures:
                if not each.is_near:
                    print(f"{number}: {each.name} {each.found:.5g}, true {each.true:.5g}", flush=True)
    return [there[number] for number in numbers]


def answers(file: Path, numbers: Sequence[int]) -> list[Asked]:
    """What twins of these numbers answered."""
    there = {row.number: row for row in kept.rows(file, Asked.load)}
    with file.open("a", encoding="utf-8") as kept_rows:
        for number in numbers:
            if number not in there:
                there[number] = row = asked(number)
                print(row.json(), file=kept_rows, flush=True)
                if not row.is_good:
                    print(f"{number}: {row.chosen} {row.chosen_value}, best {row.best} {row.best_value}", flush=True)
    return [there[number] for number in numbers]


def by_answer(found: Sequence[Asked]) -> Iterator[str]:
    """What each twin chose, and what came of it in the true network."""
    yield from ("| capture | goal | chosen by the twin | gives | best there | gives |", "|---|---|---|--:|---|--:|")
    for row in found:
        values = ("" if value is None else f"{value:.4g}" for value in (row.chosen_value, row.best_value))
        mine, best = values
        yield f"| {row.number} | {row.goal} | {row.chosen} | {mine} | {row.best} | {best} |"


def _of(found: Sequence[Compared], name: str) -> list[Figure]:
    return [each for row in found for each in row.figures if each.name == name]


def by_figure(found: Sequence[Compared]) -> Iterator[str]:
    """How many of each figure are near the truth, and how many intervals hold it."""
    yield from ("| figure | near is | of | near | interval holds it |", "|---|---|--:|--:|--:|")
    for name in BOUNDS:
        if figures := _of(found, name):
            held = f"{sum(each.is_held for each in figures) / len(figures):.0%}" if name in ESTIMATED else ""
            near = sum(each.is_near for each in figures)
            yield f"| {name} | {SAYS[name]} | {len(figures)} | {near} | {held} |"


def by_kind(found: Sequence[Compared]) -> Iterator[str]:
    """The same by what was captured."""
    kinds = {
        "simulator": [row for row in found if row.engine == "sim"],
        "kernel": [row for row in found if row.engine == "linux"],
        "one end": [row for row in found if row.ends == 1],
        "both ends": [row for row in found if row.ends == 2],
        "TCP": [row for row in found if row.transport == "tcp"],
        "Multipath TCP": [row for row in found if row.transport == "mptcp"],
        "QUIC": [row for row in found if row.transport == "quic"],
        "Multipath QUIC": [row for row in found if row.transport == "mpquic"],
        "bulk": [row for row in found if row.work == "bulk"],
        "requests": [row for row in found if row.work == "requests"],
    }
    yield from ("| captures | number | figures | near |", "|---|--:|--:|--:|")
    for kind, those in kinds.items():
        if not those:
            continue
        figures = [each for row in those for each in row.figures]
        yield f"| {kind} | {len(those)} | {len(figures)} | {sum(each.is_near for each in figures)} |"


def by_miss(found: Sequence[Compared]) -> Iterator[str]:
    """What is not near the truth."""
    misses = [(row, each) for row in found for each in row.figures if not each.is_near]
    if not misses:
        yield "None."
        return
    yield from ("| capture | figure | true | found |", "|---|---|--:|--:|")
    for row, each in misses:
        yield f"| {row.number} | {each.name} | {each.true:.4g} | {each.found:.4g} |"


def is_as_claimed(found: Sequence[Compared]) -> bool:
    """Whether as much is near the truth as is claimed."""
    every = [_of(found, name) for name in BOUNDS if name not in UNPROMISED]
    near = all(sum(each.is_near for each in those) >= NEAR * len(those) for those in every)
    estimated = [each for name in ESTIMATED for each in _of(found, name)]
    return near and sum(each.is_held for each in estimated) >= HELD * len(estimated)


def page(found: Sequence[Compared], answered: Sequence[Asked]) -> str:
    """The page of these rows."""
    told = sum(row.congestion == row.true_congestion for row in found)
    return (
        (HERE / "page.md")
        .read_text(encoding="utf-8")
        .format(
            count=len(found),
            figures="\n".join(by_figure(found)),
            kinds="\n".join(by_kind(found)),
            misses="\n".join(by_miss(found)),
            congestion=told,
            open=sum(row.open_queues for row in found),
            open_jitters=sum(row.open_jitters for row in found),
            asked=len(answered),
            good=sum(row.is_good for row in answered),
            answers="\n".join(by_answer(answered)),
        )
    )


def _program() -> str:
    return program(HERE, *sorted(Path(polypath.__file__).parent.joinpath("twin").glob("*.py")))


def main() -> int:
    reader = argparse.ArgumentParser(prog="python -m assurance.twins")
    reader.add_argument("--count", type=int, default=100, help="captures to draw")
    reader.add_argument("--first", type=int, default=0, help="number of the first one")
    reader.add_argument("--asked", type=int, default=20, help="how many of the twins are asked what would help")
    reader.add_argument("--show", type=int, help="a number whose scenario to print")
    reader.add_argument("--kept", type=Path, help="folder of rows that are there; left out: the program's own")
    reader.add_argument("--out", type=Path, help="the page to write")
    given = reader.parse_args()
    if given.show is not None:
        print(drawn(given.show).text, end="")
        return 0
    folder = given.kept or KEPT / _program()
    folder.mkdir(parents=True, exist_ok=True)
    found = rows(folder / "rows.jsonl", range(given.first, given.first + given.count))
    answered = answers(folder / "asked.jsonl", range(given.first, given.first + given.asked))
    if given.out:
        given.out.write_text(page(found, answered), encoding="utf-8")
    print("\n".join(by_figure(found)))
    good = sum(row.is_good for row in answered) >= GOOD * len(answered)
    return int(not (good and is_as_claimed(found)))


if __name__ == "__main__":
    sys.exit(main())
