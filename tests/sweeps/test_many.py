"""Sweeps of many points: what is done for each, counted, and the journal that spares most of it later."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from polypath import sweeps
from polypath.cli import output
from polypath.results import OutputError, layout
from polypath.scenario import Plan, Scenario, ScenarioError
from polypath.sweeps import executor, grid, point, store


def scenario(text: str, values: int, seeds: int) -> Scenario:
    delays = [f"{10 + number} ms" for number in range(values)]
    axes = f'[vary]\n"link.path0.delay" = {json.dumps(delays)}\nseeds = {seeds}\n'
    return Scenario.parse(text.replace('"1 s"', '"10 ms"') + axes, "many.toml")


def swept(of: Scenario, out: Path | None = None, **more: Any) -> sweeps.Result:
    one = sweeps.Sweep("many", of, sweeps.points(of, later=True), out)
    (result,) = sweeps.run([one], jobs=1, save=output.save, **more)
    return result


_counting: list[tuple[Path, Counter[str]]] = []


def _hook(event: str, arguments: Any) -> None:
    if _counting and event in ("open", "os.scandir", "os.listdir"):
        below, counts = _counting[-1]
        path = arguments[0]
        if isinstance(path, str | bytes | Path) and str(below) in os.fsdecode(path):
            counts[event] += 1


@contextmanager
def counted(below: Path) -> Iterator[Counter[str]]:
    """How often files are opened and folders listed there."""
    if not getattr(sys, "_polypath_counts", False):
        sys.addaudithook(_hook)
        sys._polypath_counts = True  # type: ignore[attr-defined]
    found: Counter[str] = Counter()
    _counting.append((below, found))
    try:
        yield found
    finally:
        _counting.pop()


class Looked(Sequence[sweeps.Point]):
    """Points that count how often one is looked at."""

    def __init__(self, points: Sequence[sweeps.Point]) -> None:
        self.points, self.looks = points, 0

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, number: Any) -> Any:
        self.looks += 1
        return self.points[number]


def test_going_on_opens_no_result_and_builds_no_plan(
    plain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work: dict[int, Counter[str]] = {}
    for values in (2, 8):
        out, of = tmp_path / str(values), scenario(plain, values, 3)
        first = swept(of, out)
        grid._built.cache_clear()
        with monkeypatch.context() as patched, counted(out) as counts:
            patched.setattr(store, "finished", None)
            again = swept(of, out)
            built = grid._built.cache_info().misses
        assert (first.kept, again.kept) == (0, 3 * values)
        assert again.points.equals(first.points)
        assert again.statistics.equals(first.statistics)
        # two plans tell that an axis has an effect, of the one that changes slower from another value's first seed
        assert built <= 4
        work[values] = counts
    assert work[8]["open"] == work[2]["open"]
    # a point: its folder and that of its tables for the fingerprint; its folder before and after for what was left
    assert work[8]["os.scandir"] + work[8]["os.listdir"] - work[2]["os.scandir"] - work[2]["os.listdir"] <= 4 * 18


def test_each_point_is_looked_at_a_few_times_however_many_there_are(
    plain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = {}
    done: list[int] = []
    monkeypatch.setattr(executor, "local", lambda jobs, items: executor.Serial())
    summary = point.summarised(point.Task("one", scenario(plain, 1, 1).at([]).plan()))
    monkeypatch.setattr(point, "summarised", lambda task: summary)
    for values in (5, 50):
        of = scenario(plain, values, 4)
        points = Looked(sweeps.points(of, later=True))
        done.clear()
        (result,) = sweeps.run(
            [sweeps.Sweep("many", of, points)], jobs=1, progress=lambda now, all_of_them: done.append(now)
        )
        assert result.points.height == 4 * values
        assert done == list(range(4 * values + 1))
        looks[values] = points.looks
    assert looks[50] <= 10 * looks[5] + 20
    assert looks[50] <= 12 * 200


def test_few_plans_are_there_at_any_time(plain: str, tmp_path: Path) -> None:
    most = 0

    def note(done: int, total: int) -> None:
        nonlocal most
        if done % 20 == 10:
            most = max(most, sum(isinstance(each, Plan) for each in gc.get_objects()))

    before = sum(isinstance(each, Plan) for each in gc.get_objects())
    swept(scenario(plain, 20, 4), tmp_path, progress=note)
    assert most - before <= grid._KEPT + 3


def test_values_that_do_not_go_together_are_found_before_anything_runs(plain: str, tmp_path: Path) -> None:
    table = '[vary]\n"application.iperf.start" = ["0 s", "3 s"]\nduration = ["5 s", "2 s"]'
    of = Scenario.parse(plain.replace('"1 s"', '"5 s"') + table, "x")
    with pytest.raises(ScenarioError, match=r"^application\.iperf\.start=3 s, duration=2 s: it starts at 3 s, but the"):
        swept(of, tmp_path / "out")
    assert not (tmp_path / "out").exists()


class TestJournal:
    @pytest.fixture
    def of(self, plain: str) -> Scenario:
        return scenario(plain, 2, 2)

    def lines(self, out: Path) -> list[dict[str, Any]]:
        first, *lines = (out / layout.JOURNAL).read_text().splitlines()
        assert json.loads(first) == {"polypath": "points of a sweep", "format": 1}
        return [json.loads(line) for line in lines if line]

    def test_a_line_for_each_point(self, of: Scenario, tmp_path: Path) -> None:
        result = swept(of, tmp_path)
        lines = self.lines(tmp_path)
        assert [line["folder"] for line in lines] == [each.folder for each in result.places]
        assert [line["plan_sha256"] for line in lines] == [each.plan.sha256() for each in result.places]
        swept(of, tmp_path)
        assert self.lines(tmp_path) == lines

    @pytest.mark.parametrize("left", [0, 20, 70, 400, -10])
    def test_what_was_cut_off_is_read_from_the_results(
        self, of: Scenario, tmp_path: Path, left: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = swept(of, tmp_path)
        journal = tmp_path / layout.JOURNAL
        journal.write_bytes(journal.read_bytes()[:left])
        again = swept(of, tmp_path)
        assert again.kept == 4
        assert again.points.equals(first.points)
        monkeypatch.setattr(store, "finished", None)
        assert swept(of, tmp_path).kept == 4

    @pytest.mark.parametrize(
        ("written", "now"),
        [
            ('"goodput_mbps": ', '"goodput_mbps": 1'),
            ('"subflows": ', '"subflows": -1'),
            (', "check": ', ', "chock": '),
        ],
    )
    def test_a_line_that_was_changed_does_not_count(
        self, of: Scenario, tmp_path: Path, written: str, now: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = swept(of, tmp_path)
        journal = tmp_path / layout.JOURNAL
        text = journal.read_text()
        assert text.replace(written, now, 1) != text
        journal.write_text(text.replace(written, now, 1))
        again = swept(of, tmp_path)
        assert again.kept == 4
        assert again.points.equals(first.points)
        monkeypatch.setattr(store, "finished", None)
        assert swept(of, tmp_path).kept == 4

    def test_it_may_be_lost(self, of: Scenario, tmp_path: Path) -> None:
        swept(of, tmp_path)
        (tmp_path / layout.JOURNAL).unlink()
        assert swept(of, tmp_path).kept == 4
        assert len(self.lines(tmp_path)) == 4

    def test_another_scenario_engine_or_version_has_lines_of_its_own(self, of: Scenario, tmp_path: Path) -> None:
        swept(of, tmp_path)
        other = of.with_settings(["link.path0.rate=9 Mbps"])
        assert swept(other, tmp_path).kept == 0
        assert len(self.lines(tmp_path)) == 4
        assert swept(other, tmp_path).kept == 4
        assert swept(other, tmp_path, versions={"polypath": "0.0.0"}).kept == 0

    def test_a_file_that_a_value_names_costs_its_points_once_it_is_changed(self, plain: str, tmp_path: Path) -> None:
        (tmp_path / "one.trace").write_text("5\n10\n")
        (tmp_path / "two.trace").write_text("10\n")
        traced = plain.replace('rate = "10 Mbps"', 'rate = { trace = "one.trace" }').replace('"1 s"', '"10 ms"')
        axis = '[vary]\n"link.path0.rate.trace" = ["one.trace", "two.trace"]\n'
        (tmp_path / "scenario.toml").write_text(traced + axis)
        swept(Scenario.load(tmp_path / "scenario.toml"), tmp_path / "out")
        (tmp_path / "two.trace").write_text("2\n")
        again = swept(Scenario.load(tmp_path / "scenario.toml"), tmp_path / "out")
        assert again.kept == 1

    def test_what_is_changed_is_looked_at(self, of: Scenario, tmp_path: Path) -> None:
        one, two, three, _ = swept(of, tmp_path).places
        (tmp_path / one.folder / "series" / "links.parquet").write_bytes(b"")
        shutil.rmtree(tmp_path / two.folder)
        os.utime(tmp_path / three.folder / "plan.json")
        assert swept(of, tmp_path).kept == 2
        assert swept(of, tmp_path).kept == 4

    def test_a_value_added_costs_its_own_points(self, plain: str, tmp_path: Path) -> None:
        swept(scenario(plain, 2, 2), tmp_path)
        assert swept(scenario(plain, 3, 3), tmp_path).kept == 4
        assert swept(scenario(plain, 2, 2), tmp_path).kept == 4
        assert swept(scenario(plain, 3, 3), tmp_path).kept == 9

    def test_a_file_of_somebody_else_stays(self, of: Scenario, tmp_path: Path) -> None:
        swept(of, tmp_path)
        (tmp_path / layout.JOURNAL).write_text("my points\n")
        with pytest.raises(OutputError, match=r"points\.jsonl exists and is not a sweep's; move it away"):
            swept(of, tmp_path)
        assert (tmp_path / layout.JOURNAL).read_text() == "my points\n"
