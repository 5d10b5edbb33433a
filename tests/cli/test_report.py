"""polypath report: what it reads, and what it writes where."""

from __future__ import annotations

import base64
import json
import tempfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from polypath.results import Recording, folder


def data(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8").partition('id="data">')[2].partition("</s")[0])
    return found


def unpacked(run: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(run["data"]), -15))
    return found


@pytest.fixture
def results(polypath: Any, tmp_path: Path) -> Path:
    assert polypath("run", "aggregation", "--run", "tcp", "--run", "mptcp", "--out", tmp_path / "results").code == 0
    return tmp_path / "results"


def test_a_run_s_page_is_part_of_its_result(polypath: Any, results: Path) -> None:
    outcome = polypath("report", results / "mptcp")
    assert (outcome.code, outcome.err) == (0, f"report in {results / 'mptcp' / 'report.html'}\n")
    assert "report.html" in (folder.files(results / "mptcp", folder.RUN) or {})
    assert folder.intact(results / "mptcp", folder.RUN)
    assert Recording.load(results / "mptcp")
    assert polypath("report", results / "mptcp").code == 0  # in the place of the one before
    assert polypath("run", "aggregation", "--run", "mptcp", "--out", results).code == 0
    assert not (results / "mptcp" / "report.html").exists()  # it was of the result that is gone


def test_a_folder_of_runs_is_one_page_in_the_lab_s_order(polypath: Any, results: Path) -> None:
    assert polypath("report", results).code == 0
    page = data(results / "report.html")
    assert [run["name"] for run in page["runs"]] == ["aggregation/tcp", "aggregation/mptcp"]
    assert [run["folder"] for run in page["runs"]] == ["tcp/", "mptcp/"]
    lab = page["labs"][0]
    assert lab["question"] == "Does Multipath TCP add up the bandwidth of two equal paths?"
    assert [each["verdict"] for each in lab["expectations"]] == ["ok", "ok"]
    assert lab["note"] == "3 of 5 expectations are of runs that are not here."


def test_runs_with_other_settings_than_the_lab_s_are_told(polypath: Any, tmp_path: Path) -> None:
    setting = "link.path0.rate=10 Mbps"
    out = tmp_path / "r"
    assert polypath("run", "aggregation", "--run", "tcp", "--set", setting, "--out", out).code == 0
    assert polypath("report", out).code == 0
    lab = data(out / "report.html")["labs"][0]
    assert lab["note"].startswith("Not run as the lab has it: aggregation/tcp.")
    assert lab["expectations"][0]["verdict"] == "miss"


def test_results_of_one_run_are_told_apart_by_their_folders(polypath: Any, tmp_path: Path) -> None:
    for name, setting in (("before", "seed=1"), ("after", "link.path0.rate=10 Mbps")):
        out = tmp_path / name
        assert polypath("run", "aggregation", "--run", "tcp", "--set", setting, "--out", out).code == 0
    assert polypath("report", tmp_path / "before", tmp_path / "after", "--out", tmp_path / "both.html").code == 0
    page = data(tmp_path / "both.html")
    assert [(run["name"], run["short"]) for run in page["runs"]] == [("before", "before"), ("after", "after")]
    assert [run["scenario"] for run in page["runs"]] == ["aggregation/tcp"] * 2
    (lab,) = page["labs"]
    assert lab["expectations"][0]["verdict"] == "ok"
    assert "Not run as the lab has it: after. " in lab["note"]
    assert "Of several results of one run the first is measured, and not after." in lab["note"]


def test_sweeps_of_one_name_are_told_apart_by_their_folders(polypath: Any, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SWEEP)
    for name in ("before", "after"):
        assert polypath("run", tmp_path / "small.toml", "--out", tmp_path / name).code == 0
    assert polypath("report", tmp_path / "before", tmp_path / "after", "--out", tmp_path / "both.html").code == 0
    page = data(tmp_path / "both.html")
    assert [sweep["name"] for sweep in page["sweeps"]] == ["before", "after"]
    assert [run["name"] for run in page["runs"]] == [
        f"{name} (link.path0.rate={rate})" for name in ("before", "after") for rate in ("5 Mbps", "10 Mbps")
    ]


