"""Imports point one way, in Python and in Rust."""

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .rust_files import Crate, Module, ring

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "polypath"

#: What each part of the package may import of the others.
PYTHON = {
    "errors": set(),
    "extension": {"errors"},
    "folders": set(),
    "recorded": set(),
    "units": {"errors"},
    # routes are asked of the core
    "plan": {"_core", "errors", "units"},
    "registry": {"_core", "errors", "units"},
    # what a notebook shows of them is imported when one asks
    "scenario": {"errors", "notebook", "plan", "recorded", "registry", "units"},
    "formats": {"_core", "errors", "plan", "registry", "results", "scenario", "units"},
    "labs": {"measures", "plan", "results", "scenario", "statistics", "units"},
    # what a run's folder says of it is imported when it is written, what a notebook shows when one asks
    "results": {"_core", "errors", "measures", "notebook", "plan", "recorded", "registry", "units"},
    "measures": {"results"},
    "statistics": {"measures", "plan", "registry", "results"},
    "stacks": {"errors"},
    "interop": {"engines", "errors", "results", "scenario", "stacks", "sweeps"},
    "capture": {"_core", "errors", "results"},
    "engines": {
        "_core",
        "capture",
        "errors",
        "folders",
        "plan",
        "recorded",
        "registry",
        "results",
        "scenario",
        "stacks",
        "units",
    },
    "fidelity": {"scenario"},
    "grading": {"engines", "errors", "labs", "measures", "registry", "results", "scenario", "sweeps", "units"},
    "plots": {"measures", "plan", "results", "statistics"},
    "report": {"labs", "measures", "plan", "results", "statistics"},
    "playground": {"errors", "labs", "registry", "report", "results", "scenario"},
    "progress": set(),
    "remedies": {"engines", "results", "scenario"},
    "twin": {"capture", "engines", "results", "scenario"},
    "running": {"engines", "recorded", "results", "scenario"},
    "sweeps": {
        "engines",
        "errors",
        "measures",
        "notebook",
        "plan",
        "progress",
        "recorded",
        "results",
        "scenario",
        "statistics",
        "units",
    },
    "what_if": {"measures", "plan", "registry", "results", "scenario", "statistics", "sweeps"},
    "notebook": {"_core", "measures", "plots", "report", "results", "scenario", "statistics", "sweeps"},
    "bundles": {
        "_core",
        "engines",
        "errors",
        "measures",
        "plan",
        "recorded",
        "results",
        "scenario",
        "statistics",
        "sweeps",
    },
    "bisect": {"engines"},
    "cli": {
        "_core",
        "bisect",
        "bundles",
        "capture",
        "engines",
        "errors",
        "fidelity",
        "folders",
        "formats",
        "grading",
        "interop",
        "labs",
        "measures",
        "plan",
        "playground",
        "plots",
        "recorded",
        "registry",
        "remedies",
        "report",
        "results",
        "running",
        "scenario",
        "statistics",
        "sweeps",
        "twin",
        "units",
        "what_if",
    },
    "command": {"cli"},
    "__main__": {"command"},
    "interface": {
        "capture",
        "engines",
        "labs",
        "measures",
        "progress",
        "recorded",
        "results",
        "running",
        "scenario",
        "statistics",
        "sweeps",
    },
    "stepping": {"_core", "engines", "errors", "interface", "results", "running", "scenario", "units"},
    "gym": {"_core", "engines", "interface", "results", "scenario", "stepping"},
    "__init__": {
        "_core",
        "capture",
        "engines",
        "errors",
        "extension",
        "interface",
        "labs",
        "measures",
        "plots",
        "recorded",
        "results",
        "scenario",
        "stepping",
        "sweeps",
    },
}

