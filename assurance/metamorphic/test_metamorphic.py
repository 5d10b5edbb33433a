"""Fixed scenarios, as many others each day, and faults that are noticed; `make metamorphic` is the campaign."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from tests.slow import others_slow

import polypath
from polypath import Plan, Recording, Scenario, measures
from polypath.formats import iperf3

from . import drawn, observing, parts, repeating, times, toml, trial, writing
from .__main__ import page, table
from .case import Case
from .families import ALL, FAMILIES, Broken, Unfit
from .relation import Relation
from .trial import Row, fault_of_text, reduced, tried

#: Scenarios of a test, tests of each kind, and those of them in `make test`.
TOGETHER, TESTS, SOON = 25, 10, 2
TODAY = datetime.now(UTC).date().toordinal()
FIRST_DAILY = 10**9


@pytest.mark.parametrize("place", others_slow(range(TESTS), *range(SOON)))
def test_relations_hold(place: int) -> None:
    assert _broken(TOGETHER * place) == {}


@pytest.mark.parametrize("place", others_slow(range(TESTS), *range(SOON)))
def test_relations_hold_for_others_each_day(place: int) -> None:
    assert _broken(FIRST_DAILY + TOGETHER * (TESTS * TODAY + place)) == {}


def _broken(first: int) -> dict[int, dict[str, str]]:
    found = [tried(number) for number in range(first, first + TOGETHER)]
    assert sum(row.refused is not None for row in found) < TOGETHER / 2
    return {row.number: row.broken for row in found if row.broken}


PLAIN = """
name = "plain"
seed = 3
duration = "900 ms"

[defaults]
initial_window = 4

[host.client]
[host.server]
[router.r]

[link.access]
ends = ["client", "r"]
rate = "4 Mbps"
delay = "7 ms"
queue = "50 packets"

[link.core]
ends = ["r", "server"]
rate = "3 Mbps"
delay = "5 ms"

[[application]]
kind = "bulk"
transport = "tcp"
size = "60 kB"

[[application]]
kind = "cbr"
transport = "udp"
rate = "200 kbps"
duration = "900 ms"

[[event]]
at = "100 ms"
link = "access"
rate = "5 Mbps"
delay = "8 ms"