def test_a_sweep_s_table_that_is_cut_short_is_said(polypath: Any, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SWEEP)
    assert polypath("run", tmp_path / "small.toml", "--out", tmp_path / "out").code == 0
    table = tmp_path / "out" / "statistics.parquet"
    table.write_bytes(table.read_bytes()[:-9])
    outcome = polypath("report", tmp_path / "out", "--out", tmp_path / "page.html")
    assert (outcome.code, outcome.err) == (2, f"polypath: cannot read {table}: it is cut short\n")
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("named", ["../other", "/etc", "..", "", "a/b", 7, None, ["x"]])
def test_a_point_s_folder_is_in_the_sweep_s(polypath: Any, tmp_path: Path, named: object) -> None:
    point = {"values": {"seeds": "1"}, "folder": named, "state": "done", "seed": 1, "plan_sha256": ""}
    index = {"name": "small", "axes": [], "points": [point], "files": {}}
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "sweep.json").write_text(json.dumps(index))
    line = f"polypath: {tmp_path / 'out' / 'sweep.json'} names {named!r}, which is no folder of a point\n"
    for words in (("report", tmp_path / "out"), ("show", tmp_path / "out"), ("plot", tmp_path / "out")):
        outcome = polypath(*words)
        assert (outcome.code, outcome.err) == (2, line), words


