"""The kernel's selftests in virtual time: each set-up many times, whose verdicts are all the same.

usage: python -m assurance.selftests [--count N] [--first K] [--simulated N] [--jobs J] [--kept FOLDER] [--out PAGE]
       [SCRIPT ..]

Goes on where it stopped, if the program and the kernel are the same. Exit code 1 if a run on the kernel fails without a
cause in causes.toml, or a cause's set-up does not fail.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from assurance import kept
from assurance.beside.program import program

from .run import SCRIPTS, SET_UPS, Group, Row, groups

HERE = Path(__file__).resolve().parent
KEPT = HERE.parents[1] / "target" / "selftests"
ENGINES = ("linux", "sim")

_IGNORED = "The script marks these set-ups as flaky ([why](#simult_flows))."

Found = Mapping[tuple[str, str, str], Sequence[Row]]


def causes() -> dict[tuple[str, str, str], str]:
    """Why runs fail, by engine, script and set-up."""
    told = tomllib.loads((HERE / "causes.toml").read_text(encoding="utf-8"))
    return {
        (engine, each["script"], name): " ".join(each["why"].split())
        for each in told.get("cause", [])
        for engine in each["engines"]
        for name in each["names"]
    }


#: Set-ups whose failures the script ignores, too.
FLAKY = {(each.script, each.name) for each in SET_UPS if each.flaky}


def collected(rows: Sequence[Row]) -> Found:
    found: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        found[row.engine, row.script, row.name].append(row)
    return found


def unexplained(found: Found, known: Mapping[tuple[str, str, str], str]) -> list[str]:
    """A line for each set-up with a failure and no cause, or a cause and no failure."""
    lines = []
    for key, rows in found.items():
        engine, script, name = key
        failed = [row for row in rows if row.reasons()]
        if (script, name) in FLAKY:
            continue
        if failed and key not in known:
            lines.append(f"{engine}, {script}, {name}: number {failed[0].number}: {'; '.join(failed[0].reasons())}")
        elif key in known and not failed:
            lines.append(f"{engine}, {script}, {name}: causes.toml has a cause, and nothing fails")
    return lines


def run_missing(file: Path, wanted: Sequence[Group], jobs: int) -> list[Row]:
    """Rows of these groups, of which the file has those that ran before."""
    there = {(row.engine, row.script, row.name, row.number): row for row in kept.rows(file, Row.load)}

    def keys(group: Group) -> list[tuple[str, str, str, int]]:
        return [(group.engine, each.script, each.name, group.number) for each in group.set_ups]

    missing = [group for group in wanted if any(key not in there for key in keys(group))]
    with (
        file.open("a", encoding="utf-8") as out,
        ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool,
    ):
        for rows in pool.map(Group.rows, missing):
            for row in rows:
                there[row.engine, row.script, row.name, row.number] = row
                print(row.json(), file=out, flush=True)
                if row.reasons():
                    print(f"{row.engine} {row.script}, {row.name}, {row.number}: {row.reasons()}", flush=True)
    return [there[key] for group in wanted for key in keys(group)]


def _verdict(rows: Sequence[Row]) -> tuple[int, int]:
    """Runs, and those that passed."""
    return sum(row.runs for row in rows), sum(row.runs for row in rows if not row.reasons())


def _figures(rows: Sequence[Row], timed: bool) -> list[str]:
    if not rows:
        return ["–", "–"] if timed else ["–"]
    runs, passed = _verdict(rows)
    times = [row.took_ms for row in rows if row.took_ms is not None]
    shown = f"{passed:,} of {runs:,}"
    span = f"{min(times):,.0f} to {max(times):,.0f}" if times else "–"
    return [shown, span] if timed else [shown]


def _table(script: str, found: Found) -> Iterator[str]:
    own = [each for each in SET_UPS if each.script == script]
    timed = any(each.bound_ms for each in own)
    heads = ["set-up", *(["bound, ms"] if timed else []), "passed on the kernel", *(["ms"] if timed else [])]
    heads += ["passed in the simulator", *(["ms"] if timed else [])]
    yield f"| {' | '.join(heads)} |"
    yield f"|---|{'--:|' * (len(heads) - 1)}"
    for each in own:
        cells = [
            f"{each.name} (flaky)" if each.flaky else each.name,
            *([f"{each.bound_ms:,}"] if each.bound_ms else []),
        ]
        for engine in ENGINES:
            cells += _figures(found.get((engine, script, each.name), []), timed)
        yield f"| {' | '.join(cells)} |"


def _stability(found: Found) -> str:
    """How many of the set-ups always passed, always failed and did both, on the kernel."""
    kinds = {"passed": 0, "failed": 0, "both": 0}
    flaky = 0
    for (engine, *set_up), rows in found.items():
        if engine == "linux":
            runs, passed = _verdict(rows)
            kind = "passed" if passed == runs else "both" if passed else "failed"
            kinds[kind] += 1
            flaky += kind == "both" and tuple(set_up) in FLAKY
    ignored = f"; the script marks {flaky} of these as flaky" if flaky else ""
    return (
        f"{kinds['passed']} of {sum(kinds.values())} set-ups passed in every run, {kinds['failed']} failed in every"
        f" run, and {kinds['both']} did both{ignored}"
    )


def _explained(known: Mapping[tuple[str, str, str], str], found: Found) -> Iterator[str]:
    by_cause: dict[str, list[str]] = defaultdict(list)
    for key, rows in found.items():
        if any(row.reasons() for row in rows):
            engine, script, name = key
            other = _IGNORED if (script, name) in FLAKY else "**Not traced.**"
            by_cause[known.get(key, other)].append(f"  - `{script}` on `{engine}`: {name}")
    for cause, where in by_cause.items():
        yield f"- {cause}"
        yield from where
    if not by_cause:
        yield "None."


def page(found: Found) -> str:
    totals = {}
    for script in SCRIPTS:
        rows = [row for (engine, of, _), each in found.items() for row in each if (engine, of) == ("linux", script)]
        totals[script] = f"{_verdict(rows)[0]:,}"
    tables = {f"{script}_table": "\n".join(_table(script, found)) for script in SCRIPTS}
    runs = sum(_verdict(rows)[0] for (engine, _, _), rows in found.items() if engine == "linux")
    return (
        (HERE / "page.md")
        .read_text(encoding="utf-8")
        .format(
            runs=f"{runs:,}",
            stability=_stability(found),
            causes="\n".join(_explained(causes(), found)),
            **totals,
            **tables,
        )
    )


def _named(name: str) -> str:
    if name not in SCRIPTS:
        raise argparse.ArgumentTypeError(f"there is no script '{name}'; there is {', '.join(SCRIPTS)}")
    return name


def main() -> int:
    reader = argparse.ArgumentParser(prog="python -m assurance.selftests")
    reader.add_argument("--count", type=int, default=1000, help="runs of each set-up on the kernel")
    reader.add_argument("--first", type=int, default=0, help="number of the first one")
    reader.add_argument("--simulated", type=int, default=100, help="runs of each set-up in the simulator")
    reader.add_argument("--jobs", type=int, default=1, help="boots at the same time")
    reader.add_argument("--kept", type=Path, help="folder of rows that are there; left out: the program's own")
    reader.add_argument("--out", type=Path, help="the page to write")
    reader.add_argument("scripts", nargs="*", type=_named, metavar="SCRIPT", help="left out: all of them")
    given = reader.parse_args()
    scripts = given.scripts or SCRIPTS
    folder = given.kept or KEPT / program(HERE, *sorted((HERE.parent / "joins").glob("case*.py")))
    folder.mkdir(parents=True, exist_ok=True)
    wanted = groups("linux", scripts, given.first, given.count)
    wanted += groups("sim", scripts, given.first, min(given.simulated, given.count))
    found = collected(run_missing(folder / "rows.jsonl", wanted, given.jobs))
    if given.out:
        given.out.write_text(page(found), encoding="utf-8")
    lines = unexplained(found, causes())
    print(*lines, sep="\n", file=sys.stderr)
    return int(any(line.startswith("linux") for line in lines))


if __name__ == "__main__":
    sys.exit(main())
