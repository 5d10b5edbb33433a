"""A scheduler, a congestion control, a queue discipline and a loss model are a file each and lines in one other; all
else follows from the registry.

A copy of the crates gets them; its generic property tests, the command line, the schema, scenarios and the
documentation must know them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError, create_model
from typer.testing import CliRunner

from polypath import registry
from polypath.cli import app
from polypath.scenario import json_schema, models
from polypath.scenario.network import Channel

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

QUEUE = """//! Last in, first out.

use super::{ByFlow, Dropped, Marks, Queued};
use crate::ids::Nanos;
use crate::model::model;

model! {
    "lifo",
    "last in, first out",
    "tests/test_extension.py";
    /// Settings of the stack.
    LifoConfig {
        /// Most packets.
        limit: u64 as Packets = Integer(100),
        /// How long a packet may have waited.
        patience_ns: u64 as Period = Integer(7_000_000),
    }
}

#[derive(Debug)]
pub(super) struct Lifo(pub LifoConfig, pub Vec<Queued>);

impl ByFlow for Lifo {
    fn take(&mut self, packet: Queued, _flow: u32) {
        self.1.push(packet);
    }

    fn make_room(&mut self, dropped: &mut Dropped) {
        while self.1.len() as u64 > self.0.limit {
            dropped.push((self.1.remove(0).slot, crate::packet::DropReason::QueueFull));
        }
    }

    fn next(&mut self, _now: Nanos, _marks: &mut dyn Marks, _dropped: &mut Dropped) -> Option<Queued> {
        self.1.pop()
    }

    fn waiting(&self) -> (u64, u64) {
        (self.1.len() as u64, self.1.iter().map(|packet| u64::from(packet.size)).sum())
    }

    fn drain(&mut self) -> Vec<Queued> {
        std::mem::take(&mut self.1)
    }
}
"""

Lines = tuple[tuple[str, str], ...]

#: Each with what it goes before.
QUEUE_LINES: Lines = (
    ("mod pie;", "mod lifo;"),
    ("pub use pie::PieConfig;", "pub use lifo::LifoConfig;"),
    ("    red::MODEL,", "    lifo::MODEL,"),
    ("    Pie(PieConfig),", "    Lifo(LifoConfig),"),
    ("            Self::Pie(config) =>", "            Self::Lifo(config) => config.within_bounds(),"),
    (
        "            QueueConfig::Pie(config) =>",
        "            QueueConfig::Lifo(config) => Self::ByFlow(Box::new(lifo::Lifo(config, Vec::new()))),",
    ),
)

LOSS = """//! Loses one packet in so many, always the same ones.

use crate::model::model;

model! {
    "every-nth",
    "loses one packet in so many",
    "tests/test_extension.py";
    /// Settings of regular losses.
    EveryNthConfig {
        /// One in so many.
        every: u32 as Integer.at_least(1),
        /// Lost so far.
        lost: u32 as Integer.at_least(0) = Integer(0),
    }
}
"""

LOSS_LINES: Lines = (
    ("mod random;", "mod every_nth;"),
    ("pub use random::RandomConfig;", "pub use every_nth::EveryNthConfig;"),
    ("    random::MODEL,", "    every_nth::MODEL,"),
    ("    GilbertElliott(GilbertElliottConfig),", "    EveryNth(EveryNthConfig),"),
    ("            Self::GilbertElliott(config) =>", "            Self::EveryNth(config) => config.within_bounds(),"),
    ("    GilbertElliott(GilbertElliott),", "    EveryNth(EveryNthConfig, u32),"),
    (
        "            LossConfig::GilbertElliott(config) =>",
        "            LossConfig::EveryNth(config) => Self::EveryNth(config, 0),",
    ),
    (
        "            Self::GilbertElliott(chain) =>",
        "            Self::EveryNth(config, count) => {\n                *count += 1;\n"
        "                count.is_multiple_of(config.every)\n            }",
    ),
)

DESCRIBE_NETWORK = """//! Prints what the registries say, and takes the models of a plan.

use polypath_net::{LOSS_MODELS, LossConfig, QUEUE_MODELS, QueueConfig};