def test_a_lab_is_run(polypath: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert polypath("report", "aggregation", "--run", "tcp", "--set", "application.iperf.duration=1 s").code == 0
    assert len(data(tmp_path / "aggregation-report.html")["runs"]) == 1


SWEEP = """
name = "small"
duration = "1 s"
host = { client = {}, server = {} }
link.path0 = { ends = ["client", "server"], rate = "10 Mbps", delay = "10 ms" }
application = [{ name = "bulk", kind = "bulk" }, { name = "probe", kind = "ping", count = 3 }]
[vary]
"link.path0.rate" = ["5 Mbps", "10 Mbps"]
"""


def test_a_sweep_is_run_and_only_its_page_is_left(
    polypath: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    (tmp_path / "small.toml").write_text(SWEEP)
    outcome = polypath("report", tmp_path / "small.toml", "--out", tmp_path / "page.html")
    assert (outcome.code, outcome.err) == (0, f"report in {tmp_path / 'page.html'}\n")
    page = data(tmp_path / "page.html")
    (sweep,) = page["sweeps"]
    assert sweep["folder"] is None
    assert [(each["place"], each["state"], each["run"]) for each in sweep["points"]] == [
        (["5 Mbps"], "done", 0),
        (["10 Mbps"], "done", 1),
    ]
    slow, fast = (run["summary"]["connections"][0]["goodput_mbps"] for run in page["runs"])
    assert slow < 5 < fast
    for run in page["runs"]:
        assert run["folder"] is None
        assert "sequence" in unpacked(run)["connections"]["0"]
    assert not list(scratch.iterdir())


ODD = """
class Odd:
    def select(self, view):
        if view.paths[0].acked > 700_000:
            raise RuntimeError("fast")
        return 0
"""


def test_points_that_fail_stand_on_the_page(polypath: Any, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(ODD)
    (tmp_path / "small.toml").write_text(SWEEP.replace("client = {}", 'client = { scheduler = "odd.py:Odd" }', 1))
    outcome = polypath("report", tmp_path / "small.toml", "--out", tmp_path / "page.html")
    told, failed, *rest = outcome.err.splitlines()
    assert (outcome.code, told) == (2, f"polypath: {tmp_path / 'small.toml'} runs code with your rights: odd.py")
    assert (failed.count("RuntimeError: fast"), len(rest)) == (1, 1)
    points = data(tmp_path / "page.html")["sweeps"][0]["points"]
    assert [(each["state"], each["run"]) for each in points] == [("done", 0), ("failed", None)]
    fast = (tmp_path / "small.toml").read_text().replace("5 Mbps", "20 Mbps")
    (tmp_path / "small.toml").write_text(fast)
    outcome = polypath("report", tmp_path / "small.toml", "--out", tmp_path / "none.html")
    assert (outcome.code, outcome.err.splitlines()[-1]) == (2, "polypath: small: no point has a result")
    assert not (tmp_path / "none.html").exists()


SHORT = ("--set", "duration=2 s", "--set", "record.interval=500 ms")


@pytest.fixture
def fairness(polypath: Any, tmp_path: Path) -> Path:
    runs = ("--run", "reference", "--run", "two")
    assert polypath("run", "fairness", *runs, *SHORT, "--out", tmp_path / "fairness").code == 0
    return tmp_path / "fairness"


def test_a_lab_is_judged_by_points_without_charts_too(
    polypath: Any, fairness: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polypath.cli.report.MOST_RUNS", 2)
    assert polypath("report", fairness).code == 0
    page = data(fairness / "report.html")
    assert [len(sweep["points"]) for sweep in page["sweeps"]] == [2, 6]
    assert len(page["runs"]) == 4
    polypath("check", "fairness", *SHORT, "--markdown", tmp_path / "check.md")
    checked = (tmp_path / "check.md").read_text()
    judged = page["labs"][0]["expectations"]
    assert len(judged) == 9
    for each in judged:
        assert f"| {each['name']} | {each['published']} | {each['bound']} | {each['measured']} |" in checked


@pytest.mark.slow
def test_a_lab_is_not_judged_by_what_is_left_of_a_sweep(polypath: Any, fairness: Path) -> None:
    index = json.loads((fairness / "two" / "sweep.json").read_text())
    index["points"][0] |= {"state": "failed", "failure": "too much"}
    (fairness / "two" / "sweep.json").write_text(json.dumps(index))
    assert polypath("report", fairness).code == 0
    lab = data(fairness / "report.html")["labs"][0]
    assert lab["expectations"] == []
    assert lab["note"].endswith(
        "7 of 16 expectations are of runs that are not here. 9 of 16 are of sweeps some of whose points have no result."
    )


def test_a_person_s_file_stays(polypath: Any, results: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.html"
    mine.write_text("mine")
    outcome = polypath("report", results, "--out", mine)
    assert outcome.code == 2
    assert outcome.err.startswith(f"polypath: {mine} exists and is not an unchanged report; ")
    assert mine.read_text() == "mine"
    page = tmp_path / "page.html"
    assert polypath("report", results, "--out", page).code == 0
    assert polypath("report", results, "--out", page).code == 0
    page.write_text(page.read_text() + "<!-- a note -->")
    assert polypath("report", results, "--out", page).code == 2


def test_a_file_of_a_result_is_no_scenario(polypath: Any, results: Path) -> None:
    table = results / "mptcp" / "summary.json"
    outcome = polypath("report", table)
    assert (outcome.code, outcome.err) == (
        2,
        f"polypath: {table} is a file of a result; name its folder, {table.parent}\n",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{tmp}/empty"], "no results in {tmp}/empty; name a folder that `polypath run --out` wrote"),
        (["agregation"], "unknown lab 'agregation'; did you mean 'aggregation'?"),
        (["{tmp}/empty", "--seed", "2"], "--set, --seed and --run are of labs and scenarios that are run now; "),
        (["aggregation", "--out", "{tmp}/empty"], "--out {tmp}/empty is a folder; name a file"),
        (["window-sweep", "--run", "wide"], "lab 'window-sweep' "),
    ],
)
def test_bad_input_is_one_line(polypath: Any, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "empty").mkdir()
    outcome = polypath("report", *(each.format(tmp=tmp_path) for each in arguments))
    assert outcome.code == 2
    assert message.format(tmp=tmp_path) in outcome.err
    assert outcome.err.count("\n") == 1
