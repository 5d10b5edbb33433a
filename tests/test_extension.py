"""A scheduler, a congestion control, a queue discipline, a loss model and an application are a file each and lines in
one other, a setting of the transport a line and its use; all else follows from the registry.

A copy of the crates gets them; its generic property tests, the command line, the schema, scenarios and the
documentation must know them.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError, create_model
from typer.testing import CliRunner

from polypath import registry
from polypath.cli import app
from polypath.scenario import Scenario, ScenarioError, declared, json_schema, models, schema
from polypath.scenario.network import Channel
from polypath.scenario.tables import Tables

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

#: In a process of its own, since the table of a host's settings is made when it is imported.
NAPPING = """
import json, sys, types
from polypath import registry
described, read = json.load(sys.stdin), registry.read
registry.read = lambda kind: described.get(kind) or read(kind)
from polypath.scenario import Scenario, ScenarioError, json_schema
from polypath.formats import plan as plans

written = {
    "duration": "9 s",
    "defaults": {"naps": 4},
    "host": {"client": {}, "server": {"naps": 0}},
    "link": {"path": {"ends": ["client", "server"], "rate": "10 Mbps", "delay": "5 ms"}},
    "application": [{"kind": "bulk", "transport": "tcp", "size": "20 kB"}],
}
# The native module is not the copy's.
plans._core = types.SimpleNamespace(check=lambda plan: None)
scenario = Scenario.from_data(written)
wrong = []
for place in ({"defaults": {"naps": 10}}, {"defaults": {"nap": 1}}, {"application": [{**written["application"][0],
              "transport": "quic", "stack": {"naps": 2}}]}):
    try:
        Scenario.from_data({**written, **place})
    except ScenarioError as error:
        wrong.append(str(error))
plan = scenario.plan()
schema = json_schema()
print(json.dumps({"plan": plan.json(), "wrong": wrong, "again": plans.scenario_of(plan, "the plan").plan().json(),
                  "schema": json.dumps(schema)}))
"""

DESCRIBE_LAB = """//! Prints what the registry says, and what the server of a plan's application received.

use arrow_cast::display::array_value_to_string;
use polypath_lab::{CaptureMode, Simulation};