[[event]]
at = "200 ms"
link = "core"
delay = "6 ms"
"""

Tables = Callable[[Mapping[str, pl.DataFrame]], Mapping[str, pl.DataFrame]]


def case(tmp_path: Path, text: str = PLAIN) -> Case:
    return Case(text, tmp_path / "case")


def check(name: str, of: Case) -> None:
    ALL[name].check(of, Random(1))


@pytest.fixture
def spoilt(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Plan, dict[str, Any]], bool], str, str], None]:
    """Runs whose plan and options are as asked have one more in a column of a table."""
    run = polypath.run

    def spoil(wanted: Callable[[Plan, dict[str, Any]], bool], name: str, column: str) -> None:
        def other(scenario: Scenario | Plan, **options: Any) -> Recording:
            made = run(scenario, **options)
            plan = scenario if isinstance(scenario, Plan) else scenario.plan()
            if not wanted(plan, options):
                return made
            changed = made.tables[name].with_columns(pl.col(column) + 1)
            return Recording({**made.tables, name: changed}, made.plan, made.metadata)

        monkeypatch.setattr(polypath, "run", other)

    return spoil


def test_the_plain_scenario_keeps_all_that_speak_of_it(tmp_path: Path) -> None:
    of, fitting = case(tmp_path), set()
    for each in ALL.values():
        try:
            assert trial.fault(each, of) is None
            fitting.add(each.family)
        except Unfit:
            pass
    assert fitting >= {family.__name__.rpartition(".")[2] for family in FAMILIES} - {"captured"}


@pytest.mark.parametrize(
    ("name", "wanted", "spoils", "column"),
    [
        ("unused-hosts", lambda plan, _: len(plan.view["nodes"]) > 3, "connection_ends", "last_byte_ns"),
        ("relabelled", lambda plan, _: plan.view["nodes"][0]["name"] != "client", "link_ends", "busy_ns"),
        ("two-networks", lambda plan, _: len(plan.view["nodes"]) > 3, "datagrams", "received_bytes"),
        ("longer-duration", lambda plan, _: plan.view["duration_ns"] > 900_000_000, "links", "queue_bytes"),
        ("later-start", lambda plan, _: plan.view["duration_ns"] > 6_000_000_000, "connection_ends", "end_ns"),
        ("split-event", lambda plan, _: len(plan.view["events"]) > 2, "link_ends", "sent_bytes"),
        (
            "sampling-interval",
            lambda plan, _: plan.view["record"]["interval_ns"] != 100_000_000,
            "links",
            "sent_packets",
        ),
        ("captures", lambda _, options: "captures" in options, "subflow_ends", "client_sent_bytes"),
        ("recorded-segments", lambda _, options: options.get("segments"), "connections", "delivered_bytes"),
        ("other-seed", lambda plan, _: plan.view["seed"] != 3, "connection_ends", "established_ns"),
    ],
)
def test_another_figure_is_noticed(
    name: str, wanted: Callable[[Plan, dict[str, Any]], bool], spoils: str, column: str, tmp_path: Path, spoilt: Any
) -> None:
    check(name, case(tmp_path))
    spoilt(wanted, spoils, column)
    with pytest.raises(Broken, match=spoils):
        check(name, case(tmp_path / "spoilt"))


def test_another_plan_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = Scenario.resolved
    monkeypatch.setattr(
        Scenario, "resolved", lambda of: Scenario.from_data({**data(of).to_data(), "duration": "901 ms"})
    )
    with pytest.raises(Broken, match=r"plan\.duration_ns"):
        check("resolved", case(tmp_path))


def test_a_unit_that_is_read_wrongly_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_in_another_unit", lambda quantity, number, random: quantity.format(number + 1))
    with pytest.raises(Broken, match="plan"):
        check("other-units", case(tmp_path))


def test_a_hash_that_differs_elsewhere_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeating, "_elsewhere", lambda: _Other())
    with pytest.raises(Broken, match="there the plan is 0"):
        check("other-process", case(tmp_path))


class _Other:
    def told(self, text: str) -> dict[str, str]:
        return {"plan": "0"}


def test_a_sum_that_is_wrong_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = iperf3.document

    def wrong(*given: Any) -> dict[str, Any]:
        found = document(*given)
        found["end"]["sum_received"]["bytes"] += 1
        return found

    monkeypatch.setattr(iperf3, "document", wrong)
    with pytest.raises(Broken, match="intervals have"):
        check("iperf3-sums", case(tmp_path))


def test_figures_that_differ_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = case(tmp_path)
    of.recording  # noqa: B018, the run is whole
    summary = measures.summary
    monkeypatch.setattr(
        polypath, "summary", lambda recording: {**summary(recording), "interrupted": True}, raising=False
    )
    with pytest.raises(Broken, match="summary"):
        check("page", of)


@pytest.mark.parametrize(
    ("name", "spoils", "column"),
    [
        ("running-totals", "links", "sent_bytes"),
        ("last-samples", "link_ends", "sent_packets"),
        ("received-and-sent", "connection_ends", "server_received_bytes"),
        ("busy-links", "link_ends", "busy_ns"),
    ],
)
def test_a_total_that_is_wrong_is_noticed(name: str, spoils: str, column: str, tmp_path: Path) -> None:
    of = case(tmp_path)
    check(name, of)
    run = of.recording
    added = pl.col(column) + (pl.len() - pl.int_range(pl.len())).cast(pl.UInt64) * 10**9
    changed = run.tables[spoils].with_columns(added.alias(column))
    of.__dict__["recording"] = Recording({**run.tables, spoils: changed}, run.plan, run.metadata)
    with pytest.raises(Broken):
        check(name, of)


CAPTURED = PLAIN.partition("[[event]]")[0].replace('kind = "cbr"', 'kind = "bulk"').replace('"udp"', '"mptcp"')


def test_a_trace_of_other_bytes_is_noticed(tmp_path: Path, spoilt: Any) -> None:
    text = CAPTURED.replace('rate = "200 kbps"\n', "").replace('"900 ms"\n', '"300 ms"\n', 2)
    check("trace-of-hosts", case(tmp_path, text))
    spoilt(lambda _, options: "captures" in options, "subflow_ends", "server_received_bytes")
    with pytest.raises(Broken, match="server_received_bytes"):
        check("trace-of-hosts", case(tmp_path / "spoilt", text))


def test_a_failure_is_made_small() -> None:
    of = Relation("any", "tests", "", "", _no_core, 1)
    small = tomllib.loads(reduced(of, PLAIN))
    assert list(small["link"]) == ["access", "core"]
    assert "event" not in small or small["event"] == []
    assert len(small["application"]) == 1
    assert fault_of_text(of, PLAIN) == fault_of_text(of, toml.text(small)) == "there is a core"
    assert "rate" not in small["link"]["access"]


def _no_core(of: Case, random: Random) -> None:
    if "core" in of.data["link"] and of.data["application"]:
        raise Broken("there is a core")


def test_a_row_comes_back_and_the_page_counts() -> None:
    found = [Row(1, applied=["again"], broken={"again": "x"}), Row(2, refused="no"), Row(3, applied=["again"])]
    assert [Row.load(each.json()) for each in found] == found
    (line,) = [line for line in table(found) if "`again`" in line]
    assert line.endswith("| 2 | 1 |")
    assert "3 scenarios were drawn, 1 of them refused" in page(found)


def test_a_number_gives_the_same_scenario_and_all_are_read() -> None:
    assert drawn.scenario(5) == drawn.scenario(5)
    assert tomllib.loads(toml.text(tomllib.loads(PLAIN))) == tomllib.loads(PLAIN)
    assert len(ALL) >= 20
    assert {observing, parts, times} <= set(FAMILIES)
