"""Seeds until an interval is as narrow as asked for."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from polypath import sweeps
from polypath.cli import compare, output
from polypath.cli.errors import InputError
from polypath.scenario import Scenario, ScenarioError
from polypath.scenario.seeds import Width
from polypath.statistics.estimate import estimate
from polypath.sweeps import adaptive, grid
from polypath.sweeps.adaptive import Interval

SPREAD = """
[vary]
"link.path0.loss" = ["0 %", "2 %"]
seeds = { least = 5, most = 60, until = { goodput_mbps = "20 %" } }
"""


@pytest.fixture
def text(plain: str) -> str:
    # one path, so that without loss all seeds agree
    return plain.replace('kind = "bulk"', 'kind = "bulk"\ntransport = "tcp"') + SPREAD


def swept(scenario: Scenario, out: Path | None = None) -> sweeps.Result:
    (result,) = sweeps.run([sweeps.Sweep("small", scenario, sweeps.points(scenario), out)], jobs=1, save=output.save)
    return result


def seeds_by_place(result: sweeps.Result) -> Counter[str]:
    return Counter(result.points["link.path0.loss"])


class TestRule:
    SEEDS = Scenario.parse(
        "[host.a]\n[host.b]\n[link.x]\nends = ['a', 'b']\n[vary]\nseeds = { until = { goodput_mbps = '10 %' } }", "x"
    ).adaptive

    @staticmethod
    def interval(n: int, half: float | None, mean: float | None = 100.0) -> Interval:
        return Interval(("a",), "iperf", "goodput_mbps", Width(0.1, True), n, mean, half)

    @pytest.mark.parametrize(
        ("n", "half", "wanted"),
        [
            (10, 10.0, None),  # narrow enough
            (10, 10.1, 11),  # just not
            (10, 12.0, 15),  # 10 x 1.2^2 = 14.4
            (10, 100.0, 20),  # no more than twice as many
            (10, math.inf, 20),  # one value by chance
            (150, 100.0, 200),  # no more than the most
            (200, 100.0, None),
            (10, 0.0, None),  # all agree
            (10, None, None),  # runs did not finish
        ],
    )
    def test_the_width_says_how_many(self, n: int, half: float | None, wanted: int | None) -> None:
        assert self.SEEDS is not None
        found = adaptive.counts(self.SEEDS, [self.interval(n, half)], {("a",): n})
        assert found == ({} if wanted is None else {("a",): wanted})

    def test_the_widest_interval_of_a_place_decides(self) -> None:
        assert self.SEEDS is not None
        found = [self.interval(10, 5.0), self.interval(10, 13.0), self.interval(10, 11.0)]
        assert adaptive.counts(self.SEEDS, found, {("a",): 10}) == {("a",): 17}

    def test_a_seed_that_failed_is_not_asked_for_again(self) -> None:
        assert self.SEEDS is not None
        assert adaptive.counts(self.SEEDS, [self.interval(8, 12.0)], {("a",): 10}) == {("a",): 14}

    def test_a_mean_of_zero_has_no_narrow_part(self) -> None:
        assert self.SEEDS is not None
        assert adaptive.counts(self.SEEDS, [self.interval(10, 1.0, 0.0)], {("a",): 10}) == {("a",): 11}

    def test_what_is_not_as_asked_for_is_said(self) -> None:
        assert self.SEEDS is not None
        assert adaptive.unmet(
            self.SEEDS,
            [
                self.interval(200, 11.0),
                self.interval(9, 3.0),
                self.interval(9, None, None),
                self.interval(1, None),
            ],
        ) == [
            "goodput_mbps of iperf at a: ± 11 % after 200 seeds, asked for ± 10 %",
            "goodput_mbps of iperf at a: no interval, as runs did not finish",
            "goodput_mbps of iperf at a: no interval, as there is one run",
        ]
        assert adaptive.unmet(self.SEEDS, []) == ["no connection has a figure goodput_mbps"]


class TestSweep:
    def test_only_the_wide_place_has_more(self, scenario: Scenario, tmp_path: Path) -> None:
        result = swept(scenario, tmp_path)
        seeds = seeds_by_place(result)
        assert seeds["0 %"] == 5
        assert 5 < seeds["2 %"] < 60
        half = {place: self.relative_half(result, place) for place in seeds}
        assert half["0 %"] == 0
        assert half["2 %"] <= 0.2
        assert list(result.unmet) == []
        index = json.loads((tmp_path / "sweep.json").read_text())
        assert len(index["points"]) == len(list(tmp_path.glob("*/summary.json"))) == sum(seeds.values())
        assert index["axes"][1]["labels"] == [str(1 + number) for number in range(seeds["2 %"])]
        assert [int(point["values"]["seed"]) for point in index["points"]] == [
            1 + number for place in ("0 %", "2 %") for number in range(seeds[place])
        ]
        assert pl.read_parquet(tmp_path / "points.parquet").equals(result.points)

    @staticmethod
    def relative_half(result: sweeps.Result, place: str) -> float:
        values = result.points.filter(pl.col("link.path0.loss") == place)["goodput_mbps"].to_list()
        found = estimate(values)
        return 0.0 if found.method == "deterministic" else (found.half_width or math.inf) / (found.mean or 1.0)

    def test_a_sweep_that_was_stopped_goes_on_as_if_it_had_not(self, scenario: Scenario, tmp_path: Path) -> None:
        whole, parts = tmp_path / "whole", tmp_path / "parts"
        swept(scenario, whole)
        stopped = 0

        def stop(done: int, total: int) -> None:
            nonlocal stopped
            if done == 12:
                stopped = done
                raise KeyboardInterrupt

        one = sweeps.Sweep("small", scenario, sweeps.points(scenario), parts)
        with pytest.raises(KeyboardInterrupt):
            sweeps.run([one], jobs=1, save=output.save, progress=stop)
        assert stopped == 12  # in the second round: the first has ten
        assert swept(scenario, parts).kept == 12
        for name in ("points.parquet", "statistics.parquet", "sweep.json"):
            assert (whole / name).read_bytes() == (parts / name).read_bytes()
        assert swept(scenario, parts).kept == len(swept(scenario, parts).places)

    def test_the_number_of_processes_changes_nothing(self, scenario: Scenario) -> None:
        (one,) = sweeps.run([sweeps.Sweep("small", scenario, sweeps.points(scenario))], jobs=1)
        (two,) = sweeps.run([sweeps.Sweep("small", scenario, sweeps.points(scenario))], jobs=2)
        assert one.points.equals(two.points)

    def test_at_most_so_many(self, scenario: Scenario) -> None:
        few = scenario.with_axes(['seeds={ least = 5, most = 7, until = { goodput_mbps = "1 %" } }'])
        result = swept(few)
        assert seeds_by_place(result) == {"0 %": 5, "2 %": 7}
        (message,) = result.unmet
        assert message.startswith("goodput_mbps of iperf at 2 %: ± ")
        assert message.endswith(" after 7 seeds, asked for ± 1 %")

    def test_one_seed_takes_the_place_of_all(self, scenario: Scenario) -> None:
        assert len(sweeps.points(scenario, seed=3)) == 2


def test_the_table_loads_back(scenario: Scenario) -> None:
    again = Scenario.parse(scenario.to_toml(), "again.toml")
    assert (again.vary, again.adaptive) == (scenario.vary, scenario.adaptive)


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ("{ least = 5 }", "vary: expected a table of measures and the widths wanted, such as until = "),
        ("{ until = {} }", "vary: expected a table of measures and the widths wanted"),
        ('{ untill = { goodput_mbps = "2 %" } }', "vary: unknown key 'untill'; did you mean 'until'?"),
        ('{ until = { goodput_mbps = "2" } }', "vary: '2' has no unit"),
        ("{ until = { goodput_mbps = 0 } }", "vary: expected a width above 0, as '2 %' of the mean or as a number"),
        ('{ until = { goodput_mbps = "0 %" } }', "vary: expected a width above 0"),
        ('{ least = 2, until = { goodput_mbps = "2 %" } }', "vary: 'least' is a number of seeds from 5 to 10000"),
        ('{ most = 4, until = { goodput_mbps = "2 %" } }', "vary: 'most' is a number of seeds from 5 to 10000"),
        ('{ least = 9, most = 8, until = { goodput_mbps = "2 %" } }', "vary: 'most' is 8, and a place begins with 9"),
        ("{ until = { goodput_mbps = inf } }", "vary: expected a width above 0"),
        ("true", "vary: expected a number of seeds from 1 to 10000"),
    ],
)
def test_a_table_that_says_nothing_is_refused(plain: str, seeds: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(f"{plain}\n[vary]\nseeds = {seeds}\n", "small.toml")
    assert str(caught.value).startswith(f"small.toml:{plain.count(chr(10)) + 3}: {message}"), str(caught.value)


def test_a_measure_that_there_is_not_is_refused(plain: str) -> None:
    scenario = Scenario.parse(f'{plain}\n[vary]\nseeds = {{ until = {{ godput_mbps = "2 %" }} }}\n', "small.toml")
    with pytest.raises(ScenarioError) as caught:
        grid.points(scenario)
    line = plain.count("\n") + 3
    assert str(caught.value) == (
        f"small.toml:{line}: vary.seeds.until: unknown measure 'godput_mbps'; did you mean 'goodput_mbps'?"
    )


def test_a_comparison_needs_the_same_seeds_for_all(text: str, tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=r"takes seeds until .* a comparison needs --seeds N for all values$"):
        compare.compare(str(file), by="link.path0.loss")
    assert compare.compare(str(file), by="link.path0.loss", seeds=6) == 0