#[test]
fn describe() {
    println!("REGISTRY {}", serde_json::to_string(QUEUE_MODELS).unwrap());
    println!("REGISTRY {}", serde_json::to_string(LOSS_MODELS).unwrap());
    if let Ok(text) = std::env::var("POLYPATH_QUEUE") {
        serde_json::from_str::<QueueConfig>(&text).unwrap().check().unwrap();
    }
    if let Ok(text) = std::env::var("POLYPATH_LOSS") {
        serde_json::from_str::<LossConfig>(&text).unwrap().check().unwrap();
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


def cargo(tree: Path, crate: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    variables = {**os.environ, "CARGO_TARGET_DIR": f"{target}/extension", "POLYPATH_CASES": "60", **environment}
    command = ["cargo", "test", "--quiet", "--offline", "-p", crate, *arguments]
    return subprocess.run(command, cwd=tree, env=variables, capture_output=True, text=True, check=False)


def with_lines(text: str, lines: Lines) -> str:
    """Each of the lines before the first that begins as said."""
    for before, line in lines:
        assert f"\n{before}" in text, before
        text = text.replace(f"\n{before}", f"\n{line}\n{before}", 1)
    return text


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
    network = tree / "crates" / "net"
    for kind, module, text, added in (("queue", "lifo", QUEUE, QUEUE_LINES), ("loss", "every_nth", LOSS, LOSS_LINES)):
        (network / "src" / kind / f"{module}.rs").write_text(text)
        registered = network / "src" / kind / "mod.rs"
        registered.write_text(with_lines(registered.read_text(), added))
    (network / "tests" / "describe.rs").write_text(DESCRIBE_NETWORK)
    (tree / "crates" / "transport" / "tests" / "describe.rs").write_text(DESCRIBE)
    return tree


def describes(tree: Path, crate: str, **environment: str) -> list[str]:
    done = cargo(tree, crate, "--test", "describe", "--", "--nocapture", **environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return [line.removeprefix("REGISTRY ") for line in done.stdout.splitlines() if line.startswith("REGISTRY ")]


@pytest.fixture(scope="module")
def described(tree: Path) -> dict[str, str]:
    known = dict(zip(("scheduler", "congestion"), describes(tree, "polypath-transport"), strict=True))
    return known | dict(zip(("queue", "loss"), describes(tree, "polypath-net"), strict=True))


@pytest.fixture
def extended(
    described: dict[str, str],
    replace_registry: Callable[[Callable[[registry.Kind], str]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """The package with the copy's registries in place of its own."""
    read = registry.read
    models.tables.cache_clear()
    replace_registry(lambda kind: described.get(kind) or read(kind))
    # The native module is not the copy's.
    monkeypatch.setattr(registry, "fault", lambda kind, name, given: None)
    yield
    models.tables.cache_clear()


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
    drawn = cargo(tree, "polypath-transport", "--test", "stream", POLYPATH_TRIP="1")
    assert drawn.returncode != 0
    assert "first-ready was asked" in drawn.stdout + drawn.stderr
    held = cargo(tree, "polypath-transport", "--test", "stream")
    assert held.returncode == 0, held.stdout[-2000:] + held.stderr[-2000:]


@pytest.mark.usefixtures("extended")
def test_a_scenario_takes_a_new_queue_discipline_and_loss_model(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = create_model("Tables", __base__=Channel)
    channel = tables.model_validate(
        {"queue": {"kind": "lifo", "patience": "20 ms"}, "loss": {"kind": "every-nth", "every": 50}}
    )
    assert channel.queue is not None
    assert channel.loss is not None
    queue, loss = channel.queue.planned(), channel.loss.planned()
    assert queue == {"kind": "lifo", "limit": 100, "patience_ns": 20_000_000}
    assert loss == {"kind": "every-nth", "every": 50, "lost": 0}
    assert models.Discipline.written(queue) == {"kind": "lifo", "limit": "100 packets", "patience": "20 ms"}
    describes(tree, "polypath-net", POLYPATH_QUEUE=json.dumps(queue), POLYPATH_LOSS=json.dumps(loss))
    held = cargo(tree, "polypath-net", "--test", "models")
    assert held.returncode == 0, held.stdout[-2000:] + held.stderr[-2000:]
    with pytest.raises(ValidationError, match="every"):
        tables.model_validate({"loss": {"kind": "every-nth", "every": 0}})
    with pytest.raises(ValidationError, match="required"):
        tables.model_validate({"loss": {"kind": "every-nth"}})
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    page = __import__("generate").algorithms()
    listed = CliRunner().invoke(app, ["algorithms"]).stdout
    assert "How long a packet may have waited" in page
    assert "lifo" in listed
