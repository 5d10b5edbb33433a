"""polypath show DIR prints what run printed when it stored the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polypath.plots import sweeps
from polypath.results import OutputError

SCENARIO = """
duration = "2 s"
host = { client = {}, server = {} }
link.wifi = { ends = ["client", "server"], rate = "10 Mbps", delay = "10 ms" }
link.lte = { ends = ["client", "server"], rate = "5 Mbps", delay = "30 ms" }
[[application]]
name = "page"
kind = "fetch"
size = "200 kB"
"""


def ran(polypath: Any, out: Path, *arguments: str | Path) -> str:
    outcome = polypath("run", *arguments, "--out", out)
    assert outcome.code == 0, outcome.err
    return str(outcome.out)


def test_a_run_is_shown_as_it_was_printed(polypath: Any, tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(SCENARIO)
    printed = ran(polypath, tmp_path / "out", tmp_path / "two.toml")
    assert "page" in printed
    assert polypath("show", tmp_path / "out").out.split() == printed.split()


def test_a_sweep_is_shown_as_it_was_printed(polypath: Any, tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(SCENARIO + '[vary]\n"link.wifi.loss" = ["0 %", "2 %"]\nseeds = 3\n')
    printed = ran(polypath, tmp_path / "out", tmp_path / "two.toml")
    assert "seeds" in printed
    assert polypath("show", tmp_path / "out").out.split() == printed.split()


ODD = """
class Odd:
    def select(self, view):
        if view.paths[0].acked > 300_000:
            raise RuntimeError("much")
        return 0
