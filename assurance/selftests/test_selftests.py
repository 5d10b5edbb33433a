"""The set-ups of the kernel's selftests: each can be written, a verdict can fail, and a few of the day run."""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path

import pytest

from polypath import Scenario
from polypath.engines.linux.kernel import KernelError, find
from polypath.engines.linux.kernel.make import supported

from .__main__ import causes, collected, page, run_missing, unexplained
from .run import SCRIPTS, SET_UPS, Group, Row, groups
from .setup import Seen
from .simult import LARGE, SMALL

PAGE = Path(__file__).resolve().parents[1] / "records" / "selftests.md"


def _only(name: str) -> Group:
    place = next(place for place, each in enumerate(SET_UPS) if each.name == name)
    return Group("sim", (place,), 3)


def _row(name: str, took_ms: float | None = None, faults: tuple[str, ...] = ()) -> Row:
    set_up = next(each for each in SET_UPS if each.name == name)
    return Row("linux", set_up.script, name, 0, set_up.runs, list(faults), took_ms)


def test_every_group_is_a_scenario_of_twelve_at_most() -> None:
    found = groups("linux", SCRIPTS, 0, 1)
    assert sorted(place for group in found for place in group.places) == [*range(len(SET_UPS))]
    for group in found:
        assert len(group.places) <= 12
        assert Scenario.parse(group.drawn()[0], "group.toml").unused == []


def test_a_count_of_runs_has_as_many_of_each_set_up() -> None:
    found = groups("linux", SCRIPTS, 0, 40)
    for place, each in enumerate(SET_UPS):
        assert sum(each.runs for group in found if place in group.places) == 40


def test_a_run_draws_from_its_number_alone() -> None:
    text, _ = _only("ns1 MPTCP -> ns4 MPTCP, IPv4").drawn()
    assert text == _only("ns1 MPTCP -> ns4 MPTCP, IPv4").drawn()[0]
    place = _only("ns1 MPTCP -> ns4 MPTCP, IPv4").places
    assert text != Group("sim", place, 4).drawn()[0]


def test_a_transfer_that_is_late_or_short_does_not_pass() -> None:
    """The bound of two paths of 10 Mbps: 7,456 ms, and 450 ms."""
    name = "balanced bwidth"
    assert _row(name, took_ms=7906.0).reasons() == []
    assert _row(name, took_ms=7907.0).reasons() == ["it took 7,907 of 7,906 ms"]
    _, (drawn,) = _only(name).drawn()
    row = {"server_received_bytes": SMALL, "client_received_bytes": LARGE, "state": "finished"}
    assert drawn.faults(Seen(row, {})) == []
    assert drawn.faults(Seen(row | {"client_received_bytes": LARGE - 1}, {})) == [
        "16777215 of 16777216 bytes at the client"
    ]
    assert drawn.faults(Seen(row | {"state": "reset"}, {})) == ["the connection is reset"]


def test_counters_decide_the_cases_of_joins() -> None:
    """Twenty connections are counted together."""
    _, (drawn,) = _only("single subflow").drawn()
    right = {f"{end} MPTcpExt{name}": 20 for end, name in (("client", "MPJoinSynTx"), ("client", "MPJoinSynAckRx"))}
    right |= {f"server MPTcpExt{name}": 20 for name in ("MPJoinSynRx", "MPJoinAckRx")}
    assert drawn.faults(Seen({}, right)) == []
    assert drawn.faults(Seen({}, right | {"server MPTcpExtMPJoinAckRx": 19})) == ["server MPJoinAckRx 19, not 20"]


def test_a_failure_needs_a_cause_and_a_cause_a_failure() -> None:
    key = ("linux", "mptcp_join", "single subflow")
    passed, failed = (collected([_row(key[2], faults=faults)]) for faults in ((), ("wrong",)))
    assert unexplained(passed, {}) == unexplained(failed, {key: "why"}) == []
    assert "number 0: wrong" in unexplained(failed, {})[0]
    assert "nothing fails" in unexplained(passed, {key: "why"})[0]


def test_a_failure_that_the_script_ignores_needs_no_cause() -> None:
    """It stands on the page all the same."""
    found = collected([_row("unbalanced bwidth", 11_000.0), _row("unbalanced bwidth", 12_000.0)])
    assert unexplained(found, {}) == []
    shown = page(found)
    assert "| unbalanced bwidth (flaky) | 11,921 | 1 of 2 |" in shown
    assert "1 did both; the script marks 1 of these as flaky" in shown
    assert "Not traced" not in shown


def test_the_page_counts_runs_of_a_set_up_that_are_judged_together() -> None:
    shown = page(
        collected([_row("single subflow"), _row("no JOIN", faults=("wrong",)), _row("balanced bwidth", 7000.0)])
    )
    assert "| single subflow | 20 of 20 |" in shown
    assert "| no JOIN | 0 of 20 |" in shown
    assert "| balanced bwidth | 7,906 | 1 of 1 | 7,000 to 7,000 |" in shown
    assert "2 of 3 set-ups passed in every run, 1 failed in every run, and 0 did both" in shown


def test_causes_are_of_set_ups() -> None:
    assert {key[1:] for key in causes()} <= {(each.script, each.name) for each in SET_UPS}


def test_rows_that_are_there_do_not_run_again(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    wanted = [_only("ns1 MPTCP -> ns2 MPTCP, IPv4")]
    first = run_missing(file, wanted, 1)
    kept = file.read_text(encoding="utf-8")
    assert [row.reasons() for row in first] == [[]]
    assert run_missing(file, wanted, 1) == first
    assert file.read_text(encoding="utf-8") == kept


def test_set_ups_of_the_day_pass_on_the_kernel() -> None:
    try:
        supported()
        find()
    except KernelError as error:
        pytest.skip(str(error))
    number = date.today().toordinal()
    known = causes()
    sure = [
        place
        for place, each in enumerate(SET_UPS)
        if each.script != "simult_flows" and each.runs == 1 and ("linux", each.script, each.name) not in known
    ]
    places = tuple(sorted(random.Random(number).sample(sure, 4)))
    for script in SCRIPTS:
        of_script = tuple(place for place in places if SET_UPS[place].script == script)
        if of_script:
            assert [row for row in Group("linux", of_script, number).rows() if row.reasons()] == []


def test_the_page_has_every_set_up() -> None:
    shown = PAGE.read_text(encoding="utf-8")
    assert [
        each.name for each in SET_UPS if f"| {each.name} |" not in shown and f"| {each.name} (flaky) |" not in shown
    ] == []
