"""Counts the simulator's instructions per packet-hop and compares them with instructions.toml.

    python benches/instructions.py BINARY [--write]

BINARY is the example `work` of crates/lab in release mode. Cachegrind counts the same number every time, whatever
else the machine does; the difference of two simulated lengths leaves set-up out.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).with_name("instructions.toml")


def count(binary: str, work: str, seconds: float) -> tuple[int, int]:
    """Instructions and packet-hops of a work."""
    with tempfile.NamedTemporaryFile() as scratch:
        valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={scratch.name}"]
        done = subprocess.run([*valgrind, binary, work, str(seconds)], capture_output=True, text=True, check=True)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if found is None:
        raise SystemExit(f"valgrind said nothing of instructions:\n{done.stderr}")
    return int(found[1].replace(",", "")), int(json.loads(done.stdout)["packet_hops"])


def per_hop(binary: str, work: str, lengths: list[float]) -> float:
    (fewer, fewer_hops), (more, more_hops) = (count(binary, work, seconds) for seconds in lengths)
    return (more - fewer) / (more_hops - fewer_hops)


def verdicts(
    measured: dict[str, float], figures: dict[str, dict[str, Any]], tolerance: float
) -> list[tuple[str, bool]]:
    """A line for each bound of a work, its figure and what it may cost beside another work, and whether it is kept."""
    lines = []
    for work, figure in figures.items():
        bounds = [(f"{figure['instructions']} + {tolerance:.0%}", figure["instructions"] * (1 + tolerance))]
        if beside := figure.get("at_most"):
            bounds.append((f"{beside['times']} times {beside['of']}", beside["times"] * measured[beside["of"]]))
        for bound, most in bounds:
            ok = measured[work] <= most
            word = "ok" if ok else "MORE"
            lines.append((f"{work} {measured[work]:.0f} instructions per packet-hop, bound {bound}: {word}", ok))
    return lines


def main(arguments: list[str]) -> int:
    binary = arguments[0]
    text = FIGURES.read_text()
    figures = tomllib.loads(text)
    tolerance = figures.pop("tolerance")
    measured = {work: per_hop(binary, work, figure["lengths"]) for work, figure in figures.items()}
    lines = verdicts(measured, figures, tolerance)
    for line, _ in lines:
        print(line)
    if "--write" in arguments:
        for work, count in measured.items():
            text = re.sub(rf"(\[{work}\][^\[]*\[[^\]]*\]\ninstructions = )\d+", rf"\g<1>{count:.0f}", text)
        FIGURES.write_text(text)
        return 0
    missed = sum(not ok for _, ok in lines)
    print(f"{len(lines) - missed} passed, {missed} failed")
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
