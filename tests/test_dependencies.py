"""Imports point one way, in Python and in Rust."""

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "polypath"

#: What each part of the package may import of the others.
PYTHON = {
    "errors": set(),
    "folders": set(),
    "units": {"errors"},
    "registry": {"_core", "errors", "units"},
    # what a notebook shows of them is imported when one asks
    "scenario": {"errors", "notebook", "registry", "units"},
    "formats": {"_core", "errors", "registry", "results", "scenario", "units"},
    "labs": {"scenario", "units"},
    "results": {"_core", "errors", "notebook"},
    "capture": {"_core", "errors", "results"},
    "engines": {"_core", "capture", "errors", "folders", "registry", "results", "scenario", "units"},
    "fidelity": {"scenario"},
    "plots": {"results"},
    "report": {"results"},
    "progress": set(),
    "sweep": {"engines", "errors", "notebook", "progress", "results", "scenario", "units"},
    "notebook": {"_core", "plots", "report", "results", "scenario", "sweep"},
    "cli": {
        "_core",
        "capture",
        "engines",
        "errors",
        "fidelity",
        "folders",
        "formats",
        "labs",
        "plots",
        "registry",
        "report",
        "results",
        "scenario",
        "sweep",
        "units",
    },
    "command": {"cli"},
    "__main__": {"command"},
    "__init__": {"_core", "capture", "engines", "errors", "labs", "plots", "progress", "results", "scenario", "sweep"},
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
    "polypath-python": {"polypath-capture", "polypath-lab", "polypath-live"},
    "polypath-interop": {"polypath-wire", "polypath-transport", "polypath-noq"},
    "polypath-packetdrill": {"polypath-wire", "polypath-transport"},
}

TRANSPORT = ROOT / "crates" / "transport" / "src"

#: What each module of the transport may use of the others, so that one can be had without those above it.
MODULES = {
    "counters": set(),
    "ranges": set(),
    "seq": set(),
    "sessions": set(),
    "transmit": set(),
    "event": set(),
    "registry": set(),
    "path": {"config", "ranges"},
    "stream": {"config", "linux", "ranges", "transmit"},
    "linux": {"config", "path"},
    "congestion": {"linux", "path", "registry"},
    "scheduler": {"path", "registry"},
    "path_manager": {"registry"},
    "quic": {
        "config",
        "congestion",
        "event",
        "host",
        "path",
        "path_manager",
        "ranges",
        "registry",
        "scheduler",
        "sessions",
        "stream",
        "transmit",
    },
    "host": {"config", "path_manager", "sessions"},
    "config": {"congestion", "path_manager", "registry", "scheduler"},
    "tcp": {
        "config",
        "congestion",
        "counters",
        "event",
        "linux",
        "path",
        "ranges",
        "seq",
        "stream",
        "transmit",
    },
    "mptcp": {
        "config",
        "counters",
        "event",
        "host",
        "linux",
        "path",
        "path_manager",
        "registry",
        "scheduler",
        "seq",
        "stream",
        "tcp",
        "transmit",
    },
}


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


def named(source: str) -> set[str]:
    """Names behind `crate::` in a Rust source, comments left out."""
    code = re.sub(r"//.*", "", source)
    lists = re.findall(r"crate::\{([^;]*)\}", code)
    return set(re.findall(r"crate::(\w+)", code)) | {name for each in lists for name in re.findall(r"\w+", each)}


def homes() -> dict[str, str]:
    """The module that each name at the transport's root comes from."""
    shown = re.findall(r"pub use (\w+)(?:::\w+)*::(?:\{([^}]*)\}|(\w+));", (TRANSPORT / "lib.rs").read_text())
    return {name: module for module, several, one in shown for name in re.findall(r"\w+", several or one)}


def test_names_behind_crate_are_found() -> None:
    source = "use crate::path::{CaState, Path}; // crate::mptcp\nuse crate::{Mib, stream};\nlet x = crate::NEVER;"
    assert named(source) == {"path", "Mib", "stream", "NEVER"}
    assert homes()["Mib"] == "counters"


def test_modules_of_the_transport_depend_one_way() -> None:
    modules = {path.stem for path in TRANSPORT.iterdir()} - {"lib"}
    assert modules == MODULES.keys()
    home = homes() | {name: name for name in modules}
    wrong = []
    for path in sorted(TRANSPORT.rglob("*.rs")):
        module = path.relative_to(TRANSPORT).parts[0].removesuffix(".rs")
        if module == "lib":
            continue
        used = {home[name] for name in named(path.read_text(encoding="utf-8")) if name in home}
        wrong += [f"{path.relative_to(ROOT)} uses {other}" for other in sorted(used - MODULES[module] - {module})]
    assert not wrong


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
    wrong = {name: extra for name in RUST if (extra := used[name] - RUST[name])}
    assert not wrong
