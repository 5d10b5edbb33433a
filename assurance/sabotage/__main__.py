"""Sabotage of sweeps, clusters, runs on the machine's stack, and files that do harm: what was tried, and what was lost.

usage: python -m assurance.sabotage [--times N] [--seed S] [--out PAGE] [NAME ...]
Exit code 1 if anything was lost.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from . import cluster, hostile, live, sweeps
from .registry import ALL, Lost, Sabotage

ROOT = Path(__file__).resolve().parents[2]
TEXT = Path(__file__).parent / "page.md"
#: A case of files takes a second, one of a sweep ten.
CHEAP, CHEAPER_BY = "files", 10
MODULES = (sweeps, cluster, live, hostile)


@dataclass
class Outcome:
    """The outcome of one kind."""

    name: str
    trials: int = 0
    blows: int = 0
    lost: list[str] = field(default_factory=list)


def tried(what: Sabotage, seeds: Iterable[int]) -> Iterator[Outcome]:
    """The outcome after each trial."""
    outcome = Outcome(what.name)
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="sabotage-", ignore_cleanup_errors=True) as folder:
            Path(folder).chmod(0o755)
            outcome.trials += 1
            try:
                outcome.blows += what.trial(random.Random(f"{what.name} {seed}"), Path(folder) / "trial")
            except Lost as lost:
                outcome.lost.append(f"seed {seed}: {lost}")
            except Exception as error:  # a trial that ends otherwise has not shown that nothing is lost
                outcome.lost.append(f"seed {seed}: {type(error).__name__}: {error}")
        yield outcome


def apart(what: Sabotage, first: int, times: int) -> Outcome:
    """The trials in a process of their own, and in a mount namespace of their own if they mount."""
    command = [
        sys.executable,
        "-m",
        "assurance.sabotage",
        "--inside",
        "--seed",
        str(first),
        "--times",
        str(times),
        what.name,
    ]
    if what.mounts:
        command = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), *command]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    lines = done.stdout.splitlines()
    outcome = Outcome(**json.loads(lines[-1])) if lines else Outcome(what.name)
    if done.returncode not in (0, 1) or outcome.trials < times:
        outcome.lost.append(f"the trials ended with {done.returncode} after {outcome.trials}")
    return outcome


def table(outcomes: Sequence[Outcome]) -> list[str]:
    lines = ["| kind | trials | attacks | lost |", "|---|--:|--:|--:|"]
    for each in outcomes:
        what = ALL[each.name]
        lines.append(
            f"| `{each.name}`: {what.what} | {each.trials:,} | {each.blows:,} | {len(each.lost) or 'nothing'} |"
        )
    lost = [f"{each.name}, {line}" for each in outcomes for line in each.lost]
    return [*lines, "", "```", *lost, "```"] if lost else lines


def main() -> int:
    reader = argparse.ArgumentParser(prog="python -m assurance.sabotage", description=__doc__)
    reader.add_argument("names", nargs="*", metavar="NAME", choices=[[], *ALL], help="; ".join(ALL))
    reader.add_argument("--times", type=int, default=20, help="trials of each kind; ten times as many of files")
    reader.add_argument("--seed", type=int, default=1, help="of the first trial")
    reader.add_argument("--out", type=Path, help="the page to write")
    reader.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = reader.parse_args()
    kinds = [ALL[name] for name in given.names or ALL]
    if given.inside:
        (what,) = kinds
        outcome = Outcome(what.name)
        for outcome in tried(what, range(given.seed, given.seed + given.times)):
            print(json.dumps(asdict(outcome)), flush=True)
        return int(bool(outcome.lost))
    outcomes = []
    for what in kinds:
        outcomes.append(apart(what, given.seed, given.times * (CHEAPER_BY if what.area == CHEAP else 1)))
        print("\n".join(table(outcomes[-1:])[2:]), flush=True)
    if given.out:
        text = TEXT.read_text(encoding="utf-8").replace("{table}", "\n".join(table(outcomes)))
        given.out.write_text(text, encoding="utf-8")
    return int(any(outcome.lost for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
