"""Random scenarios on the simulator and on the kernel: every byte on both, and how their times compare.

usage: python -m tests.beside [--count N] [--first K] [--kept FILE] [--out PAGE]
Goes on where it stopped. Exit code 1 if a run failed, or the engines delivered other bytes, without a cause in
known.toml.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from math import exp, log, sqrt
from pathlib import Path
from statistics import fmean, quantiles, stdev

from .compared import ENGINES, ROOT, Compared, compared

TEXT = Path(__file__).parent / "page.md"
KNOWN = Path(__file__).parent / "known.toml"
#: A time further from the kernel's than this is told by its number.
FAR = 3.0


def kept(path: Path) -> list[Compared]:
    """What is there already; a line that was cut is left out."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [Compared.load(line) for line in lines if line.endswith("\n")]


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


def far(rows: Sequence[Compared]) -> list[str]:
    """The applications whose times are furthest apart."""
    chosen = [(row.ratio, row) for row in rows if row.ratio and not 1 / FAR <= row.ratio <= FAR]
    lines = ["| scenario | application | simulator s | kernel s | ratio |", "|--:|---|--:|--:|--:|"]
    for ratio, row in sorted(chosen, key=lambda each: -abs(log(each[0])))[:20]:
        assert row.ends is not None
        sim, linux = (row.ends[name].took_s for name in ENGINES)
        lines.append(f"| {row.number} | {row.kind}, {row.transport} | {sim:.2f} | {linux:.2f} | {ratio:.2f} |")
    return lines


def known() -> dict[int, str]:
    """Causes by scenario."""
    return {int(number): " ".join(cause.split()) for number, cause in tomllib.loads(KNOWN.read_text()).items()}


def faults(rows: Sequence[Compared]) -> list[str]:
    """What no chance explains, with its cause."""
    causes = known()
    lines = [f"- Scenario {row.number}: {causes.get(row.number, row.fault)}." for row in rows if row.fault]
    return lines or ["None."]


def page(rows: Sequence[Compared]) -> str:
    numbers = {row.number for row in rows}
    refused = {row.number for row in rows if row.refused}
    told = {
        "{drawn}": f"{len(numbers):,}",
        "{ran}": f"{len(numbers - refused):,}",
        "{refused}": f"{len(refused):,}",
        "{faults}": "\n".join(faults(rows)),
        "{outcomes}": "\n".join(outcomes(rows)),
        "{figures}": "\n".join(figures(rows)),
        "{far}": "\n".join(far(rows)),
    }
    text = TEXT.read_text(encoding="utf-8")
    for place, value in told.items():
        text = text.replace(place, value)
    return text


def main() -> int:
    reader = argparse.ArgumentParser(prog="python -m tests.beside", description=__doc__)
    reader.add_argument("--count", type=int, default=1000, help="scenarios to draw")
    reader.add_argument("--first", type=int, default=0, help="number of the first one")
    reader.add_argument("--kept", type=Path, default=ROOT / "target" / "beside.jsonl", help="rows that are there")
    reader.add_argument("--out", type=Path, help="the page to write")
    given = reader.parse_args()
    rows = kept(given.kept)
    there = {row.number for row in rows}
    with given.kept.open("a", encoding="utf-8") as file:
        for number in range(given.first, given.first + given.count):
            if number in there:
                continue
            for row in compared(number):
                rows.append(row)
                print(row.json(), file=file, flush=True)
                if row.fault:
                    print(f"{number}: {row.fault}", flush=True)
    if given.out:
        given.out.write_text(page(rows), encoding="utf-8")
    return int(any(row.fault and row.number not in known() for row in rows))


if __name__ == "__main__":
    sys.exit(main())
