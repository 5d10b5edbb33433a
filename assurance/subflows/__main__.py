"""Random path management on the simulator and on the kernel: which subflows there were, when, and what was counted.

usage: python -m assurance.subflows [--count N] [--first K] [--show NUMBER] [--kept FOLDER] [--out PAGE]

Goes on where it stopped, if the program and the kernel are the same. --show prints a set-up as a scenario. Exit code 1
if the engines differ in a set-up without a cause in known.toml, or agree in one that has a cause there.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from assurance import kept
from assurance.beside.program import program

from .compared import Compared, compared
from .drawn import scenario

HERE = Path(__file__).resolve().parent
KEPT = HERE.parents[1] / "target" / "subflows"
#: Set-ups of one scenario.
TOGETHER = 12


def known() -> Mapping[int, str]:
    """Causes, by the number of the set-up that they explain."""
    found = tomllib.loads((HERE / "known.toml").read_text(encoding="utf-8"))
    return {number: " ".join(cause["why"].split()) for cause in found["cause"] for number in cause["numbers"]}


def stale(found: Sequence[Compared]) -> list[int]:
    """Set-ups that have a cause although both engines agree."""
    return [row.number for row in found if not row.differs and not row.refused and row.number in known()]


def rows(file: Path, numbers: Sequence[int]) -> list[Compared]:
    """Rows of these set-ups."""
    there = {row.number: row for row in kept.rows(file, Compared.load)}
    missing = [number for number in numbers if number not in there]
    with file.open("a", encoding="utf-8") as kept_rows:
        for first in range(0, len(missing), TOGETHER):
            for row in compared(missing[first : first + TOGETHER]):
                there[row.number] = row
                print(row.json(), file=kept_rows, flush=True)
                if row.differs and row.number not in known():
                    print(f"{row.number}: {row.differs}", flush=True)
    return [there[number] for number in numbers]


def by_class(found: Sequence[Compared]) -> Iterator[str]:
    """How many set-ups have something, and how many of them are alike."""
    counts: dict[str, Counter[bool]] = defaultdict(Counter)
    for row in found:
        for name in row.classes:
            counts[name][not row.differs] += 1
    yield from ("| set-ups with | compared | no difference |", "|---|--:|--:|")
    for name, alike in sorted(counts.items()):
        yield f"| {name} | {alike.total():,} | {alike[True]:,} |"


def _kind(difference: str) -> str:
    """Without what is of one set-up: a counter with its side, or what differs of a subflow."""
    first = difference.split()[0].removesuffix(":")
    return difference.split(":")[0] if first.startswith(("client", "server")) else first


def by_kind(found: Sequence[Compared]) -> Iterator[str]:
    """What differs, and in how many set-ups."""
    counts = Counter(kind for row in found for kind in {_kind(each) for each in row.differs})
    yield from ("| what differs | set-ups |", "|---|--:|")
    for kind, count in counts.most_common():
        yield f"| {kind} | {count:,} |"


def by_cause(found: Sequence[Compared]) -> Iterator[str]:
    """What differs, why, and where."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for row in found:
        if row.differs:
            numbers[known().get(row.number, "**not traced**")].append(row.number)
    if not numbers:
        yield "None."
        return
    yield from ("| cause | set-ups | which |", "|---|--:|---|")
    for cause, where in sorted(numbers.items(), key=lambda item: -len(item[1])):
        yield f"| {cause} | {len(where):,} | {', '.join(map(str, where))} |"


def page(found: Sequence[Compared]) -> str:
    """The page of these rows."""
    ran = [row for row in found if not row.refused]
    return (
        (HERE / "page.md")
        .read_text(encoding="utf-8")
        .format(
            first=min(row.number for row in found),
            drawn=f"{len(found):,}",
            refused=f"{len(found) - len(ran):,}",
            ran=f"{len(ran):,}",
            alike=f"{sum(not row.differs for row in ran):,}",
            classes="\n".join(by_class(ran)),
            kinds="\n".join(by_kind(ran)),
            causes="\n".join(by_cause(ran)),
        )
    )


def main() -> int:
    reader = argparse.ArgumentParser(prog="python -m assurance.subflows")
    reader.add_argument("--count", type=int, default=1000, help="set-ups to draw")
    reader.add_argument("--first", type=int, default=0, help="number of the first one")
    reader.add_argument("--show", type=int, help="a set-up to print")
    reader.add_argument("--kept", type=Path, help="folder of rows that are there; left out: the program's own")
    reader.add_argument("--out", type=Path, help="the page to write")
    given = reader.parse_args()
    if given.show is not None:
        print(scenario([given.show])[0], end="")
        return 0
    folder = given.kept or KEPT / program(HERE)
    folder.mkdir(parents=True, exist_ok=True)
    found = rows(folder / "rows.jsonl", range(given.first, given.first + given.count))
    if given.out:
        given.out.write_text(page(found), encoding="utf-8")
    if left := stale(found):
        print(f"known.toml has causes for set-ups that are alike: {left}")
    return int(bool(left) or any(row.differs and row.number not in known() for row in found))


if __name__ == "__main__":
    sys.exit(main())