"""


def test_points_of_a_sweep_without_a_result_are_named_as_run_names_them(polypath: Any, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(ODD)
    odd = SCENARIO.replace("server = {}", 'server = { scheduler = "odd.py:Odd" }')
    (tmp_path / "odd.toml").write_text(odd + '[vary]\n"application.page.size" = ["200 kB", "1 MB"]\n')
    ran = polypath("run", tmp_path / "odd.toml", "--out", tmp_path / "out")
    assert ran.code == 2
    told, failed, *_ = ran.err.splitlines(keepends=True)
    assert told == f"polypath: {tmp_path / 'odd.toml'} runs code with your rights: odd.py\n"
    assert failed.startswith("polypath: odd at application.page.size=1 MB: ")
    shown = polypath("show", tmp_path / "out")
    assert (shown.code, shown.err) == (0, failed)
    assert shown.out.split() == ran.out.split()
    assert shown.out.splitlines()[-1].split() == ["1", "MB", "no", "result"]
    index = json.loads((tmp_path / "out" / "sweep.json").read_text())
    index["points"][0]["state"] = "missing"
    (tmp_path / "out" / "sweep.json").write_text(json.dumps(index))
    missing = "polypath: odd at application.page.size=200 kB: has not run\n"
    assert polypath("show", tmp_path / "out").err == missing + failed


def test_points_without_a_result_are_named_whatever_becomes_of_the_figures(
    polypath: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: Any, **options: Any) -> None:
        raise OutputError("cannot write curve.png: No space left on device")

    monkeypatch.setattr(sweeps, "save_all", full)
    (tmp_path / "odd.py").write_text(ODD)
    odd = SCENARIO.replace("server = {}", 'server = { scheduler = "odd.py:Odd" }')
    (tmp_path / "odd.toml").write_text(odd + '[vary]\n"application.page.size" = ["200 kB", "1 MB"]\n')
    ran = polypath("run", tmp_path / "odd.toml", "--out", tmp_path / "out")
    # said once in a process: not if another test was first
    *notice, failed, last = ran.err.splitlines()
    assert notice in ([], [f"polypath: {tmp_path / 'odd.toml'} runs code with your rights: odd.py"])
    assert failed.startswith("polypath: odd at application.page.size=1 MB: ")
    assert last.endswith("is complete but has no figures: cannot write curve.png: No space left on device")


def test_that_nothing_arrives_is_shown(polypath: Any, tmp_path: Path) -> None:
    (tmp_path / "cut.toml").write_text(
        'duration = "100 ms"\nhost = { client = {}, server = {} }\n'
        'link.wifi = { ends = ["client", "server"], rate = "10 Mbps", delay = "10 ms", loss = "100 %" }\n'
        '[[application]]\nname = "call"\nkind = "stream"\nrate = "1 Mbps"\n[vary]\nseeds = 2\n'
    )
    heading, row = polypath("run", tmp_path / "cut.toml").out.splitlines()[1:3]
    assert (heading.split(), row.split()) == (["Mbps", "seeds"], ["0", "=", "2"])


def test_places_are_in_the_order_of_the_axes_whatever_failed(polypath: Any, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(ODD)
    odd = SCENARIO.replace("server = {}", 'server = { scheduler = "odd.py:Odd" }')
    sizes = '[vary]\n"application.page.size" = ["1 MB", "200 kB", "2 MB", "100 kB"]\n'
    (tmp_path / "odd.toml").write_text(odd + sizes)
    ran = polypath("run", tmp_path / "odd.toml", "--out", tmp_path / "out")
    for shown in (ran.out, polypath("show", tmp_path / "out").out):
        rows = [line.split() for line in shown.splitlines() if " kB " in line or " MB " in line]
        assert [row[:2] for row in rows] == [["1", "MB"], ["200", "kB"], ["2", "MB"], ["100", "kB"]]


def test_every_run_of_a_lab_is_shown(polypath: Any, tmp_path: Path) -> None:
    printed = ran(polypath, tmp_path / "out", "aggregation", "--run", "tcp", "--run", "window-100kB")
    assert sorted(polypath("show", tmp_path / "out").out.split()) == sorted(printed.split())


def test_results_of_one_name_are_told_apart_by_their_folders(polypath: Any, tmp_path: Path) -> None:
    (tmp_path / "page.toml").write_text(SCENARIO)
    for name in ("before", "after"):
        ran(polypath, tmp_path / "out" / name, tmp_path / "page.toml")
    lines = [line.strip() for line in polypath("show", tmp_path / "out").out.splitlines()]
    assert [line for line in lines if line in ("page", "before", "after")] == ["after", "before"]


def test_a_folder_without_results_is_one_line(polypath: Any, tmp_path: Path) -> None:
    outcome = polypath("show", tmp_path)
    assert (outcome.code, outcome.err) == (
        2,
        f"polypath: no results in {tmp_path}; name a folder that `polypath run --out` wrote, or a lab\n",
    )


def test_a_scenario_is_told_what_shows_it(polypath: Any, tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    file.write_text(SCENARIO)
    outcome = polypath("show", file)
    said = f"{file} is a file, no lab and no folder of results; polypath validate shows a scenario"
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"polypath: {said}\n")


@pytest.mark.parametrize("vary", ["", '[vary]\n"link.wifi.loss" = ["0 %", "2 %"]\n'])
def test_no_name_of_a_received_result_is_markup(polypath: Any, tmp_path: Path, vary: str) -> None:
    (tmp_path / "two.toml").write_text(SCENARIO + vary)
    ran(polypath, tmp_path / "out", tmp_path / "two.toml")
    link = "[link=https://example.org]see[/link]"
    for name in ("manifest.json", "plan.json", "sweep.json"):
        for file in (tmp_path / "out").rglob(name):
            file.write_text(file.read_text().replace('"two"', f'"two{link}"').replace('"page"', f'"page{link}"'))
    shown = polypath("show", tmp_path / "out")
    assert (shown.code, shown.err) == (0, "")
    assert f"two{link}" in shown.out


def test_a_lab_has_things_to_try(polypath: Any) -> None:
    lines = [line.rstrip() for line in polypath("show", "aggregation").out.splitlines()]
    at = lines.index("Things to try")
    assert (
        lines[at + 1] == '- polypath run aggregation --run mptcp --set link.path1.rate="5 Mbps": is it still the sum?'
    )
    assert sum(line.startswith("- ") for line in lines[at : lines.index("Could you explain?")]) == 4
