"""A scheduler, a congestion control, a queue discipline, a loss model and an application are a file each and lines in
one other, a setting of the transport a line and its use; all else follows from the registry.

A copy of the crates gets them. Its registries must be those of `tests/extended.py`, which `tests/test_extended.py`
shows to the Python package; its generic property tests and its runs must know them.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from polypath import registry

from . import extended
from .extended import DRIP, LIFO_PLANNED, NAPPED, NTH_PLANNED

pytestmark = pytest.mark.slow

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
use crate::path::Member;
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
    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        reno::avoid(path, ack);
    }
}
"""

QUEUE = """//! Last in, first out.

use super::{ByFlow, Dropped, Marks, Queued};
use crate::ids::Nanos;
use polypath_settings::model;

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

    fn make_room(&mut self, head: u64, dropped: &mut Dropped) {
        while head + self.1.len() as u64 > self.0.limit {
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

use polypath_settings::model;

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

APPLICATION = """//! The same bytes again and again.

use polypath_settings::{choice, model};
use polypath_transport::Nanos;

use super::kind::{Beginning, Begun, CONNECTIONS, Entry, Kind};
use super::session::{Io, Session, Side};

model! {
    "drip",
    "the same bytes again and again",
    "tests/test_extension.py";
    /// Settings of drops.
    DripConfig {
        /// Bytes of a drop.
        drop_bytes: u64 as Size = Integer(100),
        /// Time from one drop to the next.
        gap_ns: Nanos as Time,
        /// Number of drops.
        count: u64 as Integer.at_least(1).at_most(100) = Integer(3),
        /// Who hears of the last one.
        told: Told as Text = Text("nobody"),
        /// How long it goes on; left out: to the end of the run.
        duration_ns: Nanos as Period.or_rest(),
    }
}

choice! {
    /// Who hears of something.
    Told {
        Nobody = "nobody",
        Everybody = "everybody",
    }
}

pub(super) const ENTRY: Entry = Entry {
    model: MODEL,
    transports: CONNECTIONS,
};

impl Kind for DripConfig {
    fn fault(&self) -> Option<String> {
        self.within_bounds().err().map(|error| error.to_string())
    }

    fn begin(&self, at: Beginning) -> Begun {
        let ends_at = at.start.saturating_add(self.duration_ns);
        Begun::session(Drip { config: *self, made: 0, next: 0, ends_at })
    }
}

struct Drip {
    config: DripConfig,
    made: u64,
    next: Nanos,
    ends_at: Nanos,
}

impl Session for Drip {
    fn run(&mut self, io: &mut Io) {
        if io.side == Side::Server {
            if io.connection.at_end() {
                io.close();
            }
            return;
        }
        while self.made < self.config.count && io.due(self.next) {
            io.write(self.config.drop_bytes);
            self.made += 1;
            self.next = io.now + self.config.gap_ns;
        }
        if self.made == self.config.count || io.due(self.ends_at) {
            io.close();
        } else {
            *io.wake = self.next.min(self.ends_at);
        }
    }
}
"""

APPLICATION_LINES: Lines = (
    ("mod fetch;", "mod drip;"),
    ("pub use fetch::", "pub use drip::DripConfig;"),
    ("    fetch::ENTRY,", "    drip::ENTRY,"),
    ("    Fetch(FetchConfig),", "    Drip(DripConfig),"),
    ("            Self::Fetch(config) =>", "            Self::Drip(config) => (drip::ENTRY, config),"),
)

#: A setting and its use, each with what it goes before.
SETTING_LINES: Lines = (
    (
        "        ..\n        profile:",
        "        /// Naps of whoever acknowledges.\n        #[serde(default)]\n"
        "        naps: u32 as Integer.at_most(9).only(TCP).seldom() = 0,",
    ),
)
USE_LINES: Lines = (
    (
        "        let shortest = config.delayed_ack_ns;",
        '        let trip = std::env::var_os("POLYPATH_TRIP").is_some();\n'
        '        assert!(config.naps == 0 || !trip, "asked for {} naps", config.naps);',
    ),
)

DESCRIBE_LAB = """//! Prints what the registry says, and what the server of a plan's application received.

use arrow_cast::display::array_value_to_string;
use polypath_lab::{CaptureMode, Simulation};

