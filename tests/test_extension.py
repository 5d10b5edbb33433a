"""Algorithms that are written outside of the crates: those of `examples/algorithms`, which docs/extend.md goes through.

The package with a native module that has them knows and runs them; nothing else says that they exist.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from polypath import Recording, registry

from . import extended

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))

Python = Callable[..., "subprocess.CompletedProcess[str]"]

SCENARIO = """
duration = "20 s"

[defaults]
scheduler = {kind = "first-ready", skip = 0}
congestion = {kind = "aimd", decrease = 0.7}
path_manager = {kind = "later", wait_ms = 1500}

[host.client]
[host.server]

[link.wired]
ends = ["client", "server"]
rate = "10 Mbps"
delay = "10 ms"
queue = {kind = "lifo", limit = "30 packets"}
loss = {kind = "every-nth", every = 100}

[link.wireless]
ends = ["client", "server"]
rate = "5 Mbps"
delay = "20 ms"

[[application]]
kind = "bulk"
size = "4 MB"
"""


@pytest.fixture(scope="module")
def extension() -> Python:
    """Runs Python with the module, which is built as the examples of a test of all crates are."""
    command = ["cargo", "build", "--workspace", "--quiet", "--locked", "--offline", "--example", "module"]
    environment = {"PYO3_BUILD_EXTENSION_MODULE": "1", "PYO3_PYTHON": sys.executable, **os.environ}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)

    def run(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        own = {**os.environ, "POLYPATH_CORE": str(TARGET / "debug" / "examples" / "libmodule.so")}
        return subprocess.run([sys.executable, *arguments], env=own, capture_output=True, text=True, check=check)

    return run


def test_the_module_describes_what_was_added(extension: Python) -> None:
    kinds = [*extended.ADDED]
    script = f"from polypath import registry; print(*map(registry.read, {kinds!r}), sep='\\n')"
    told = [json.loads(line) for line in extension("-c", script).stdout.splitlines()]
    for kind, entries in zip(kinds, told, strict=True):
        assert [entry["name"] for entry in entries] == [*registry.entries(kind), extended.ENTRIES[kind]["name"]]
        assert without_nothing(entries[-1]) == without_nothing(extended.ENTRIES[kind])


def without_nothing(entry: Any) -> Any:
    """An entry without the bounds that there are not."""
    parameters = [{key: value for key, value in each.items() if value is not None} for each in entry["parameters"]]
    return {**entry, "parameters": parameters}


def test_a_run_is_decided_by_them(extension: Python, tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    extension("-m", "polypath", "run", str(tmp_path / "scenario.toml"), "--out", str(tmp_path / "out"))
    recording = Recording.load(tmp_path / "out")
    assert recording.table("connection_ends")["server_received_bytes"].to_list() == [4_000_000]
    # `later` counts from when the connection is ready for more.
    first, second = recording.table("subflow_ends").sort("subflow")["established_ns"].to_list()
    assert first < 100_000_000
    assert 1_500_000_000 < second < 1_700_000_000
    [wired] = recording.table("link_ends").filter(name="wired", direction="forward").to_dicts()
    assert wired["lost_packets"] == wired["sent_packets"] // 100
    assert wired["max_queue_packets"] <= 30


def test_what_they_do_not_take_is_said_as_of_any_other(extension: Python, tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO.replace("wait_ms", "wait"), encoding="utf-8")
    wrong = extension("-m", "polypath", "validate", str(file), check=False)
    assert wrong.returncode == 2
    assert "path manager 'later' has no parameter 'wait'; did you mean 'wait_ms'?" in wrong.stderr + wrong.stdout


def test_a_module_that_cannot_be_loaded_is_a_line(tmp_path: Path) -> None:
    environment = {**os.environ, "POLYPATH_CORE": str(tmp_path / "none.so")}
    command = [sys.executable, "-m", "polypath", "algorithms"]
    wrong = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("polypath: POLYPATH_CORE: ")
    assert "none.so" in wrong.stderr
    assert wrong.stderr.count("\n") == 1
