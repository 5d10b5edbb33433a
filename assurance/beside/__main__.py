"""Random scenarios on the simulator and on the kernel: every byte on both, and how their times compare.

usage: python -m assurance.beside [--count N] [--first K] [--kept FOLDER] [--out PAGE]

It continues where it stopped if the program and the kernel are the same. The exit code is 1 for a failed run, for
other bytes, and for times that differ by more than chance. A cause in known.toml makes it 0.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Sequence
from math import exp, inf, log, sqrt
from pathlib import Path
from statistics import fmean, quantiles, stdev

from assurance import kept

from .again import RUNS, Again, again, different
from .compared import ENGINES, FAR, GENERATOR, ROOT, Compared, compared
from .program import program

TEXT = Path(__file__).parent / "page.md"
KNOWN = Path(__file__).parent / "known.toml"
KEPT = ROOT / "target" / "beside"


def outcomes(rows: Sequence[Compared]) -> list[str]:
    """How the applications ended, side by side."""
    counts = Counter(tuple(row.ends[name].state for name in ENGINES) for row in rows if row.ends)
    lines = ["| simulator | kernel | applications |", "|---|---|--:|"]
    return lines + [f"| {sim} | {linux} | {count:,} |" for (sim, linux), count in counts.most_common()]


def figures(rows: Sequence[Compared]) -> list[str]:
    """Ratios of times by class."""
    lines = [
        "| | applications | geometric mean, 95 % | median | middle half | within 5 % | within 25 % |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for transport in ("tcp", "mptcp"):
        for lossless in (True, False):
            chosen = [row for row in rows if (row.transport, row.lossless) == (transport, lossless)]
            ratios = [row.ratio for row in chosen if row.ratio]
            if len(ratios) < 8:
                continue
            logs = [log(ratio) for ratio in ratios]
            error = 1.96 * stdev(logs) / sqrt(len(logs))
            low, middle, high = quantiles(ratios, n=4)
            near, by_a_quarter = (
                fmean(1 / (1 + bound) <= ratio <= 1 + bound for ratio in ratios) for bound in (0.05, 0.25)
            )
            name = f"{transport}, {'queues alone lose' if lossless else 'links lose, reorder or fail'}"
            mean = f"{exp(fmean(logs)):.3f} ({exp(fmean(logs) - error):.3f} to {exp(fmean(logs) + error):.3f})"
            lines.append(
                f"| {name} | {len(ratios):,} | {mean} | {middle:.3f} | {low:.3f} to {high:.3f}"
                f" | {near:.0%} | {by_a_quarter:.0%} |"
            )
    return lines


def apart(rows: Sequence[Again]) -> list[str]:
    """What other draws do not bring together, with its cause."""
    causes = known("far")
    lines = ["| scenario | application | simulator, s | kernel, s | p | cause |", "|--:|---|--:|--:|--:|---|"]
    for row, p in different(rows):
        sim, linux = (_time(row.median(name)) for name in ENGINES)
        cause = causes.get(row.number, "**not known**")
        lines.append(f"| {row.number} | {row.kind}, {row.transport} | {sim} | {linux} | {p:.2g} | {cause} |")
    return lines if len(lines) > 2 else ["None."]


def _time(seconds: float) -> str:
    return "not done" if seconds == inf else f"{seconds:.3g}"


def known(table: str) -> dict[int, str]:
    """Causes by scenario."""
    tables = tomllib.loads(KNOWN.read_text(encoding="utf-8"))
    return {int(number): " ".join(cause.split()) for number, cause in tables.get(table, {}).items()}


def faults(rows: Sequence[Compared], repeated: Sequence[Again]) -> list[tuple[int, str]]:
    """What no chance explains: scenario and fault, each once."""
    drawn = [(row.number, row.fault) for row in rows if row.fault]
    return list(dict.fromkeys(drawn + [(row.number, failure) for row in repeated for failure in row.failed]))


def causes_of(found: Sequence[tuple[int, str]]) -> list[str]:
    """A line for each, with its cause where that is known."""
    causes = known("faults")
    lines = [f"- Scenario {number}: {causes.get(number, fault)}." for number, fault in found]
    return list(dict.fromkeys(lines)) or ["None."]


def page(rows: Sequence[Compared], repeated: Sequence[Again]) -> str:
    numbers = {row.number for row in rows}
    refused = {row.number for row in rows if row.refused}
    places = {
        "{drawn}": f"{len(numbers):,}",
        "{ran}": f"{len(numbers - refused):,}",
        "{refused}": f"{len(refused):,}",
        "{faults}": "\n".join(causes_of(faults(rows, repeated))),
        "{outcomes}": "\n".join(outcomes(rows)),
        "{figures}": "\n".join(figures(rows)),
        "{factor}": f"{FAR:g}",
        "{times}": f"{sum(row.ratio is not None for row in rows):,}",
        "{longer}": f"{sum(row.far and row.ratio is not None for row in rows):,}",
        "{alone}": f"{sum(row.far and row.ratio is None for row in rows):,}",
        "{repeated}": f"{len(repeated):,}",
        "{runs}": str(RUNS),
        "{different}": f"{len(different(repeated)):,}",
        "{apart}": "\n".join(apart(repeated)),
    }
    text = TEXT.read_text(encoding="utf-8")
    for place, value in places.items():
        text = text.replace(place, value)
    return text


def main() -> int:
    reader = argparse.ArgumentParser(prog="python -m assurance.beside", description=__doc__)
    reader.add_argument("--count", type=int, default=1330, help="scenarios to draw")
    reader.add_argument("--first", type=int, default=0, help="number of the first one")
    reader.add_argument("--kept", type=Path, help="folder of rows that are there; left out: the program's own")
    reader.add_argument("--out", type=Path, help="the page to write")
    given = reader.parse_args()
    folder = given.kept or KEPT / program(TEXT.parent, GENERATOR)
    folder.mkdir(parents=True, exist_ok=True)
    rows = _drawn(folder / "drawn.jsonl", range(given.first, given.first + given.count))
    repeated = _repeated(folder / "again.jsonl", [row for row in rows if row.far])
    if given.out:
        given.out.write_text(page(rows, repeated), encoding="utf-8")
    unknown = any(number not in known("faults") for number, _ in faults(rows, repeated))
    return int(unknown or any(row.number not in known("far") for row, _ in different(repeated)))


def _drawn(file: Path, numbers: Sequence[int]) -> list[Compared]:
    """Rows of these scenarios and of all that are kept."""
    rows = kept.rows(file, Compared.load)
    there = {row.number for row in rows}
    with file.open("a", encoding="utf-8") as kept_rows:
        for number in numbers:
            if number in there:
                continue
            for row in compared(number):
                rows.append(row)
                print(row.json(), file=kept_rows, flush=True)
                if row.fault:
                    print(f"{number}: {row.fault}", flush=True)
    return rows


def _repeated(file: Path, far: Sequence[Compared]) -> list[Again]:
    """What other draws make of those that were far apart."""
    rows = kept.rows(file, Again.load)
    there = {(row.number, row.application) for row in rows}
    missing = defaultdict(list)
    for row in far:
        if (row.number, row.application) not in there:
            missing[row.number].append(row)
    with file.open("a", encoding="utf-8") as kept_rows:
        for number, of_it in missing.items():
            for found in again(number, of_it):
                rows.append(found)
                print(found.json(), file=kept_rows, flush=True)
                for failure in found.failed:
                    print(f"{number}, {failure}", flush=True)
    return rows


if __name__ == "__main__":
    sys.exit(main())