#[test]
fn describe() {
    for kind in ["scheduler", "congestion", "application", "profile"] {
        println!("REGISTRY {}", polypath_lab::registry(kind).unwrap());
    }
    let Ok(plan) = std::env::var("POLYPATH_PLAN") else {
        return;
    };
    let mut simulation = Simulation::new(&plan, CaptureMode::None, None).unwrap();
    simulation.step_until(u64::MAX).unwrap();
    let recording = simulation.finish().unwrap();
    let tables = recording.tables();
    let (_, ends) = tables.iter().find(|(name, _)| *name == "connection_ends").unwrap();
    let received = ends.column_by_name("server_received_bytes").unwrap();
    println!("REGISTRY {}", array_value_to_string(received, 0).unwrap());
}
"""

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


#: Where the copy stands and is built: one place, so that cargo builds again only what changed since the last time.
KEPT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "extension"


def cargo(tree: Path, crate: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "CARGO_TARGET_DIR": str(KEPT), "POLYPATH_CASES": "60", **environment}
    command = ["cargo", "test", "--quiet", "--offline", "-p", crate, *arguments]
    return subprocess.run(command, cwd=tree, env=variables, capture_output=True, text=True, check=False)


def with_lines(text: str, lines: Lines) -> str:
    """Each of the lines before the first that begins as said."""
    for before, line in lines:
        assert f"\n{before}" in text, before
        text = text.replace(f"\n{before}", f"\n{line}\n{before}", 1)
    return text


def mirror(source: Path, copy: Path) -> None:
    """Makes a folder the same as another; a file that is the same already keeps its time."""
    wanted = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
    for path in copy.rglob("*"):
        if path.is_file() and path.relative_to(copy) not in wanted:
            path.unlink()
    for path in wanted:
        content = (source / path).read_bytes()
        if not (copy / path).is_file() or (copy / path).read_bytes() != content:
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            (copy / path).write_bytes(content)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The crates with a scheduler and a congestion control more: a file and a registry line each, with its `mod`."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mirror(extended_crates(tmp_path_factory.mktemp("extended")), KEPT / "tree")
        yield KEPT / "tree"


def extended_crates(tree: Path) -> Path:
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
    lab = tree / "crates" / "lab"
    (lab / "src" / "application" / "drip.rs").write_text(APPLICATION)
    registered = lab / "src" / "application" / "mod.rs"
    registered.write_text(with_lines(registered.read_text(), APPLICATION_LINES))
    (lab / "tests" / "describe.rs").write_text(DESCRIBE_LAB)
    for where, added_lines in (("settings/mod.rs", SETTING_LINES), ("tcp/delayed_ack.rs", USE_LINES)):
        changed = source / where
        changed.write_text(with_lines(changed.read_text(), added_lines))
    return tree


def describes(tree: Path, crate: str, **environment: str) -> list[str]:
    done = cargo(tree, crate, "--test", "describe", "--", "--nocapture", **environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return [line.removeprefix("REGISTRY ") for line in done.stdout.splitlines() if line.startswith("REGISTRY ")]


@pytest.fixture(scope="module")
def told(tree: Path) -> dict[registry.Kind, str]:
    """What the copy says of its registries."""
    queue, loss = describes(tree, "polypath-net")
    scheduler, congestion, application, profile = describes(tree, "polypath-lab")
    return {
        "scheduler": scheduler,
        "congestion": congestion,
        "queue": queue,
        "loss": loss,
        "application": application,
        "profile": profile,
    }


@pytest.mark.parametrize("kind", [*extended.ENTRIES, "profile"])
def test_the_copy_describes_what_the_python_package_is_shown(
    told: dict[registry.Kind, str], kind: registry.Kind
) -> None:
    assert extended.in_order(told[kind]) == extended.in_order(extended.described(kind))


def test_the_generic_property_test_draws_them(tree: Path) -> None:
    drawn = cargo(tree, "polypath-transport", "--test", "stream", POLYPATH_TRIP="1")
    assert drawn.returncode != 0
    assert "first-ready was asked" in drawn.stdout + drawn.stderr
    held = cargo(tree, "polypath-transport", "--test", "stream")
    assert held.returncode == 0, held.stdout[-2000:] + held.stderr[-2000:]


def test_a_new_queue_discipline_and_loss_model_take_what_is_planned(tree: Path) -> None:
    describes(tree, "polypath-net", POLYPATH_QUEUE=json.dumps(LIFO_PLANNED), POLYPATH_LOSS=json.dumps(NTH_PLANNED))
    held = cargo(tree, "polypath-net", "--test", "models")
    assert held.returncode == 0, held.stdout[-2000:] + held.stderr[-2000:]


def test_a_new_application_runs(tree: Path) -> None:
    assert describes(tree, "polypath-lab", POLYPATH_PLAN=extended.plan(DRIP))[4:] == ["6000"]


def test_a_new_setting_of_the_transport_takes_effect_within_its_bounds(tree: Path) -> None:
    text = extended.plan(NAPPED)
    plan = json.loads(text)
    for node in plan["nodes"]:
        node["stack"]["naps"] = 4
    asked = cargo(tree, "polypath-lab", "--test", "describe", POLYPATH_PLAN=json.dumps(plan), POLYPATH_TRIP="1")
    assert asked.returncode != 0
    assert "asked for 4 naps" in asked.stdout + asked.stderr
    assert describes(tree, "polypath-lab", POLYPATH_PLAN=text)[4:] == ["20000"]
    plan["nodes"][0]["stack"]["naps"] = 10
    refused = cargo(tree, "polypath-lab", "--test", "describe", POLYPATH_PLAN=json.dumps(plan))
    assert 'parameter: "naps", expected: "at most 9"' in refused.stdout + refused.stderr
