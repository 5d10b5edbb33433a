"""polypath report --live: which runs can be changed in the page, and what is said of the others."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from polypath.cli import live
from polypath.playground import PlaygroundError, require_built

HOME = """
name = "home"
duration = "1 s"

[host.client]
[host.server]

[link.wifi]
ends = ["client", "server"]
rate = "5 Mbps"
delay = "10 ms"

[[application]]
name = "get"
kind = "bulk"
"""
SWEPT = HOME + '\n[vary]\n"link.wifi.rate" = ["5 Mbps", "10 Mbps"]\nseeds = 2\n'
LAST = "class Last:\n    def select(self, view):\n        return len(view.paths) - 1\n"


@pytest.fixture(autouse=True)
def built() -> None:
    try:
        require_built()
    except PlaygroundError as error:
        pytest.skip(str(error))


def presets(path: Path) -> list[Any]:
    packed = path.read_text(encoding="utf-8").partition('id="presets">')[2].partition("</s")[0]
    found: list[Any] = json.loads(gzip.decompress(base64.b64decode(packed)))
    return found


def test_a_result_can_be_changed_by_the_command_that_runs_it_again(polypath: Any, tmp_path: Path) -> None:
    (tmp_path / "home.toml").write_text(HOME)
    out = tmp_path / "out"
    assert polypath("run", tmp_path / "home.toml", "--seed", "4", "--out", out).code == 0
    outcome = polypath("report", out, "--live")
    assert (outcome.code, outcome.err) == (0, f"report in {out / 'report.html'}\n")
    (preset,) = presets(out / "report.html")
    assert (preset["command"], preset["plan"]["seed"]) == (str(out), 4)
    assert {"link.wifi.rate", "seed"} <= {knob["key"] for knob in preset["knobs"]}


def test_each_point_of_a_sweep_can_be_changed(polypath: Any, tmp_path: Path) -> None:
    (tmp_path / "home.toml").write_text(SWEPT)
    assert polypath("run", tmp_path / "home.toml", "--out", tmp_path / "out").code == 0
    for target, page in (("out", tmp_path / "out.html"), ("home.toml", tmp_path / "now.html")):
        assert polypath("report", tmp_path / target, "--live", "--out", page).code == 0
        commands = [preset["command"].removeprefix(f"{tmp_path / target} ") for preset in presets(page)]
        assert commands == [
            f"--set 'link.wifi.rate={rate} Mbps' --set 'seed={seed}'" for rate in (5, 10) for seed in (1, 2)
        ]
        assert [preset["plan"]["links"][0]["forward"]["rate_bps"] for preset in presets(page)] == [
            *[5_000_000] * 2,
            *[10_000_000] * 2,
        ]


def test_what_cannot_be_changed_is_said(polypath: Any, tmp_path: Path) -> None:
    (tmp_path / "home.toml").write_text(HOME)
    (tmp_path / "last.py").write_text(LAST)
    own = ("--set", f"defaults.scheduler={tmp_path}/last.py:Last", "--set", "application.get.transport=mptcp")
    assert polypath("run", tmp_path / "home.toml", "--out", tmp_path / "plain").code == 0
    assert polypath("run", tmp_path / "home.toml", *own, "--out", tmp_path / "own").code == 0
    page = tmp_path / "both.html"
    outcome = polypath("report", tmp_path / "plain", tmp_path / "own", "--live", "--out", page)
    assert outcome.code == 0
    assert (
        "own cannot be changed in the page: a page cannot simulate it: it has an algorithm in Python\n" in outcome.err
    )
    assert [preset is not None for preset in presets(page)] == [True, False]
    refused = polypath("report", tmp_path / "own", "--live", "--out", tmp_path / "own.html")
    assert refused.code == 2
    assert refused.err.endswith(
        "--live: no run can be changed in the page: a page cannot simulate it: it has an algorithm in Python\n"
    )
    assert not (tmp_path / "own.html").exists()


def test_a_scenario_that_has_changed_since_is_another_run(polypath: Any, tmp_path: Path) -> None:
    (tmp_path / "home.toml").write_text(HOME)
    out = tmp_path / "out"
    assert polypath("run", tmp_path / "home.toml", "--out", out).code == 0
    stored = out / "scenario.toml"
    stored.write_text(stored.read_text().replace("5 Mbps", "6 Mbps"))
    refused = polypath("report", out, "--live", "--out", tmp_path / "page.html")
    assert refused.code == 2
    assert "its plan is not that of its scenario today" in refused.err


def test_a_page_has_so_many_and_no_more(polypath: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MOST", 3)
    (tmp_path / "home.toml").write_text(SWEPT)
    page = tmp_path / "page.html"
    outcome = polypath("report", tmp_path / "home.toml", "--live", "--out", page)
    assert "cannot be changed in the page: a page has at most 3 such runs\n" in outcome.err
    assert [preset is not None for preset in presets(page)] == [True, True, True, False]