#[test]
fn describe() {
    println!("REGISTRY {}", polypath_lab::registry("application").unwrap());
    println!("REGISTRY {}", polypath_lab::registry("profile").unwrap());
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

DESCRIBE = """//! Prints what the registries say.

#[test]
fn describe() {
    let schedulers = serde_json::to_string(&polypath_transport::scheduler::REGISTRY.describe()).unwrap();
    let controllers = serde_json::to_string(&polypath_transport::congestion::REGISTRY.describe()).unwrap();
    println!("REGISTRY {schedulers}");
    println!("REGISTRY {controllers}");
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
    (tree / "crates" / "transport" / "tests" / "describe.rs").write_text(DESCRIBE)
    return tree


def describes(tree: Path, crate: str, **environment: str) -> list[str]:
    done = cargo(tree, crate, "--test", "describe", "--", "--nocapture", **environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return [line.removeprefix("REGISTRY ") for line in done.stdout.splitlines() if line.startswith("REGISTRY ")]


@pytest.fixture(scope="module")
def described(tree: Path) -> dict[str, str]:
    known = dict(zip(("scheduler", "congestion"), describes(tree, "polypath-transport"), strict=True))
    known |= dict(zip(("queue", "loss"), describes(tree, "polypath-net"), strict=True))
    return known | {"application": describes(tree, "polypath-lab")[0]}


@pytest.fixture(scope="module")
def profiles(tree: Path) -> str:
    return describes(tree, "polypath-lab")[1]


@pytest.fixture
def extended(
    described: dict[str, str],
    replace_registry: Callable[[Callable[[registry.Kind], str]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """The package with the copy's registries in place of its own."""
    read = registry.read
    declared.tables.cache_clear()
    replace_registry(lambda kind: described.get(kind) or read(kind))
    # The native module is not the copy's.
    monkeypatch.setattr(registry, "fault", lambda kind, name, given: None)
    yield
    declared.tables.cache_clear()


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


@pytest.mark.usefixtures("extended")
def test_a_scenario_takes_a_new_application(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: dict[str, Any] = {
        "duration": "9 s",
        "host": {"client": {}, "server": {}},
        "link": {"path": {"ends": ["client", "server"], "rate": "10 Mbps", "delay": "5 ms"}},
        "application": [{"kind": "drip", "start": "1 s", "drop": "2 kB", "gap": "20 ms"}],
    }
    monkeypatch.setattr(schema, "Tables", create_model("Tables", __base__=Tables))
    extended = create_model("Scenario", __base__=Scenario)
    plan = extended.from_data(written).plan()
    [planned] = plan.view["applications"]
    assert planned["transport"] == "mptcp"
    work = {"drop_bytes": 2000, "gap_ns": 20_000_000, "count": 3, "told": "nobody", "duration_ns": 8_000_000_000}
    assert planned["work"] == {"kind": "drip", **work}
    assert describes(tree, "polypath-lab", POLYPATH_PLAN=plan.json())[2:] == ["6000"]
    table = json_schema()["$defs"]["Drip"]
    assert table["required"] == ["kind", "gap"]
    assert table["properties"]["told"]["enum"] == ["nobody", "everybody"]
    assert table["properties"]["drop"]["description"] == "Bytes of a drop."
    for key, value, message in (
        ("count", 0, "application 1.count: must be at least 1, not 0"),
        ("told", "nobdy", "application 1.told: 'nobdy' is not nobody or everybody; did you mean 'nobody'?"),
        ("dorp", "1 kB", "unknown key 'dorp' in application 1; did you mean 'drop'?"),
        ("kind", "drop", "application 1: unknown kind 'drop'; did you mean 'drip'?"),
    ):
        with pytest.raises(ScenarioError) as wrong:
            extended.from_data({**written, "application": [{**written["application"][0], key: value}]})
        assert str(wrong.value) == message
    listed = CliRunner().invoke(app, ["algorithms", "application"]).stdout
    assert "drip" in listed
    assert "drop = 100 B" in listed


def test_a_scenario_takes_a_new_setting_of_the_transport(tree: Path, profiles: str) -> None:
    command = [sys.executable, "-c", NAPPING]
    told = subprocess.run(command, input=json.dumps({"profile": profiles}), capture_output=True, text=True, check=True)
    found = json.loads(told.stdout)
    client, server = json.loads(found["plan"])["nodes"]
    assert client["stack"]["naps"] == 4
    assert "naps" not in server["stack"]
    assert found["again"] == found["plan"]
    assert "Naps of whoever acknowledges." in found["schema"]
    assert found["wrong"] == [
        "defaults.naps: must be at most 9, not 10",
        "unknown key 'nap' in defaults; did you mean 'naps'?",
        "'naps' changes nothing for an application over quic; leave it out",
    ]
    plan = json.loads(found["plan"])
    for node in plan["nodes"]:
        node["stack"]["naps"] = 4
    asked = cargo(tree, "polypath-lab", "--test", "describe", POLYPATH_PLAN=json.dumps(plan), POLYPATH_TRIP="1")
    assert asked.returncode != 0
    assert "asked for 4 naps" in asked.stdout + asked.stderr
    assert describes(tree, "polypath-lab", POLYPATH_PLAN=found["plan"])[2:] == ["20000"]
    plan["nodes"][0]["stack"]["naps"] = 10
    refused = cargo(tree, "polypath-lab", "--test", "describe", POLYPATH_PLAN=json.dumps(plan))
    assert 'parameter: "naps", expected: "at most 9"' in refused.stdout + refused.stderr
