"""What an engine cannot do is one line with the way out, exit code 2, and leaves nothing behind."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Polypath


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which nothing was built; what a run puts away temporarily goes to its folder `temporary`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return temporary


def _intel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


def _arm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")


@pytest.mark.parametrize(
    ("engine", "settings", "machine", "reason", "way_out"),
    [
        ("linux", [], _intel, "is not built yet", "polypath kernel build"),
        ("linux", [], _arm, "x86-64 (User Mode Linux), and this is Linux on aarch64", "--engine sim"),
        ("linux", ["defaults.scheduler=redundant"], _intel, "hand each byte to one subflow", "--engine sim"),
        ("linux", ["defaults.congestion=wvegas"], _intel, "no congestion control 'wvegas'", "it has reno"),
        ("live", ["duration=2 h"], _intel, "7200 s of real time", "POLYPATH_LIVE_LIMIT=7200"),
        ("lunix", [], _intel, "unknown engine 'lunix'", "did you mean 'linux'?"),
    ],
)
def test_a_refusal_is_a_line_with_the_way_out(
    polypath: Polypath,
    monkeypatch: pytest.MonkeyPatch,
    empty: Path,
    engine: str,
    settings: list[str],
    machine: Callable[[pytest.MonkeyPatch], None],
    reason: str,
    way_out: str,
) -> None:
    machine(monkeypatch)
    options = [word for setting in settings for word in ("--set", setting)]
    outcome = polypath("run", "aggregation", "--engine", engine, *options)
    assert outcome.code == 2
    assert outcome.err.startswith("polypath: ")
    assert outcome.err.count("\n") == 1
    assert reason in outcome.err
    assert way_out in outcome.err
    assert list(empty.iterdir()) == []


def test_more_subflows_than_there_can_be_are_refused_where_they_are_asked_for(
    polypath: Polypath, tmp_path: Path
) -> None:
    scenario = tmp_path / "many.toml"
    scenario.write_text(
        'duration = "1 s"\n[defaults]\npath_manager = { kind = "ndiffports", num_subflows = 65536 }\n'
        '[host.client]\n[host.server]\n[link.path]\nends = ["client", "server"]\n'
        '[[application]]\nkind = "bulk"\n'
    )
    outcome = polypath("run", str(scenario), "--engine", "linux")
    assert outcome.code == 2
    assert outcome.err == (
        f"polypath: {scenario}:3: defaults.path_manager: parameter 'num_subflows' of path manager 'ndiffports' "
        "is at most 64, not 65536\n"
    )
