"""Traces of delivery opportunities and tables of conditions: what is read, what is refused, what a plan has of them."""

import json
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from polypath.formats.plan import scenario_of
from polypath.results.metrics import link_courses
from polypath.scenario import Plan, Scenario, ScenarioError, conditions, describe_topology, synthetic, traces

TEXT = """
duration = "5 s"
[host.client]
[host.server]
[link.lte]
ends = ["client", "server"]
delay = "10 ms"
{link}
[[application]]
kind = "cbr"
rate = "20 Mbps"
packet = "1472 B"
duration = "4 s"
"""
UP, DOWN = "0\n1\n1\n7\n10\n", "2\n4\n6\n8\n10\n"


@pytest.fixture(autouse=True)
def small_registry() -> None:
    """The engine's own registry, which plans are made of."""


def scenario(folder: Path, link: str, **files: str) -> Path:
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")
    path = folder / "scenario.toml"
    path.write_text(TEXT.format(link=link), encoding="utf-8")
    return path


def plan(folder: Path, link: str, **files: str) -> Plan:
    return Scenario.load(scenario(folder, link, **files)).plan()


TRACED = 'rate = { trace = "lte.up" }\nbackward = { rate = { trace = "lte.down" } }'


class TestTrace:
    def test_each_direction_has_its_own(self, tmp_path: Path) -> None:
        link = plan(tmp_path, TRACED, lte_up=UP, lte_down=DOWN).data["links"][0]
        assert link["forward"]["trace"] == {"name": "lte.up", "gaps_ms": [[0, 1], [1, 1], [0, 1], [6, 1], [3, 1]]}
        assert link["backward"]["trace"] == {"name": "lte.down", "gaps_ms": [[2, 5]]}
        for side in (link["forward"], link["backward"]):
            assert side["rate_bps"] == 5 * 1500 * 8 * 100
            assert side["overhead_bytes"] == 0
            assert side["queue"]["packets"] == 1000

    def test_a_plan_is_of_the_contents(self, tmp_path: Path) -> None:
        before = plan(tmp_path, TRACED, lte_up=UP, lte_down=DOWN)
        assert plan(tmp_path, TRACED, lte_up=UP.replace("7", "8"), lte_down=DOWN).sha256() != before.sha256()
        other = tmp_path / "other"
        other.mkdir()
        assert plan(other, TRACED, lte_up=UP, lte_down=DOWN).data["links"] == before.view["links"]

    def test_the_overhead_counts_in_the_mean(self, tmp_path: Path) -> None:
        side = plan(tmp_path, 'overhead = 4\nrate = { trace = "lte.up" }', lte_up=UP).data["links"][0]["forward"]
        assert (side["overhead_bytes"], side["rate_bps"]) == (4, 5 * 1504 * 8 * 100)

    def test_a_scenario_says_what_its_plan_says(self, tmp_path: Path) -> None:
        made = Scenario.load(scenario(tmp_path, TRACED, lte_up=UP, lte_down=DOWN))
        again = Scenario.parse(made.to_toml(), "again.toml")
        assert again.plan() == made.plan() == made.resolved().plan()
        assert set(made.scripts()) == {tmp_path / "lte.up", tmp_path / "lte.down"}
        imported = scenario_of(made.plan(), "plan.json")
        assert imported.plan().data["links"] == made.plan().view["links"]
        assert 'gaps_ms = "2x5"' in imported.to_toml()
        assert not imported.scripts()

    def test_the_picture_names_it(self, tmp_path: Path) -> None:
        made = Scenario.load(scenario(tmp_path, TRACED, lte_up=UP, lte_down=DOWN))
        picture = describe_topology(made)
        assert "lte.up (6 Mbps mean) forth, lte.down (6 Mbps mean) back" in picture

    @pytest.mark.parametrize(
        ("text", "line", "message"),
        [
            ("", None, "the file is empty: a trace has a time in ms on each line"),
            ("0\n0\n", 2, "the last time is 0 ms: it is the trace's period and must be more"),
            ("1\n-2\n", 2, "the time is negative; a line has one whole number of milliseconds, at least 0"),
            ("5\n4\n", 2, "the time is less than that of the line before"),
            ("5\nsix\n", 2, "this is no time; a line has one whole number of milliseconds"),
            ("5\n6.5\n", 2, "this is no time; a line has one whole number of milliseconds"),
            ("5\n\n7\n", 2, "the line is empty; a line has one whole number of milliseconds"),
            ("5 6\n", 1, "this is no time; a line has one whole number of milliseconds"),
            ("9" * 5000, 1, "the time is beyond 1000000000 ms"),
        ],
    )
    def test_bad_files(self, tmp_path: Path, text: str, line: int | None, message: str) -> None:
        path = scenario(tmp_path, 'rate = { trace = "lte.up" }', lte_up=text)
        where = f"{tmp_path / 'lte.up'}" + ("" if line is None else f":{line}")
        with pytest.raises(ScenarioError) as caught:
            Scenario.load(path)
        assert str(caught.value) == f"{path}:8: link.lte.rate: {where}: {message}"

    @pytest.mark.parametrize(
        ("link", "message"),
        [
            ('rate = { trace = "none.up" }', "none.up: no such file"),
            ('rate = { trace = "lte.up", gaps_ms = "1y2" }', "'1y2' is no gap in ms, such as 12, or 1x40"),
            ('rate = { trace = "lte.up", gaps_ms = "0x7" }', "a trace lasts from 1 ms to 1000000000 ms, not 0 ms"),
            ('rate = { trac = "lte.up" }', "did you mean 'trace'?"),
            ('rate = { trace = "lte.up" }\nburst = "15 kB"', "a link that follows a trace has no 'burst'"),
            ('rate = { trace = "lte.up" }\nqueue_at = "host-tbf"', "a trace has its queue at the link"),
            ('rate = { trace = "lte.up" }\nconditions = { csv = "w.csv" }', "'conditions' cannot give its rate"),
            ('rate = { trace = "lte.up" }\n[[event]]\nat = "1 s"\nlink = "lte"\nrate = "1 Mbps"', "cannot be changed"),
        ],
    )
    def test_what_does_not_go_together(self, tmp_path: Path, link: str, message: str) -> None:
        path = scenario(tmp_path, link, lte_up=UP, w_csv="time_s,rate_mbps\n0,1\n")
        with pytest.raises(ScenarioError) as caught:
            Scenario.load(path)
        assert any(message in str(error) for error in caught.value.errors), caught.value.errors

    def test_text_and_times_are_the_same(self) -> None:
        made = traces.Opportunities.at([0, 0, 1, 2, 3, 9])
        assert made.text() == "0x2 1x3 6"
        assert list(made.times_ms()) == [0, 0, 1, 2, 3, 9]
        text = traces.DeliveryTrace.model_validate({"trace": "x", "gaps_ms": made.text()})
        assert list(text.opportunities().times_ms()) == [0, 0, 1, 2, 3, 9]


