"""Faults put into the code on purpose: which of them the tests notice.

usage: python -m assurance.mutants [--out PAGE] PACKAGE:SEED:COUNT ...
Goes on where it stopped. Exit code 1 if a reason in reasons.toml is of a fault that tests notice, or of no line.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from . import python, rust
from .page import Reason, Sample, page, stale
from .shared import ASLEEP, WORK, Package, Verdict, digests, draw, fresh_tree, kept

PACKAGES = {package.name: package for package in (rust.TRANSPORT, rust.NET, python.RESULTS)}
KEPT = WORK / "kept.jsonl"


def drawn(package: Package, seed: int, count: int) -> tuple[list[str], int]:
    """The sample, and of how many mutants it is one."""
    if package is not python.RESULTS:
        names = rust.mutants(package)
        return draw(names, seed, package.name, count), len(names)
    places = python.names(package)
    chosen = [
        random.Random(f"{seed} {place}").choice(places[place]) for place in draw(places, seed, package.name, count)
    ]
    return chosen, sum(map(len, places.values()))


def finish(package: Package, chosen: Sequence[str]) -> list[Verdict]:
    """The last verdict of each; those that were missing are run and kept."""
    runner = python if package is python.RESULTS else rust
    last: dict[str, Verdict] = {}
    for number, stage in enumerate(package.stages):
        code, tests = digests(package, stage)
        there = {
            verdict.name: verdict
            for verdict in kept(KEPT)
            if (verdict.package, verdict.stage) == (package.name, number) and verdict.holds(code, tests)
        }
        open_ = [
            name
            for name in chosen
            if name.startswith(package.folder + stage.only) and (number == 0 or last[name].outcome == ASLEEP)
        ]
        missing = [name for name in open_ if name not in there]
        if missing:
            print(f"{package.name}, {stage.title}: {len(missing)} mutants", flush=True)
            fresh_tree()
            runner.check(stage)
            with KEPT.open("a", encoding="utf-8") as file:
                for name, outcome in runner.run(package, stage, missing):
                    there[name] = Verdict(package.name, name, number, outcome, code, tests)
                    print(there[name].json(), file=file, flush=True)
                    print(f"{outcome:14} {name}", flush=True)
        last.update((name, there[name]) for name in open_)
    return [last[name] for name in chosen]


def asked(text: str) -> tuple[Package, int, int]:
    """PACKAGE:SEED:COUNT."""
    name, seed, count = text.split(":")
    return PACKAGES[name], int(seed), int(count)


def main() -> int:
    reader = argparse.ArgumentParser(prog="python -m assurance.mutants", description=__doc__)
    reader.add_argument("samples", nargs="+", type=asked, metavar="PACKAGE:SEED:COUNT", help=", ".join(PACKAGES))
    reader.add_argument("--out", type=Path, help="the page to write")
    given = reader.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    samples = []
    for package, seed, count in given.samples:
        chosen, of = drawn(package, seed, count)
        samples.append(Sample(package, seed, of, finish(package, chosen)))
    if given.out:
        given.out.write_text(page(samples), encoding="utf-8")
    found = stale(samples, Reason.all())
    for line in found:
        print(line)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
