"""A scheduler and a congestion control are one file and one registry line each; all else follows from the registry.

A copy of the crates gets both; its generic property test, the command line, the schema and the documentation must know
them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from polypath import registry
from polypath.cli import app
from polypath.scenario import json_schema

ROOT = Path(__file__).resolve().parent.parent

SCHEDULER = """//! The first path with room.

use super::{Decision, Scheduler, SchedulerEntry, View, ready, usable};
use crate::registry::Parameter;

pub(super) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "first-ready",
    description: "The first path with room",
    source: "tests/test_extension.py",
    parameters: || vec![Parameter::integer("skip", 0, 0, 9, "paths to pass over")],
    make: |parameters| Box::new(FirstReady(parameters.integer("skip") as usize)),
};

struct FirstReady(usize);

impl Scheduler for FirstReady {
    fn select(&mut self, view: &View) -> Decision {
        assert!(std::env::var_os("POLYPATH_TRIP").is_none(), "first-ready was asked");
        let mut open = (0..view.paths.len()).filter(|&i| usable(&view.paths[i]) && ready(&view.paths[i]));
        match (&view.next, open.nth(self.0)) {
            (Some(_), Some(index)) => Decision::Send(index),
            _ => Decision::Wait,
        }
    }
}
"""

CONGESTION = """//! Reno under another name.

use super::{Ack, CongestionControl, CongestionEntry, reno};
use crate::path::Path;
use crate::registry::no_parameters;

pub(super) const ENTRY: CongestionEntry = CongestionEntry {
    name: "reno-again",
    description: "Reno under another name",
    source: "tests/test_extension.py",
    parameters: no_parameters,
    make: |_| Box::new(RenoAgain),
};

struct RenoAgain;

impl CongestionControl for RenoAgain {
    fn on_ack(&mut self, paths: &mut [Path], me: usize, ack: &Ack) {
        reno::avoid(&mut paths[me], ack);
    }
}
"""

DESCRIBE = """//! Prints what the registries say.

#[test]
fn describe() {
    let schedulers = serde_json::to_string(&polypath_transport::scheduler::REGISTRY.describe()).unwrap();
    let controllers = serde_json::to_string(&polypath_transport::congestion::REGISTRY.describe()).unwrap();
    println!("REGISTRY {schedulers}");
    println!("REGISTRY {controllers}");
}
"""


def cargo(tree: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    variables = {**os.environ, "CARGO_TARGET_DIR": f"{target}/extension", "POLYPATH_CASES": "60", **environment}
    command = ["cargo", "test", "--quiet", "--offline", "-p", "polypath-transport", *arguments]
    return subprocess.run(command, cwd=tree, env=variables, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The crates with a scheduler and a congestion control more: a file and a registry line each, with its `mod`."""
    tree = tmp_path_factory.mktemp("extended")
    shutil.copytree(ROOT / "crates", tree / "crates")
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(ROOT / name, tree / name)
    source = tree / "crates" / "transport" / "src"
    for kind, module, text in (
        ("scheduler", "first_ready", SCHEDULER),
        ("congestion", "reno_again", CONGESTION),
    ):
        (source / kind / f"{module}.rs").write_text(text)
        registered = source / kind / "mod.rs"
        lines = registered.read_text().replace("\nmod ", f"\nmod {module};\nmod ", 1)
        registered.write_text(lines.replace("entries: &[", f"entries: &[{module}::ENTRY,", 1))
    (tree / "crates" / "transport" / "tests" / "describe.rs").write_text(DESCRIBE)
    return tree


@pytest.fixture(scope="module")
def described(tree: Path) -> list[str]:
    done = cargo(tree, "--test", "describe", "--", "--nocapture")
    assert done.returncode == 0, done.stderr
    return [line.removeprefix("REGISTRY ") for line in done.stdout.splitlines() if line.startswith("REGISTRY ")]


@pytest.fixture
def extended(described: list[str], replace_registry: Callable[[Callable[[registry.Kind], str]], None]) -> None:
    """The package with the copy's registries in place of its own."""
    read, made = registry.read, dict(zip(("scheduler", "congestion"), described, strict=True))
    replace_registry(lambda kind: made.get(kind) or read(kind))


@pytest.mark.usefixtures("extended")
def test_the_command_the_schema_and_the_page_know_them(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = CliRunner().invoke(app, ["algorithms"]).stdout
    schema = json.dumps(json_schema())
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    page = __import__("generate").algorithms()
    for text in (listed, schema, page):
        assert "first-ready" in text
        assert "reno-again" in text
    assert registry.resolve("scheduler", "first-ready", {}) == {"skip": 0}
    with pytest.raises(registry.RegistryError, match="at most 9"):
        registry.resolve("scheduler", "first-ready", {"skip": 10})
    with pytest.raises(registry.RegistryError) as wrong:
        registry.find("scheduler", "first-redy")
    assert wrong.value.hint == "first-ready"


def test_the_generic_property_test_draws_them(tree: Path) -> None:
    drawn = cargo(tree, "--test", "stream", POLYPATH_TRIP="1")
    assert drawn.returncode != 0
    assert "first-ready was asked" in drawn.stdout + drawn.stderr
    held = cargo(tree, "--test", "stream")
    assert held.returncode == 0, held.stdout[-2000:] + held.stderr[-2000:]
