"""The page of the documentation."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .shared import ASLEEP, LATE, NOTICED, ROOT, UNBUILT, Package, Verdict, wilson

TEXT: Final = Path(__file__).parent / "page.md"
REASONS: Final = Path(__file__).parent / "reasons.toml"


@dataclass(frozen=True)
class Sample:
    """Verdicts of the mutants that a seed drew."""

    package: Package
    seed: int
    #: All that could be drawn.
    of: int
    verdicts: Sequence[Verdict]


@dataclass(frozen=True)
class Reason:
    """Why no test notices a mutant."""

    mutant: str
    #: The line that it changes, without indentation.
    line: str
    text: str
    #: Whether nothing that can be observed depends on it.
    equivalent: bool = False

    @classmethod
    def all(cls) -> list[Reason]:
        stated = tomllib.loads(REASONS.read_text(encoding="utf-8")).get("asleep", [])
        return [cls(it["mutant"], it["line"], it["reason"], it.get("equivalent", False)) for it in stated]


def described(name: str) -> tuple[str, str]:
    """What a mutant does without the numbers that move, and the line that it changes."""
    place, _, change = name.partition(": ")
    path, line, _ = place.split(":")
    if path.endswith(".py"):
        change = change.split()[0]
    return f"{path}: {change}", (ROOT / path).read_text(encoding="utf-8").splitlines()[int(line) - 1].strip()


def reason(name: str, stated: Iterable[Reason]) -> Reason | None:
    return next((it for it in stated if (it.mutant, it.line) == described(name)), None)


def share(hits: int, of: int) -> str:
    low, high = wilson(hits, of)
    return f"{hits} of {of}, {hits / max(of, 1):.1%} ({low:.1%} to {high:.1%})"


def counts(samples: Sequence[Sample], stated: Sequence[Reason]) -> list[str]:
    lines = [
        "| package | seed | mutants | drawn | not compilable | by its own tests | by those above | timed out | asleep "
        "| noticed, 95 % | without equivalent ones |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for sample in samples:
        outcomes = Counter(verdict.outcome for verdict in sample.verdicts)
        own = sum(verdict.outcome == NOTICED and verdict.stage == 0 for verdict in sample.verdicts)
        slept = [verdict for verdict in sample.verdicts if verdict.outcome == ASLEEP]
        same = sum(1 for verdict in slept if (why := reason(verdict.name, stated)) and why.equivalent)
        hits, of = outcomes[NOTICED] + outcomes[LATE], len(sample.verdicts) - outcomes[UNBUILT]
        cells = [
            f"`{sample.package.name}`",
            *map(str, (sample.seed,)),
            f"{sample.of:,}",
            *map(str, (len(sample.verdicts), outcomes[UNBUILT], own, outcomes[NOTICED] - own)),
            *map(str, (outcomes[LATE], len(slept))),
            share(hits, of),
            share(hits, of - same),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def stages(packages: Iterable[Package]) -> list[str]:
    lines = ["| package | own tests | tests of packages above |", "|---|---|---|"]
    for package in packages:
        own, *above = (f"{it.title} of `{it.only}`" if it.only else it.title for it in package.stages)
        lines.append(f"| `{package.name}` | {own} | {', '.join(above)} |")
    return lines


def code(text: str) -> str:
    """Within a cell of a table."""
    fence = "``" if "`" in text else "`"
    return fence + text.replace("|", "\\|") + fence


def asleep(samples: Sequence[Sample], stated: Sequence[Reason]) -> list[str]:
    lines = ["| mutant | line | |", "|---|---|---|"]
    slept = {it.name for sample in samples for it in sample.verdicts if it.outcome == ASLEEP}
    for name in sorted(slept, key=lambda name: [int(it) if it.isdigit() else it for it in re.split(r"(\d+)", name)]):
        why = reason(name, stated)
        told = "" if why is None else f"Equivalent: {why.text}." if why.equivalent else f"{why.text}."
        mutant, line = described(name)
        lines.append(f"| {code(mutant)} | {code(line)} | {told} |")
    return lines


def stale(samples: Sequence[Sample], stated: Sequence[Reason]) -> list[str]:
    """Reasons of mutants that tests notice, or of lines that are no more."""
    noticed = {described(it.name) for sample in samples for it in sample.verdicts if it.outcome != ASLEEP}
    found = []
    for it in stated:
        path = ROOT / it.mutant.partition(": ")[0]
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        if (it.mutant, it.line) in noticed or it.line not in map(str.strip, lines):
            found.append(f"stale reason: {it.mutant}: {it.text}")
    return found


def page(samples: Sequence[Sample]) -> str:
    stated = Reason.all()
    told: Mapping[str, Sequence[str]] = {
        "{stages}": stages({sample.package.name: sample.package for sample in samples}.values()),
        "{counts}": counts(samples, stated),
        "{asleep}": asleep(samples, stated),
    }
    text = TEXT.read_text(encoding="utf-8")
    for place, lines in told.items():
        text = text.replace(place, "\n".join(lines))
    return text
