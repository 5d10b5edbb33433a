"""Runs the works of crates/lab/src/bench.rs on csg-htsim and on Polypath in turn and prints their times per packet-hop.

    python benches/htsim/side_by_side.py HTSIM BINARY [--rounds 5] [--works W1 W3] [--out docs/performance.md]

HTSIM is works.cpp, compiled and linked with libhtsim.a by the person who measures. BINARY is the example `work` of
crates/lab in release mode. The smallest time of all rounds counts for each work.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

#: The version of csg-htsim that docs/performance.md was measured with.
COMMIT = "841d9e7be46bb968eece766aa4b6c044c7799f67"
EXPECTED = f"benches/htsim/works.cpp linked with libhtsim.a of csg-htsim (measured with commit {COMMIT[:7]})"
WORKS = ("W1", "W2", "W3", "W4", "W5", "W6")
#: Above this load average other processes disturb the times.
QUIET = 0.5
BEGIN, END = "<!-- side by side: begin -->", "<!-- side by side: end -->"
HEAD = (
    "work",
    "htsim, ns per packet-hop",
    "Polypath",
    "ratio",
    "least and greatest",
    "ratio per simulated second",
    "goodput",
    "memory, MB",
    "set-up, CPU s",
)


class Failure(Exception):
    """What stands in the way, in one line."""


@dataclass(frozen=True)
class Run:
    """What a program says of a work."""

    packet_hops: int
    cpu_seconds: float
    set_up_cpu_seconds: float
    memory_mb: float
    share_of_capacity: float

    @property
    def nanoseconds(self) -> float:
        """CPU time of a packet-hop."""
        return self.cpu_seconds * 1e9 / self.packet_hops


@dataclass(frozen=True)
class Pair:
    """The same work on both, round by round."""

    htsim: Sequence[Run]
    ours: Sequence[Run]

    def ratios(self, cost: Callable[[Run], float]) -> list[float]:
        """How much more htsim needed in each round, the least first. What slows the machine down slows both."""
        return sorted(cost(theirs) / cost(own) for theirs, own in zip(self.htsim, self.ours, strict=True))


def parse(text: str) -> Run:
    """The run that a program's last line describes."""
    lines = text.strip().splitlines()
    try:
        said = json.loads(lines[-1])
        return Run(
            int(said["packet_hops"]),
            *(float(said[name]) for name in ("cpu_seconds", "set_up_cpu_seconds", "memory_mb", "share_of_capacity")),
        )
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise Failure(f"no result in what the program printed: {lines[-1:]}") from error


def least(runs: Sequence[Run]) -> Run:
    """The smallest of each cost over runs that did the same."""
    if len({(run.packet_hops, run.share_of_capacity) for run in runs}) != 1:
        raise Failure("the same work did not do the same each time")
    return Run(
        runs[0].packet_hops,
        min(run.cpu_seconds for run in runs),
        min(run.set_up_cpu_seconds for run in runs),
        min(run.memory_mb for run in runs),
        runs[0].share_of_capacity,
    )


def table(pairs: Mapping[str, Pair]) -> str:
    """The works as Markdown; where a cell has two figures, htsim's is the first."""
    rows = [HEAD, ("---",) * len(HEAD)]
    for work, pair in pairs.items():
        htsim, ours = least(pair.htsim), least(pair.ours)
        hops = pair.ratios(lambda run: run.nanoseconds)
        rows.append(
            (
                work,
                f"{htsim.nanoseconds:.0f}",
                f"{ours.nanoseconds:.0f}",
                f"{median(hops):.2f}",
                f"{hops[0]:.2f} to {hops[-1]:.2f}",
                f"{median(pair.ratios(lambda run: run.cpu_seconds)):.2f}",
                f"{htsim.share_of_capacity:.3f}, {ours.share_of_capacity:.3f}",
                f"{htsim.memory_mb:.0f}, {ours.memory_mb:.0f}",
                f"{htsim.set_up_cpu_seconds:.2g}, {ours.set_up_cpu_seconds:.2g}",
            )
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def conditions(rounds: int, load: float, processor: str, built: str) -> str:
    """A sentence or two on where the table was measured, and how htsim was built if that is known."""
    how = f", htsim built with {built}" if built else ""
    text = f"{rounds} rounds on {processor}{how}, load average {load:.1f} at the start."
    if load > QUIET:
        text += " **Preliminary**: the machine had other work at the same time."
    return text


def replaced(page: str, text: str) -> str:
    """A page with `text` between its markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise Failure(f"no lines '{BEGIN}' and '{END}' in the page")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def done(command: Iterable[str | Path]) -> str:
    """What a command prints. Raises Failure."""
    words = [str(word) for word in command]
    try:
        return subprocess.run(words, capture_output=True, text=True, errors="replace", check=True).stdout
    except FileNotFoundError as error:
        raise Failure(f"{words[0]} is missing") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or ["no reason given"]
        raise Failure(f"{' '.join(words[:4])} failed: {said[-1]}") from error


def given(program: str) -> Path:
    """The path of htsim's program. Raises Failure."""
    found = shutil.which(program) if program else None
    if found is None:
        what = f"{program} is not an executable file" if program else "no program of csg-htsim is given"
        raise Failure(f"{what}; HTSIM=FILE takes {EXPECTED}")
    return Path(found).resolve()


def measure(htsim: Path, ours: Path, works: Sequence[str], rounds: int) -> dict[str, Pair]:
    """Each work on both in turn, `rounds` times over."""
    runs: dict[str, tuple[list[Run], list[Run]]] = {work: ([], []) for work in works}
    for number in range(1, rounds + 1):
        for work in works:
            for program, taken in zip((htsim, ours), runs[work], strict=True):
                taken.append(parse(done([program, work])))
            shown = ", ".join(f"{taken[-1].nanoseconds:.0f}" for taken in runs[work])
            print(f"round {number}: {work} {shown} ns", file=sys.stderr)
    return {work: Pair(*both) for work, both in runs.items()}


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("htsim", help=EXPECTED)
    parser.add_argument("binary", type=Path, help="the example `work` of crates/lab")
    parser.add_argument("--built", default="", metavar="TEXT", help="how htsim was compiled, for the page")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=WORKS, metavar="WORK")
    parser.add_argument("--out", type=Path, help="a page that gets the table between its markers")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    if load > QUIET:
        print(f"The load average is {load:.1f}; the figures are only good on an idle machine.", file=sys.stderr)
    try:
        page = options.out.read_text() if options.out else f"{BEGIN}{END}"
        replaced(page, "")
        pairs = measure(given(options.htsim), options.binary, options.works, max(options.rounds, 1))
    except (Failure, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    text = f"{table(pairs)}\n\n{conditions(max(options.rounds, 1), load, processor(), options.built)}"
    print(text)
    if options.out:
        options.out.write_text(replaced(page, text))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