class TestRun:
    def test_a_saturated_link_delivers_a_packet_at_each_opportunity(self, tmp_path: Path) -> None:
        import polypath

        text = TRACED + '\n[[application]]\nkind = "cbr"\nname = "back"\nclient = "server"\nserver = "client"\n'
        text += 'rate = "20 Mbps"\npacket = "1472 B"\nduration = "4 s"\nstart = "0 s"'
        recording = polypath.run(Scenario.load(scenario(tmp_path, text, lte_up=UP, lte_down=DOWN)))
        rows = recording.table("links").filter(pl.col("time_ns") == 3_000_000_000).rows(named=True)
        found = {row["direction"]: row["sent_packets"] for row in rows}
        # 5 opportunities in each of 300 rounds. Upwards the one at 0 ms is missed and that at 3 s is used.
        assert found == {"forward": 1500, "backward": 1500}

    def test_the_page_has_the_part_of_the_opportunities_used(self, tmp_path: Path) -> None:
        import polypath

        recording = polypath.run(Scenario.load(scenario(tmp_path, TRACED, lte_up=UP, lte_down=DOWN)))
        use = link_courses(recording)["use"][0]
        total = 0
        seen = [total := total + step for step in use]
        assert set(seen[1:30]) == {1000}

    def test_utilisation_is_the_part_of_the_opportunities_used(self, tmp_path: Path) -> None:
        import polypath
        from polypath.results import metrics

        link = 'rate = { trace = "lte.down" }'
        recording = polypath.run(Scenario.load(scenario(tmp_path, link, lte_down=DOWN)))
        rows = recording.table("link_ends").filter(pl.col("direction") == "forward").rows(named=True)
        offered = recording.metadata.end_ns // 2_000_000
        share = rows[0]["sent_packets"] / offered
        assert metrics.utilisation(recording, rows[0]["busy_ns"]) == pytest.approx(share, abs=1e-6)


CSV = "time_s,rate_mbps,delay_ms,loss\n0,20,10,0\n1,8,,0.01\n2.5,8,40,\n3,20,10,0\n"


