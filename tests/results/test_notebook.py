"""What a notebook shows of scenarios, recordings and sweeps."""

import base64
import html
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.handmade_plans import as_plan

from polypath import sweeps
from polypath.report import is_unchanged
from polypath.results import Recording
from polypath.scenario import Scenario

TEXT = """
name = "small"
duration = "2 s"
[host.client]
[host.server]
[link.path0]
ends = ["client", "server"]
rate = "20 Mbps"
delay = "20 ms"
[[application]]
name = "iperf"
kind = "bulk"
[vary]
"defaults.congestion" = ["lia", "olia"]
"""


def picture(text: str) -> str:
    """The one SVG in it."""
    (data,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', text)
    svg = base64.b64decode(data).decode()
    ElementTree.fromstring(svg)
    return svg


def test_a_recording_is_a_table_and_its_rate(recording: Recording) -> None:
    text = recording._repr_html_()
    assert "<b>handmade</b> seed 7, engine sim, 4 s simulated" in text
    for part in ("iperf", "path0", "path1, backup", "66.7%", "2.33%", "udp"):
        assert part in text
    assert "rate (Mbps)" not in text  # letters are drawn
    assert picture(text) == picture(recording._repr_html_())


def test_names_are_text_and_not_markup(recording: Recording) -> None:
    strange = replace(recording, metadata=replace(recording.metadata, scenario="<script>"))
    assert "<script>" not in strange._repr_html_()
    assert html.escape("<script>") in strange._repr_html_()


def test_nothing_to_draw_is_a_table(recording: Recording) -> None:
    assert "<img" not in Recording({}, as_plan({"applications": []}), recording.metadata)._repr_html_()


def test_a_report_is_shown_in_a_frame_and_saved(recording: Recording, tmp_path: Path) -> None:
    report = recording.report()
    assert html.unescape(report._repr_html_().split('"')[1]) == report.text
    report.save(tmp_path / "report.html")
    assert is_unchanged(tmp_path / "report.html")


def test_a_scenario_has_its_network_and_its_axes() -> None:
    text = Scenario.parse(TEXT, "small.toml")._repr_html_()
    for part in ("<b>small</b>", "20 Mbps", "iperf", "client → server", "defaults.congestion", "lia, olia"):
        assert part in text


def test_a_scenario_has_its_programs() -> None:
    program = '[[application]]\nkind = "command"\nname = "fetch"\nhost = "client"\ncommand = "curl server"\n'
    text = Scenario.parse(TEXT + program, "small.toml")._repr_html_()
    assert text.index(">iperf<") < text.index(">fetch<") < text.index(">axis<")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_sweep_and_its_result() -> None:
    scenario = Scenario.parse(TEXT, "small.toml")
    asked = sweeps.Sweep("small", scenario, sweeps.points(scenario))
    assert "<b>small</b> 2 points" in asked._repr_html_()
    (result,) = sweeps.run([asked], jobs=1)
    text = result._repr_html_()
    assert "goodput (Mbps)" in text
    assert "olia" in text
    picture(text)
