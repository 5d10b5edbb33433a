"""A result is opened without executing what its plan carries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SCENARIO = """
duration = "2 s"
host = { client = {}, server = {} }
link.path0 = { ends = ["client", "server"], rate = "10 Mbps" }
application = [{ kind = "bulk" }]
defaults.scheduler = "own.py:Own"
record.segments = true
"""


def source(mark: Path) -> str:
    """A scheduler that leaves a mark when it is read, and when an instance is made."""
    write = f"open({str(mark)!r}, 'a').close()"
    made = f"class Own:\n    def __init__(self):\n        {write}\n"
    return f"{write}\n{made}    def select(self, view):\n        return 0\n"


@pytest.fixture
def result(polypath: Any, tmp_path: Path) -> Path:
    """A result whose run left the mark; its plan has the code, the file beside the scenario is gone."""
    (tmp_path / "own.py").write_text(source(tmp_path / "mark"))
    (tmp_path / "code.toml").write_text(SCENARIO)
    assert polypath("run", tmp_path / "code.toml", "--out", tmp_path / "result").code == 0
    (tmp_path / "mark").unlink()
    (tmp_path / "own.py").unlink()
    assert "def select" in json.dumps(json.loads((tmp_path / "result" / "plan.json").read_text()))
    return tmp_path / "result"


@pytest.mark.parametrize(
    "command",
    [
        ("show",),
        ("plot", "--out", "figures"),
        ("report", "--out", "page.html"),
        ("exposure",),
        ("export", "xplot", "--out", "made"),
        ("export", "csv", "--out", "made"),
        ("export", "iperf3", "--out", "made"),
    ],
    ids=" ".join,
)
def test_nothing_of_it_is_executed(
    polypath: Any, result: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    verb, *options = command
    outcome = polypath(verb, *([result, *options] if verb != "export" else [options[0], result, *options[1:]]))
    assert not (tmp_path / "mark").exists()
    assert outcome.code == 0, outcome.err