class TestConditions:
    def test_a_row_holds_from_its_time_on(self, tmp_path: Path) -> None:
        made = plan(tmp_path, 'conditions = { csv = "w.csv" }', w_csv=CSV).data
        side = made["links"][0]["forward"]
        assert (side["rate_bps"], side["delay_ns"], side["queue"]["packets"]) == (20_000_000, 10_000_000, 1000)
        none = {"queue": None, "up": None, "kind": "link", "link": 0, "direction": "both"}
        calm, lossy = {"kind": "none"}, {"kind": "random", "probability": 0.01}
        assert made["events"] == [
            {"at_ns": 1_000_000_000, "action": {**none, "rate_bps": 8_000_000, "delay_ns": None, "loss": lossy}},
            {"at_ns": 2_500_000_000, "action": {**none, "rate_bps": None, "delay_ns": 40_000_000, "loss": None}},
            {
                "at_ns": 3_000_000_000,
                "action": {**none, "rate_bps": 20_000_000, "delay_ns": 10_000_000, "loss": calm},
            },
        ]

    def test_columns_that_are_missing_leave_the_links_own(self, tmp_path: Path) -> None:
        link = 'rate = "5 Mbps"\nloss = "2 %"\nbackward = { conditions = { csv = "w.csv" } }'
        made = plan(tmp_path, link, w_csv="delay_ms,time_ms\n20,0\n30,500\n").data
        forward, backward = made["links"][0]["forward"], made["links"][0]["backward"]
        assert (forward["delay_ns"], backward["delay_ns"]) == (10_000_000, 20_000_000)
        assert backward["rate_bps"] == 5_000_000
        assert backward["loss"] == {"kind": "random", "probability": 0.02}
        action = made["events"][0]["action"]
        assert (action["direction"], action["delay_ns"], action["rate_bps"]) == ("backward", 30_000_000, None)

    def test_a_loop_starts_over_at_the_last_time(self, tmp_path: Path) -> None:
        link = 'conditions = { csv = "w.csv", loop = true }'
        made = plan(tmp_path, link, w_csv="time_s,rate_mbps\n0,10\n1,5\n2,7\n").data
        changes = [(event["at_ns"] // 10**9, event["action"]["rate_bps"] // 10**6) for event in made["events"]]
        assert changes == [(1, 5), (2, 10), (3, 5), (4, 10)]

    def test_without_a_row_at_0_the_link_begins_with_its_own(self, tmp_path: Path) -> None:
        link = 'rate = "3 Mbps"\nconditions = { csv = "w.csv", loop = true }'
        made = plan(tmp_path, link, w_csv="time_s,rate_mbps\n1,5\n2,7\n").data
        assert made["links"][0]["forward"]["rate_bps"] == 3_000_000
        changes = [(event["at_ns"] // 10**9, event["action"]["rate_bps"] // 10**6) for event in made["events"]]
        assert changes == [(1, 5), (2, 7), (3, 5), (4, 7)]

    @pytest.mark.parametrize(
        ("columns", "event", "refused"),
        [
            ("rate_mbps", 'rate = "1 Mbps"', "rate"),
            ("delay_ms", 'delay = "1 ms"', "delay"),
            ("loss", 'loss = "1 %"', "loss"),
            ("rate_mbps", 'rate = "1 Mbps"\ndirection = "backward"', None),
            ("rate_mbps", 'delay = "1 ms"\nup = false', None),
        ],
    )
    def test_what_a_column_sets_no_event_sets(
        self, tmp_path: Path, columns: str, event: str, refused: str | None
    ) -> None:
        link = 'rate = "5 Mbps"\nforward = { conditions = { csv = "w.csv" } }'
        path = scenario(
            tmp_path, f'{link}\n[[event]]\nlink = "lte"\nat = "1 s"\n{event}', w_csv=f"time_s,{columns}\n0,1\n2,1\n"
        )
        if refused is None:
            Scenario.load(path)
            return
        with pytest.raises(ScenarioError) as caught:
            Scenario.load(path)
        message = f"link.lte.forward has its {refused} from 'w.csv'; give that file a row at the event's time"
        assert str(caught.value) == f"{path}:13: {message}"

    def test_import_gives_the_same_plan(self, tmp_path: Path) -> None:
        made = plan(tmp_path, 'conditions = { csv = "w.csv" }', w_csv=CSV)
        assert scenario_of(made, "plan.json").plan().data["events"] == made.view["events"]

    @pytest.mark.parametrize(
        ("text", "line", "message"),
        [
            ("", None, "the file is empty: its first line names columns"),
            ("time_s,rate_mps\n", 1, "column 2 is none of time_s, "),
            ("time_s,time_ms\n", 1, "columns 'time_s' and 'time_ms' are of the same"),
            ("rate_mbps\n1\n", 1, "there is no column 'time_s' or 'time_ms'"),
            ("time_s\n1\n", 1, "there is no column besides the time"),
            ("time_s,loss\n", 1, "there are no rows below the header"),
            ("time_s,loss\n0,0,1\n", 2, "the row has 3 values, and there are 2 columns"),
            ("time_s,loss\n0,x\n", 2, "loss: expected a number"),
            ("time_s,loss\n0,nan\n", 2, "loss: expected a number"),
            ("time_s,rate_mbps\n0,1_0\n", 2, "rate_mbps: expected a number"),
            ("time_s,rate_mbps\n0,\u0663\n", 2, "rate_mbps: expected a number"),
            ("time_s,rate_mbps\n0,1e400\n", 2, "rate_mbps: expected a number"),
            ('time_s,rate_mbps\n0,"10\n', 2, "this is no CSV: unexpected end of data"),
            ("time_s,loss\n0,2\n", 2, "loss: must be from 0 to 1"),
            ("time_s,loss_percent\n0,101\n", 2, "loss_percent: must be from 0 to 100"),
            ("time_s,rate_mbps\n0,0\n", 2, "rate_mbps: a rate must be above 0"),
            ("time_s,loss\n-1,0\n", 2, "time_s: must be from 0 s to 1000000 s"),
            ("time_s,loss\n1,0\n\n1,1\n", 4, "the time is not later than that of the row before"),
            (",loss\n1,0\n", 1, "column 1 is none of"),
        ],
    )
    def test_bad_files(self, tmp_path: Path, text: str, line: int | None, message: str) -> None:
        path = scenario(tmp_path, 'conditions = { csv = "w.csv" }', w_csv=text)
        where = f"{tmp_path / 'w.csv'}" + ("" if line is None else f":{line}")
        with pytest.raises(ScenarioError) as caught:
            Scenario.load(path)
        assert str(caught.value).startswith(f"{path}:8: link.lte.conditions: {where}: {message}")

    def test_a_loop_without_time_and_too_many_changes(self, tmp_path: Path) -> None:
        link = 'conditions = { csv = "w.csv", loop = true }'
        with pytest.raises(ScenarioError, match="the last row's time is the period, and must be above 0"):
            plan(tmp_path, link, w_csv="time_s,loss\n0,0\n")
        with pytest.raises(ScenarioError, match="the link would change more than 20000 times"):
            plan(tmp_path, link, w_csv="time_ms,loss\n0,0\n0.0001,0.1\n0.0002,0\n")


class TestSynthetic:
    def test_the_same_seed_gives_the_same_file(self) -> None:
        for kind in synthetic.KINDS.values():
            assert kind.make(3, 20) == kind.make(3, 20) != kind.make(4, 20)

    def test_lte_is_a_trace_of_its_duration_within_12_mbps(self) -> None:
        for seed in range(5):
            made = traces.parse(synthetic.lte(seed, 20), "lte")
            assert made.period_ms == 20_000
            assert 100_000 < made.mean_rate_bps() < 12_500_000

    def test_wifi_gets_slower_until_nothing_arrives(self) -> None:
        for seed in range(5):
            rows = conditions.parse(synthetic.wifi_walk(seed, 60), "walk")
            assert rows[0].values["rate_bps"] >= 10 * 10**6
            assert rows[-1].values["loss"] == 1
            assert rows[-1].time_ns == 59_500_000_000

    def test_satellites_hand_over_each_15_s(self) -> None:
        rows = conditions.parse(synthetic.satellite(1, 60), "satellite")
        assert [row.time_ns // 10**8 for row in rows] == [0, 150, 151, 300, 301, 450, 451]
        assert [row.values["loss"] for row in rows] == [0, 1, 0, 1, 0, 1, 0]
        for gap, slot in pairwise(rows[1:]):
            if gap.values["loss"]:
                assert gap.values["delay_ns"] == slot.values["delay_ns"]


def test_a_plan_is_compact(tmp_path: Path) -> None:
    text = synthetic.lte(1, 20)
    made = plan(tmp_path, 'rate = { trace = "lte.up" }', lte_up=text)
    assert len(json.dumps(made.data["links"][0]["forward"])) < 2 * len(text)
