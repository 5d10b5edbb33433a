"""Mutants of crates, by cargo-mutants."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from typing import Final

from .shared import ASLEEP, LATE, NOTICED, ROOT, TREE, UNBUILT, WORK, Package, Stage

#: Mutants between which what was found out is kept.
BATCH: Final = 10
#: Bytes of memory of a process, as a mutant may never stop to allocate.
MEMORY: Final = 12 << 30
OUTCOMES: Final = {"CaughtMutant": NOTICED, "MissedMutant": ASLEEP, "Unviable": UNBUILT, "Timeout": LATE}

OWN: Final = ("--lib", "--tests")
TRANSPORT: Final = Package(
    "polypath-transport",
    "crates/transport/src/",
    120,
    (
        Stage("`cargo test -p polypath-transport`", ("polypath-transport",), 120),
        Stage("`cargo test -p polypath-lab -p polypath-interop`", ("polypath-lab", "polypath-interop"), 240),
    ),
    # what fuzz targets check, and no endpoint
    left_out=("crates/transport/src/quic/fuzz.rs",),
)
NET: Final = Package(
    "polypath-net",
    "crates/net/src/",
    80,
    (
        Stage("`cargo test -p polypath-net`", ("polypath-net",), 120),
        Stage("`cargo test -p polypath-lab`", ("polypath-lab",), 240),
    ),
)


def names(package: Package) -> list[str]:
    """Of all its mutants."""
    left_out = [word for path in package.left_out for word in ("--exclude", path)]
    command = ["cargo", "mutants", "--list", "--json", "--no-config", "-p", package.name, *left_out]
    told = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [str(mutant["name"]) for mutant in json.loads(told)]


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "CARGO_TARGET_DIR": str(WORK / "build"),
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "CARGO_INCREMENTAL": "1",
        # a case that one mutant fails is not to be tried first on the next
        "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "true",
    }


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def check(stage: Stage) -> None:
    """Without a fault the tests pass."""
    packages = [word for name in stage.arguments for word in ("-p", name)]
    command = ["cargo", "test", "--locked", "--quiet", *packages, *OWN]
    subprocess.run(command, cwd=TREE, env=environment(), check=True, stdout=subprocess.DEVNULL, preexec_fn=limited)


def run(package: Package, stage: Stage, chosen: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The outcome of each."""
    out = WORK / "out"
    for first in range(0, len(chosen), BATCH):
        batch = chosen[first : first + BATCH]
        shutil.rmtree(out, ignore_errors=True)
        command = ["cargo", "mutants", "--in-place", "--no-config", "--baseline", "skip", "--output", str(out)]
        command += ["--timeout", str(stage.limit), "--build-timeout", "600", "--colors", "never", "-p", package.name]
        command += [word for name in stage.arguments for word in ("--test-package", name)]
        command += [word for name in batch for word in ("--re", f"^{re.escape(name)}$")]
        done = subprocess.run(
            [*command, "--", *OWN],
            cwd=TREE,
            env=environment(),
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=limited,
        )
        report = out / "mutants.out" / "outcomes.json"
        if not report.exists():
            raise SystemExit(f"cargo mutants ended with {done.returncode}:\n{done.stdout}")
        told = {
            outcome["scenario"]["Mutant"]["name"]: OUTCOMES[outcome["summary"]]
            for outcome in json.loads(report.read_text(encoding="utf-8"))["outcomes"]
        }
        if set(told) != set(batch):
            raise SystemExit(f"cargo mutants ran other mutants than it was asked for:\n{done.stdout}")
        yield from told.items()
