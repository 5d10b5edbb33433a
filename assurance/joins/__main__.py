"""The kernel's selftest of joins as a table: what upstream asks for, what the simulator and the kernel count.

usage: python -m assurance.joins [--out PAGE] [NAME ...]
Exit code 1 where the simulator differs from the kernel and `causes.toml` does not say why.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from .cases import CASES
from .run import Outcome, outcomes

HERE = Path(__file__).parent
CAUSES = HERE / "causes.toml"
TEXT = HERE / "page.md"


def causes() -> Mapping[str, str]:
    found: Mapping[str, str] = tomllib.loads(CAUSES.read_text())
    return found


def unexplained(found: Sequence[Outcome], known: Mapping[str, str]) -> list[str]:
    """A line for each case that differs without a cause, or has a cause and does not differ."""
    lines = []
    for each in found:
        name, differences = each.case.name, each.differences()
        if differences and name not in known:
            lines.append(f"{name}: simulator and kernel differ in {', '.join(differences)}")
        elif name in known and not differences:
            lines.append(f"{name}: causes.toml has a cause, and nothing differs")
    return lines


def row(outcome: Outcome, cause: str) -> str:
    """What upstream asks for, with the simulator's and the kernel's counts where not all agree; then the rest that
    differs."""
    told, real, asked = outcome.simulator, outcome.kernel, outcome.case.expect
    cells = []
    for name, value in asked.items():
        both = (told.get(name, 0), real.get(name, 0))
        if value or both != (0, 0):
            shown = f"`{name}` {value}"
            cells.append(shown if both == (value, value) else f"**{shown} ({both[0]}, {both[1]})**")
    for name in outcome.differences():
        if name not in asked:
            cells.append(f"**`{name}` ({told.get(name, 0)}, {real.get(name, 0)})**")
    return f"| {outcome.case.name} | {'; '.join(cells) or 'nothing'} | {cause} |"


def page(found: Sequence[Outcome], known: Mapping[str, str]) -> str:
    rows = [row(each, known.get(each.case.name, "")) for each in found]
    alike = sum(not each.differences() for each in found)
    asked = sum(not each.unexpected() for each in found)
    table = ["| case | counted | cause |", "|---|---|---|", *rows]
    return TEXT.read_text().format(cases=len(found), alike=alike, asked=asked, table="\n".join(table))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m assurance.joins")
    parser.add_argument("--out", type=Path, help="the page to write")
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases; all of them where none is named")
    given = parser.parse_args()
    chosen = [case for case in CASES if not given.names or case.name in given.names]
    known = causes()
    found = []
    for each in outcomes(chosen):
        found.append(each)
        print(row(each, known.get(each.case.name, "")), flush=True)
    if given.out:
        given.out.write_text(page(found, known))
    lines = unexplained(found, known)
    print(*lines, sep="\n", file=sys.stderr)
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
