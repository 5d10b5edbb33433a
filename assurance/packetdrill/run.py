"""Runs packetdrill's scripts against Polypath's endpoints and against the kernel of engine linux, and compares them.

usage: run.py [--out FILE] [--jobs N] [--verbose] [PATTERN ...]

The exit code is 1 if a difference without a reason in reasons.toml is not the kernel's too, or a reason is stale.
"""

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import endpoint
import guest
import table
from suite import OUTCOMES, SUITES, TOOL, VERSIONS, Result, scripts

from polypath.engines.base import EngineError
from polypath.engines.linux.kernel import find


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the table there")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="scripts at a time")
    parser.add_argument("--verbose", action="store_true", help="show packetdrill's messages")
    parser.add_argument("patterns", nargs="*", help="only these scripts, as mptcp/dss/*")
    given = parser.parse_args()
    for missing, makes in (
        (TOOL, "assurance/packetdrill/prepare"),
        (endpoint.LIBRARY, "cargo build -p polypath-packetdrill"),
        (guest.PYTHON, "apt-get install python3"),
    ):
        if not missing.exists():
            print(f"{missing} does not exist; {makes} makes it", file=sys.stderr)
            return 2
    chosen = scripts(given.patterns)
    try:
        kernel = find("conformance")
        with ThreadPoolExecutor(given.jobs) as pool:
            ours = list(pool.map(lambda it: endpoint.run(*it), chosen))
            theirs = list(pool.map(lambda it: guest.run(kernel, *it), chosen))
    except EngineError as error:
        print(error, file=sys.stderr)
        return 2
    stated = table.reasons()
    pairs = [
        table.Pair(mine, other, kernel.release, next((it.text for it in stated if it.covers(mine)), ""))
        for mine, other in zip(ours, theirs, strict=True)
    ]
    wrong = 0
    for pair in pairs:
        wrong += pair.unexplained
        if pair.unexplained or given.verbose:
            for whose, result in (("endpoints", pair.ours), (f"Linux {kernel.release}", pair.kernel)):
                _show(whose, result, given.verbose)
    if not given.patterns:
        for reason in table.stale(pairs, stated):
            print(f"stale reason: {', '.join(reason.scripts)}: {reason.text}")
            wrong += 1
    for suite in SUITES:
        for version in VERSIONS:
            outcomes, places = table.counts(pairs, suite, version)
            told = [f"{outcomes[it]} {it}" for it in OUTCOMES] + [f"{places[it]} on {it}" for it in table.PLACES]
            print(f"{suite}, {version}: {', '.join(told)}")
    if given.out:
        given.out.write_text(table.page(pairs, kernel.release))
    return int(wrong > 0)


def _show(whose: str, result: Result, verbose: bool) -> None:
    print(f"{whose:13}  {result.outcome:13}  {result.script} ({result.version})")
    if verbose and result.said:
        print("    " + result.said.replace("\n", "\n    "))


if __name__ == "__main__":
    sys.exit(main())