#: What each crate may use of the others, tests included.
RUST = {
    "polypath-prefetch": set(),
    "polypath-settings": set(),
    "polypath-wire": set(),
    "polypath-net": {"polypath-prefetch", "polypath-settings"},
    "polypath-switch": {"polypath-wire", "polypath-net"},
    "polypath-transport": {"polypath-prefetch", "polypath-settings", "polypath-wire"},
    "polypath-trace": {"polypath-wire"},
    "polypath-capture": {"polypath-wire", "polypath-trace"},
    "polypath-noq": {"polypath-transport"},
    "polypath-lab": {
        "polypath-prefetch",
        "polypath-settings",
        "polypath-wire",
        "polypath-net",
        "polypath-switch",
        "polypath-transport",
        "polypath-trace",
        "polypath-noq",
    },
    "polypath-live": {"polypath-wire", "polypath-net", "polypath-transport", "polypath-trace", "polypath-lab"},
    "polypath-figures": set(),
    "polypath-python": {"polypath-capture", "polypath-figures", "polypath-lab", "polypath-live"},
    "polypath-web": {"polypath-figures", "polypath-lab"},
    "polypath-module": {"polypath-python"},
    "polypath-example": {"polypath-settings", "polypath-net", "polypath-transport", "polypath-python"},
    "polypath-interop": {"polypath-wire", "polypath-transport", "polypath-noq", "polypath-capture"},
    "polypath-packetdrill": {"polypath-wire", "polypath-transport"},
}

TRANSPORT = ROOT / "crates" / "transport" / "src"

#: What each module of the transport may use of the others, so that one can be had without those that come after it.
MODULES = {
    "counters": set(),
    "event": set(),
    "host": set(),
    "ranges": set(),
    "search": set(),
    "sending": set(),
    "seq": set(),
    "sessions": set(),
    "settings": set(),
    "transmit": set(),
    "retained": {"transmit"},
    "path": {"search", "settings"},
    "linux": {"path", "settings"},
    "stream": {"linux", "ranges", "settings", "transmit"},
    "congestion": {"linux", "path", "retained", "transmit"},
    "scheduler": {"path"},
    "path_manager": {"host"},
    "policy": {"host", "path_manager", "scheduler", "transmit"},
    "algorithms": {"congestion", "path_manager", "scheduler", "settings"},
    "accept": {"algorithms", "host", "path_manager", "retained", "sessions", "settings"},
    "path_choice": {"accept", "host", "path_manager", "transmit"},
    "tcp": {
        "congestion",
        "counters",
        "event",
        "linux",
        "path",
        "ranges",
        "search",
        "seq",
        "settings",
        "stream",
        "transmit",
    },
    "mptcp": {
        "accept",
        "algorithms",
        "counters",
        "event",
        "host",
        "linux",
        "path",
        "path_manager",
        "policy",
        "scheduler",
        "sending",
        "seq",
        "settings",
        "stream",
        "tcp",
        "transmit",
    },
    "quic": {
        "accept",
        "algorithms",
        "congestion",
        "event",
        "host",
        "path",
        "path_manager",
        "policy",
        "ranges",
        "retained",
        "scheduler",
        "sending",
        "sessions",
        "settings",
        "stream",
        "transmit",
    },
}

