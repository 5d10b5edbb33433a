"""Mutants of crates, by cargo-mutants."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .shared import ASLEEP, LATE, NOTICED, ROOT, TREE, UNBUILT, WORK, Package, Stage, ended


def near(test: str) -> Sequence[str]:
    return ("--lib", "--test", test)


#: Tests of a crate that hold most of a file or folder of it.
NEAR_TRANSPORT: Final = {
    "tcp/": near("tcp"),
    "linux/": near("tcp"),
    "path/": near("tcp"),
    "mptcp/": near("mptcp"),
    "path_manager/": near("mptcp"),
    "quic/crypto/": near("quic_crypto"),
    "quic/": near("quic"),
    "congestion/": near("congestion"),
    "scheduler/": near("scheduler"),
    "stream/": near("stream"),
}
NEAR_NET: Final = {
    "channel/trace": near("trace"),
    "channel/": near("channel"),
    "wifi/": near("wifi"),
    "routing": near("routing"),
    "": near("network"),
}
RECORDED: Final = {"": ("--test", "integrity", "--", "recorded")}
TRANSPORT: Final = Package(
    "polypath-transport",
    "crates/transport/src/",
    (
        Stage(
            "`cargo test -p polypath-transport`",
            ("polypath-transport",),
            120,
            ("crates/transport/", "crates/wire/"),
            NEAR_TRANSPORT,
        ),
        Stage("`cargo test -p polypath-lab`", ("polypath-lab",), 240, ("crates/", "Cargo."), RECORDED),
        Stage(
            "`cargo test -p polypath-interop --test noq`",
            ("polypath-interop",),
            240,
            ("crates/", "Cargo."),
            only="quic/",
            all=("--test", "noq"),
        ),
    ),
    # what fuzz targets check, and no endpoint
    left_out=("crates/transport/src/quic/fuzz.rs",),
)
NET: Final = Package(
    "polypath-net",
    "crates/net/src/",
    (
        Stage("`cargo test -p polypath-net`", ("polypath-net",), 120, ("crates/net/",), NEAR_NET),
        Stage("`cargo test -p polypath-lab`", ("polypath-lab",), 240, ("crates/", "Cargo."), RECORDED),
    ),
)


#: Seconds of CPU time in which a mutant is compiled.
BUILD_LIMIT: Final = 2400


def mutants(package: Package) -> dict[str, dict[str, Any]]:
    """All of it by their names."""
    left_out = [word for path in package.left_out for word in ("--exclude", path)]
    command = ["cargo", "mutants", "--list", "--json", "--no-config", "-p", package.name, *left_out]
    told = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {str(mutant["name"]): mutant for mutant in json.loads(told)}


def mutated(source: str, mutant: Mapping[str, Any]) -> str:
    """A file with the fault: another text in place of a span."""
    lines = source.splitlines(keepends=True)

    def offset(place: Mapping[str, int]) -> int:
        return sum(map(len, lines[: place["line"] - 1])) + place["column"] - 1

    span = mutant["span"]
    return source[: offset(span["start"])] + str(mutant["replacement"]) + source[offset(span["end"]) :]


def environment() -> dict[str, str]:
    return {
        "CARGO_TARGET_DIR": str(WORK / "build"),
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "CARGO_INCREMENTAL": "1",
        # a case that one mutant fails is not to be tried first on the next
        "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "true",
        # snapshots stay as they are
        "INSTA_UPDATE": "no",
    }


def tested(stage: Stage, which: Sequence[str]) -> str:
    """How the tests of a stage end on the tree as it is."""
    packages = [word for name in stage.arguments for word in ("-p", name)]
    command = ["cargo", "test", "--locked", "--quiet", *packages]
    if ended([*command, "--no-run", *which], environment(), BUILD_LIMIT) != 0:
        return UNBUILT
    code = ended([*command, *which], environment(), stage.limit)
    return LATE if code is None else NOTICED if code else ASLEEP


def check(stage: Stage) -> None:
    """Without a fault the tests pass."""
    if (outcome := tested(stage, stage.all)) != ASLEEP:
        raise SystemExit(f"{stage.title} without a fault: {outcome}")


def run(package: Package, stage: Stage, chosen: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The outcome of each. The nearest tests come first, as they are soon built and mostly notice."""
    there = mutants(package)
    for name in chosen:
        path = TREE / there[name]["file"]
        below = path.relative_to(TREE).as_posix().removeprefix(package.folder)
        first = next((test for start, test in stage.nearest.items() if below.startswith(start)), None)
        source = path.read_text(encoding="utf-8")
        try:
            path.write_text(mutated(source, there[name]), encoding="utf-8")
            outcome = ASLEEP if first is None else tested(stage, first)
            yield name, tested(stage, stage.all) if outcome == ASLEEP else outcome
        finally:
            path.write_text(source, encoding="utf-8")
