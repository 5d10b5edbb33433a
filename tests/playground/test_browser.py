"""The playground in a browser: what it shows is what the command records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from polypath.engines import Options
from polypath.engines.sim import Simulator
from polypath.labs import get
from polypath.playground import PlaygroundError, html, live, of_lab, require_built
from polypath.report import Labelled, Page, build
from polypath.results import metrics

from .conftest import Node

Data = dict[str, Any]
LABS: Final = ("aggregation", "multipath-quic", "scheduler-reqres", "wifi-walk")
#: Preset, settings of the page, and of the command.
RUNS: Final[list[tuple[str, Data, list[str]]]] = [
    ("aggregation/mptcp", {}, []),
    (
        "aggregation/mptcp",
        {"link.path1.delay": 60, "defaults.scheduler": "roundrobin"},
        ["defaults.scheduler=roundrobin", "link.path1.delay=60 ms"],
    ),
    ("aggregation/mptcp", {"seed": 5, "link.path0.loss": 1.5}, ["seed=5", "link.path0.loss=1.5 %"]),
    ("aggregation/mptcp", {"host.client.scheduler": "redundant"}, ["host.client.scheduler=redundant"]),
    (
        "aggregation/mptcp",
        {"event": "5~path1~goes down", "seed": 3},
        ["seed=3", 'event.1={at="5 s", link="path1", up=false}'],
    ),
    ("scheduler-reqres/rr", {}, []),
    ("multipath-quic/rtt", {}, []),
    ("wifi-walk/both", {}, []),
]


def ran(name: str, settings: Data, given: list[str]) -> Data:
    (preset,) = (each for each in of_lab(get(name.partition("/")[0])) if each.name == name)
    recording = Simulator().run(preset.scenario.with_settings(given).plan())
    keys = [*(knob["key"] for knob in preset.data()["knobs"]), "event.1"]
    told = sorted(given, key=lambda text: keys.index(text.partition("=")[0]))
    return {
        "lab": name,
        "settings": settings,
        "command": f"polypath run {preset.command}" + "".join(f" --set '{text}'" for text in told),
        "recording": recording.metadata.recording_sha256,
        "requests": recording.table("requests").height,
        "goodput": [f"{(metrics.goodput(recording, of) or 0) / 1e6:.2f}" for of in metrics.connections(recording)],
    }


def test_the_page_in_a_browser(tmp_path: Path, node: Node) -> None:
    try:
        require_built()
    except PlaygroundError as error:
        pytest.skip(str(error))
    presets = [preset for lab in LABS for preset in of_lab(get(lab))]
    (tmp_path / "playground.html").write_text(html(presets, "0.0"), encoding="utf-8")
    expected = {"runs": [ran(*each) for each in RUNS], "presets": [preset.name for preset in presets]}
    (tmp_path / "expected.json").write_text(json.dumps(expected), encoding="utf-8")
    node("playground.test.mjs", POLYPATH_PAGES=tmp_path)


def test_a_report_with_the_simulator_in_a_browser(tmp_path: Path, node: Node) -> None:
    try:
        require_built()
    except PlaygroundError as error:
        pytest.skip(str(error))
    (preset,) = (each for each in of_lab(get("aggregation")) if each.name == "aggregation/mptcp")
    changed = "link.path1.delay=60 ms"
    recordings = [
        Simulator().run(preset.scenario.with_settings(given).plan(), Options(account=True)) for given in ([], [changed])
    ]
    page = build(Page("live", "0.0", [Labelled("here", recordings[0]), Labelled("kernel", recordings[0])]))
    (tmp_path / "live.html").write_text(live(page, [preset, None]), encoding="utf-8")
    hashes = [recording.metadata.recording_sha256 for recording in recordings]
    expected = {
        "recorded": hashes[0],
        "changed": hashes[1],
        "changedCommand": f"polypath run {preset.command} --set '{changed}'",
    }
    (tmp_path / "expected.json").write_text(json.dumps(expected), encoding="utf-8")
    node("live.test.mjs", POLYPATH_PAGES=tmp_path)


def test_without_the_simulator_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("polypath.playground.document._simulator", lambda: tmp_path / "simulator.wasm")
    with pytest.raises(PlaygroundError, match="no simulator for browsers; build it with: make web"):
        require_built()
