"""Commands on hostile machines: each works, or ends with one true line.

usage: python -m assurance.hostile [--out PAGE] [--jobs N] [MACHINE[:COMMAND] ...]
Exit code 1 if any did neither.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .commands import ALL, COMMANDS
from .machines import MACHINES, own_memory
from .place import Prepared
from .trial import Outcome, tried

ROOT = Path(__file__).resolve().parents[2]
TEXT = Path(__file__).parent / "page.md"


def pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Machines with commands: all that this user can make for no name, and all commands for a machine alone."""
    found = []
    for name in names or (each.name for each in MACHINES.values() if not each.root or os.geteuid() == 0):
        machine, _, command = name.partition(":")
        found += [(machine, each) for each in ([command] if command else COMMANDS)]
    return found


def apart(prepared: Path, machine: str, commands: Sequence[str]) -> list[Outcome]:
    """The trials in a process and a mount namespace of their own."""
    words = [
        sys.executable,
        "-m",
        "assurance.hostile",
        "--inside",
        str(prepared),
        *(f"{machine}:{each}" for each in commands),
    ]
    namespace = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    done = subprocess.run([*namespace, *words], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    outcomes = [Outcome(**json.loads(line)) for line in done.stdout.splitlines()]
    if done.returncode != 0:
        outcomes.append(Outcome(machine, "", "", f"the trials ended with {done.returncode} after {len(outcomes)}"))
    return outcomes


def all_tried(names: Sequence[str], jobs: int) -> Iterator[list[Outcome]]:
    """The outcomes of each machine, as they come."""
    chosen = pairs(names)
    commands: dict[str, list[str]] = {}
    for machine, command in chosen:
        commands.setdefault(machine, []).append(command)
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        Path(folder).chmod(0o755)
        prepared = Path(folder) / "prepared"
        Prepared(prepared).prepare([COMMANDS[name] for name in dict.fromkeys(command for _, command in chosen)])
        with ThreadPoolExecutor(jobs) as pool:
            yield from pool.map(lambda each: apart(prepared, *each), commands.items())


def table(outcomes: Sequence[Sequence[Outcome]]) -> list[str]:
    lines = ["| machine | trials | worked | ended with one true line | neither |", "|---|--:|--:|--:|--:|"]
    for each in outcomes:
        wrong = [outcome for outcome in each if outcome.wrong]
        worked = sum(outcome.worked for outcome in each)
        said = len(each) - len(wrong) - worked
        what = MACHINES[each[0].machine].what
        lines.append(f"| `{each[0].machine}`: {what} | {len(each)} | {worked} | {said} | {len(wrong) or 'none'} |")
    told = [f"{o.machine} {o.level} {o.command}: {o.wrong}" for each in outcomes for o in each if o.wrong]
    return [*lines, "", "```text", *told, "```"] if told else lines


def main() -> int:
    reader = argparse.ArgumentParser(prog="python -m assurance.hostile", description=__doc__)
    reader.add_argument("names", nargs="*", metavar="MACHINE[:COMMAND]", help="; ".join(MACHINES))
    reader.add_argument("--jobs", type=int, default=2, help="machines at a time")
    reader.add_argument("--verbose", action="store_true", help="what each command said of its failure")
    reader.add_argument("--out", type=Path, help="the page to write")
    reader.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    given = reader.parse_args()
    if given.inside:
        with own_memory():
            for machine, command in pairs(given.names):
                for outcome in tried(MACHINES[machine], COMMANDS[command], Prepared(given.inside)):
                    print(outcome.line(), flush=True)
        return 0
    outcomes = []
    for each in all_tried(given.names, given.jobs):
        outcomes.append(each)
        print("\n".join(table([each])[2:]), flush=True)
        if given.verbose:
            print(*(f"  {o.level} {o.command}: {o.said}" for o in each if o.said), sep="\n", flush=True)
    if given.out:
        text = TEXT.read_text(encoding="utf-8").replace("{table}", "\n".join(table(outcomes)))
        text = text.replace("{commands}", "\n".join(f"- `{' '.join(each.words)}`" for each in ALL))
        given.out.write_text(text, encoding="utf-8")
    return int(any(outcome.wrong for each in outcomes for outcome in each))


if __name__ == "__main__":
    sys.exit(main())