#: Crates, and modules of one, in which each file uses only files that use neither it nor what uses it.
FILES = ("lab", "transport/mptcp", "transport/quic")


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(source: str) -> Iterator[str]:
    """Parts of the package that a module names in its imports, `importlib.import_module` of a constant too."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module="polypath", names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module)) if module.startswith("polypath."):
                yield module.split(".")[1]
            case ast.Import(names=names):
                yield from (alias.name.split(".")[1] for alias in names if alias.name.startswith("polypath."))
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(module)), *_]):
                if module.startswith("polypath."):
                    yield module.split(".")[1]


def test_imports_are_found() -> None:
    source = "\n".join(
        (
            "import polypath.cli.run, os",
            "from polypath import plots",
            "def f():\n    from polypath.labs import get\n    importlib.import_module('polypath._core')",
        )
    )
    assert sorted(imported(source)) == ["_core", "cli", "labs", "plots"]


def test_every_part_is_listed() -> None:
    parts = {part_of(path) for path in PACKAGE.rglob("*.py")}
    assert parts <= PYTHON.keys()


@pytest.mark.parametrize("part", PYTHON)
def test_python_imports_point_one_way(part: str) -> None:
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if part_of(path) == part]
    wrong = [
        f"{path.relative_to(ROOT)} imports polypath.{name}"
        for path in files
        for name in imported(path.read_text(encoding="utf-8"))
        if name not in PYTHON[part] | {part}
    ]
    assert not wrong


def test_no_test_needs_a_campaign() -> None:
    """Campaigns use what tests share, and not the other way round."""
    imports = re.compile(r"^\s*(from|import) assurance\b", re.MULTILINE)
    assert imports.search("from assurance.beside import program") is not None
    needing = [path for path in (ROOT / "tests").rglob("*.py") if imports.search(path.read_text(encoding="utf-8"))]
    assert needing == []


def test_the_files_that_a_file_uses_are_found() -> None:
    crate = Crate(
        {
            (): "pub use shapes::round::{Circle, Disc as Coin}; pub const TWO: u32 = 2;",
            ("shapes",): "pub mod round; mod square; pub use square::Square; fn area() -> u32 { square::side() }",
            ("shapes", "round"): "use crate::TWO; // use crate::tool::Saw\nstruct Circle; struct Disc;",
            ("shapes", "square"): "mod tests { use super::*; use super::super::round::Circle; }",
            ("tool",): 'use crate::{shapes::{self, Square}, Coin}; const NAME: &str = "crate::other";',
            ("other",): "use crate::shapes; struct Other(super::tool::Saw, shapes::round::Disc);",
        }
    )
    assert crate.uses() == {
        (): set(),
        ("shapes",): {("shapes", "square")},
        ("shapes", "round"): {()},
        ("shapes", "square"): {("shapes", "round")},
        ("tool",): {("shapes",), ("shapes", "square"), ("shapes", "round")},
        ("other",): {("tool",), ("shapes",), ("shapes", "round")},
    }
    assert crate.uses(("shapes",))["shapes", "round"] == set()


def test_a_ring_is_told_in_the_order_of_its_uses() -> None:
    assert not ring({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    files: dict[Module, set[Module]] = {("a",): {("b",)}, ("b",): {("c", "d")}, ("c", "d"): {("a",)}}
    found = ring(files)
    assert found[0] == found[-1]
    assert " ".join(found) in {"a b c/d a", "b c/d a b", "c/d a b c/d"}


def test_modules_of_the_transport_depend_one_way() -> None:
    used: dict[str, set[str]] = {}
    for file, others in Crate.at(TRANSPORT).uses().items():
        # The root declares units of time, and names modules only to show what is in them.
        if file:
            used.setdefault(file[0], set()).update({other[0] for other in others if other} - {file[0]})
    assert used.keys() == MODULES.keys()
    assert not {module: extra for module in MODULES if (extra := used[module] - MODULES[module])}
    assert not ring(MODULES)


@pytest.mark.parametrize("folder", FILES)
def test_files_depend_one_way(folder: str) -> None:
    crate, *under = folder.split("/")
    assert not ring(Crate.at(ROOT / "crates" / crate / "src").uses(tuple(under)))


def test_rust_crates_depend_one_way() -> None:
    command = [
        "cargo",
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version",
        "1",
        "--manifest-path",
        str(ROOT / "Cargo.toml"),
    ]
    packages = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["packages"]
    used = {
        package["name"]: {
            dependency["name"] for dependency in package["dependencies"] if dependency["name"].startswith("polypath-")
        }
        for package in packages
    }
    assert used.keys() == RUST.keys()
    assert not {name: extra for name in RUST if (extra := used[name] - RUST[name])}
    assert not ring(RUST)
