"""A run that is stepped: the same as one that is not, whatever is asked, changed and taken back on the way."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polypath
from polypath import EngineError, Recording, ScenarioError
from polypath.scenario import Scenario
from polypath.stepping import CongestionDecision, Decision, Event, PathManagerDecision, Run, SchedulerDecision
from polypath.stepping.decisions import DecisionError

PATHS = """
name = "stepped"
seed = 4
duration = "6 s"
[host.client]
[host.server]
[router.r]
[link.wifi]
ends = ["client:wifi", "r"]
rate = "9 Mbps"
delay = "8 ms"
queue = "40 packets"
[link.lte]
ends = ["client:lte", "r"]
rate = "4 Mbps"
delay = "30 ms"
queue = "60 packets"
[link.server]
ends = ["r", "server"]
[[application]]
name = "upload"
kind = "bulk"
size = "1.5 MB"
"""
SCENARIO = Scenario.parse(PATHS, "stepped.toml")
LOSSY = SCENARIO.with_({"link.lte.loss": "0.2 %"})


def digest(recording: Recording) -> str:
    return recording.metadata.recording_sha256


def lowest(decision: SchedulerDecision) -> int:
    """As the scheduler `default` does it for new data."""
    usable = [path for path in decision.view.paths if path.ready]
    return min(usable, key=lambda path: path.srtt).index if usable else 0


def decided(run: Run, choose: Callable[[SchedulerDecision], Any] = lowest) -> Recording:
    while (decision := run.step()) is not None:
        assert isinstance(decision, SchedulerDecision)
        decision.answer(choose(decision))
    return run.recording()


@settings(max_examples=8, deadline=None)
@given(st.lists(st.floats(0.0, 6.5), max_size=12), st.integers(0, 2**31))
def test_steps_and_looks_leave_no_trace(times: list[float], seed: int) -> None:
    run = Run(LOSSY, seed=seed)
    for until in sorted(times):
        assert run.step(until) is None
        assert run.finished or run.now == pytest.approx(until, abs=1e-9)
        run.observe()
    run.step()
    assert run.finished
    assert digest(run.recording()) == digest(polypath.run(LOSSY, seed=seed))


def test_a_step_is_seen_as_a_sample_would_record_it() -> None:
    whole = polypath.run(SCENARIO)
    run = Run(SCENARIO)
    run.step(1.0)
    seen = run.observe()
    assert seen.time == 1.0
    for table, rows in (("connections", seen.connections), ("subflows", seen.subflows), ("links", seen.links)):
        recorded = whole.table(table).filter(whole.table(table)["time_ns"] == 1_000_000_000).to_dicts()
        added = {"application", "name"}
        assert [{key: value for key, value in row.items() if key not in added} for row in rows] == recorded
    assert {row["application"] for row in seen.subflows} == {"upload"}
    assert [row["name"] for row in seen.links][::2] == ["wifi", "lte", "server"]


def test_events_come_one_by_one_with_their_times() -> None:
    run = Run(SCENARIO)
    events = []
    while (event := run.step(events=True)) is not None:
        assert isinstance(event, Event)
        assert event.time <= run.now
        events.append(event)
    recording = run.recording()
    assert [(round(event.time * 1e9), event.kind) for event in events] == recording.table("events").select(
        "time_ns", "kind"
    ).rows()
    established = [event for event in events if event.kind == "subflow-established" and event.host == "client"]
    assert [event.subflow for event in established] == [0, 1]
    assert established[0].application == "upload"


@pytest.mark.parametrize("profile", ["rfc", "linux", "mptcp.org"])
@settings(max_examples=3, deadline=None)
@given(at=st.lists(st.integers(500_000, 1_200_000_000), min_size=4, max_size=4, unique=True))
def test_a_change_is_what_the_same_event_is(profile: str, at: list[int]) -> None:
    """Times are odd, so that nothing else happens in the same nanosecond."""
    scenario = SCENARIO.with_({"defaults.profile": profile})
    changes: list[dict[str, Any]] = [
        {"link": "wifi", "rate": "3 Mbps", "delay": "12 ms"},
        {"interface": "client:lte", "up": False},
        {"interface": "client:lte", "up": True},
        {"interface": "client:wifi", "backup": True},
    ]
    times = sorted(2 * time + 1 for time in at)
    run = Run(scenario)
    for time, change in zip(times, changes, strict=True):
        run.step(time / 1e9)
        if run.finished:
            return
        run.change(**change)
    run.step()
    stepped = run.recording()
    written = [{"at": f"{time} ns", **change} for time, change in zip(times, changes, strict=True)]
    scheduled = polypath.run(scenario.with_more("event", written))
    assert digest(stepped) == digest(scheduled)
    assert stepped.metadata.plan_sha256 == scheduled.metadata.plan_sha256
    assert stepped.table("events").equals(scheduled.table("events"))


@pytest.mark.parametrize("transport", ["mptcp", "mpquic"])
def test_lowest_rtt_decided_outside_gives_the_bytes_of_the_built_in_one(transport: str) -> None:
    scenario = SCENARIO.with_({"application.upload.transport": transport})
    run = Run(scenario, decide=["host.client.scheduler"])
    ours = decided(run)
    plain = {"opportunistic_retransmission": False, "penalisation": False, "waits_for_pacer": False}
    built_in = polypath.run(scenario.with_({"host.client.scheduler": {"kind": "default", **plain}}))
    assert digest(ours) == digest(built_in)


def test_deciding_outside_and_a_class_of_the_callers_own_give_the_same_bytes() -> None:
    class Lowest:
        def select(self, view: Any) -> int:
            ready = [path for path in view.paths if path.ready]
            return int(min(ready, key=lambda path: path.srtt).index) if ready else 0

    run = Run(LOSSY, algorithms={"host.client.scheduler": Lowest})
    assert run.step() is None
    assert digest(run.recording()) == digest(decided(Run(LOSSY, decide=["host.client.scheduler"])))


@settings(max_examples=4, deadline=None)
@given(st.integers(1, 900), st.booleans())
def test_a_snapshot_is_taken_back_to_the_same_bytes(answers: int, answered: bool) -> None:
    def begun() -> tuple[Run, SchedulerDecision]:
        run = Run(LOSSY, decide=["host.client.scheduler"])
        run.step(0.001)
        run.change(link="lte", rate="3 Mbps")
        for _ in range(answers):
            decision = run.step()
            assert isinstance(decision, SchedulerDecision)
            decision.answer(lowest(decision))
        last = run.step()
        assert isinstance(last, SchedulerDecision)
        return run, last

    run, last = begun()
    if answered:
        last.answer(lowest(last))
    snapshot = run.snapshot()
    again = Run.restore(snapshot)
    assert again.now == run.now
    for each in (run, again):
        if (open_ := each.decision) is not None:
            assert isinstance(open_, SchedulerDecision)
            open_.answer(lowest(open_))
    assert digest(decided(again)) == digest(decided(run))


def test_a_window_is_decided_at_intervals_and_holds() -> None:
    scenario = SCENARIO.with_({"application.upload.transport": "tcp"})
    run = Run(scenario, decide={"host.client.congestion": 0.2})
    times = []
    while (decision := run.step()) is not None:
        assert isinstance(decision, CongestionDecision)
        times.append(decision.time)
        if len(times) > 2:
            assert decision.path.cwnd == 5
            assert decision.interval.rtt_mean is not None
            # no more than a window in each RTT
            assert decision.interval.rate <= 5 * decision.path.mss / decision.interval.rtt_mean
        decision.answer(cwnd=5)
    assert all(later - earlier >= 0.2 for earlier, later in pairwise(times))
    assert len(times) > 10
    subflows = run.recording().table("subflows")
    assert set(subflows.filter((subflows["side"] == "client") & (subflows["time_ns"] > 5e8))["cwnd_packets"]) == {5}


def test_a_path_manager_is_decided() -> None:
    run = Run(SCENARIO, decide=["host.client.path_manager"])
    asked = 0
    while (decision := run.step()) is not None:
        assert isinstance(decision, PathManagerDecision)
        asked += 1
        second, peer = decision.view.local[1].address, decision.view.remote[0].address
        late = decision.view.now >= 1.0
        decision.answer([("open", second, peer)] if late else [], wake=None if late else 1.0)
    assert asked == 2
    established = [row for row in run.recording().table("events").to_dicts() if row["kind"] == "subflow-established"]
    assert [row["subflow"] for row in established if row["host"] == "client"] == [0, 1]
    assert established[-1]["time_ns"] > 1_000_000_000


def test_two_connections_are_told_apart() -> None:
    scenario = SCENARIO.with_more("application", [{"name": "later", "kind": "bulk", "size": "20 kB", "start": "0.5 s"}])
    run = Run(scenario, decide=["defaults.scheduler"])
    first: dict[int, float] = {}
    while (decision := run.step()) is not None:
        assert isinstance(decision, SchedulerDecision)
        first.setdefault(decision.number, decision.time)
        decision.answer(lowest(decision))
    assert list(first) == [0, 1]
    assert first[0] < 0.1 < 0.5 < first[1]


def message(error: type[Exception], work: Callable[[], Any]) -> str:
    with pytest.raises(error) as caught:
        work()
    return str(caught.value)


def test_what_cannot_be_is_said_in_one_line() -> None:
    assert message(EngineError, lambda: Run(SCENARIO, decide=["host.client.schedule"])) == (
        "'host.client.schedule' cannot be decided; did you mean 'host.client.scheduler'?"
    )
    assert "only a congestion control is asked at intervals" in message(
        EngineError, lambda: Run(SCENARIO, decide={"host.client.scheduler": 0.1})
    )
    assert "host.cleint" in message(ScenarioError, lambda: Run(SCENARIO, decide=["host.cleint.scheduler"]))
    with Run(SCENARIO, decide=["host.client.scheduler"]) as run:
        decision = run.step()
        assert isinstance(decision, SchedulerDecision)
        assert run.decision is decision
        assert "in the middle of an instant" in message(EngineError, run.observe)
        assert "in the middle of an instant" in message(EngineError, lambda: run.change(link="lte", up=False))
        assert message(EngineError, run.step) == (
            "the decision of host.client.scheduler is open: answer it before the next step"
        )
        assert message(DecisionError, lambda: decision.answer(7)) == "path 7: the connection has paths 0 to 0"
        decision.answer(0)
        assert "has its answer" in message(DecisionError, lambda: decision.answer(0))
    assert message(EngineError, run.step) == "the run is closed"


def test_a_change_that_no_event_can_say_is_refused_and_changes_nothing() -> None:
    run = Run(SCENARIO)
    run.step(1.0)
    assert "did you mean 'lte'?" in message(ScenarioError, lambda: run.change(link="lted", rate="1 Mbps"))
    assert "it happens now" in message(ScenarioError, lambda: run.change(at="2 s", link="lte", rate="1 Mbps"))
    run.step()
    assert digest(run.recording()) == digest(polypath.run(SCENARIO))


def test_a_failure_of_the_callers_own_class_names_method_and_time() -> None:
    class Fails:
        def select(self, view: Any) -> int:
            raise ZeroDivisionError("nothing to share")

    run = Run(SCENARIO, algorithms={"host.client.scheduler": Fails})
    assert "ZeroDivisionError: nothing to share (Fails.select, 0.0" in message(EngineError, run.step)


def test_a_stored_plan_of_a_stepped_run_says_that_it_cannot_run_alone() -> None:
    run = Run(SCENARIO, decide=["host.client.scheduler"])
    plan = run.plan
    run.close()
    assert "host.client.scheduler was decided step by step" in message(EngineError, lambda: polypath.run(plan))


def test_a_run_that_is_dropped_takes_its_thread_along() -> None:
    gc.collect()
    before = threading.active_count()
    run = Run(SCENARIO, decide=["host.client.scheduler"])
    assert isinstance(run.step(), Decision)
    assert threading.active_count() == before + 1
    del run
    gc.collect()
    assert threading.active_count() == before


def test_an_interrupt_between_decisions_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from polypath.stepping.turns import Turns

    run = Run(LOSSY, decide=["host.client.scheduler"])
    waited = Turns.wait
    calls = 0

    def interrupted(turns: Turns) -> Any:
        nonlocal calls
        calls += 1
        if calls == 100:
            raise KeyboardInterrupt
        return waited(turns)

    monkeypatch.setattr(Turns, "wait", interrupted)
    while True:
        try:
            decision = run.step()
        except KeyboardInterrupt:
            continue
        if decision is None:
            break
        assert isinstance(decision, SchedulerDecision)
        decision.answer(lowest(decision))
    assert calls > 100
    assert digest(run.recording()) == digest(decided(Run(LOSSY, decide=["host.client.scheduler"])))
