"""Points of a sweep share the traces of their plans: a trace is parsed and encoded once, not for each point."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from polypath.plan import shared
from polypath.scenario import Plan, Scenario, reading, traces
from polypath.sweeps import Sweep, grid
from polypath.sweeps import run as run_sweeps
from polypath.sweeps.point import Task, summarised

SCENARIO = """
name = "traced"
duration = "2 s"

[host.client]
[host.server]
[link.lte]
ends = ["client", "server"]
delay = "5 ms"
rate = { trace = "lte.up" }

[[application]]
kind = "fetch"
size = "20 kB"

[vary]
"link.lte.delay" = ["1 ms", "2 ms", "3 ms"]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    (tmp_path / "lte.up").write_text("".join(f"{time}\n" for time in range(1, 400)))
    file = tmp_path / "traced.toml"
    file.write_text(SCENARIO)
    return Scenario.load(file)


def _gaps(plan: Plan) -> object:
    trace = plan.view["links"][0]["forward"]["trace"]
    assert trace is not None
    return trace["gaps_ms"]


def test_the_plans_of_points_have_one_trace_and_their_own_bytes(scenario: Scenario) -> None:
    one, other, _ = (point.plan for point in grid.points(scenario))
    assert _gaps(one) is _gaps(other)
    assert _gaps(one) == [[1, 399]]
    assert one.data == one.view
    assert one.json() == json.dumps(one.data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert one != other
    assert Plan(one.data) == one
    assert Plan(one.data).sha256() == one.sha256()


def test_a_plan_that_another_process_reads_has_the_same_bytes(scenario: Scenario) -> None:
    plan = grid.points(scenario)[1].plan
    read = pickle.loads(pickle.dumps(plan))
    assert read.json() == plan.json()
    assert read.view == plan.data
    assert pickle.loads(pickle.dumps(_gaps(plan))) == _gaps(plan)


def test_a_trace_is_read_once_for_a_sweep(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    written = scenario.scripts()[0].stat()
    monkeypatch.setattr("polypath.scenario.traces.time_ns", lambda: written.st_ctime_ns + 10**10)
    reads = []
    plain = reading.read_text

    def counted(path: Path, what: str) -> str:
        reads.append(path)
        return plain(path, what)

    monkeypatch.setattr(traces, "read_text", counted)
    assert len({point.plan_sha256 for point in grid.points(scenario)}) == 3
    assert len(reads) == 1


def test_a_trace_that_is_written_again_is_read_again(scenario: Scenario) -> None:
    before = grid.points(scenario)[0].plan_sha256
    scenario.scripts()[0].write_text("".join(f"{time}\n" for time in range(2, 401)))
    again = Scenario.load(scenario.scripts()[0].with_name("traced.toml"))
    assert grid.points(again)[0].plan_sha256 != before


def test_what_a_run_gives_does_not_depend_on_how_its_plan_is_held(scenario: Scenario) -> None:
    plan = grid.points(scenario)[0].plan
    assert summarised(Task("shared", plan)) == summarised(Task("shared", Plan(plan.data)))


def test_a_plan_is_written_as_it_was_read(scenario: Scenario) -> None:
    plan = grid.points(scenario)[0].plan
    assert shared.encoded(plan.view, sort_keys=True, separators=(",", ":")) == plan.json()


def test_progress_is_told_before_the_first_plan_is_made(scenario: Scenario) -> None:
    points = grid.points(scenario, later=True)
    told: list[tuple[int, int, int]] = []
    made = grid._built.cache_info
    start = made().misses
    run_sweeps(
        [Sweep("traced", scenario, points)],
        jobs=1,
        progress=lambda done, total: told.append((done, total, made().misses - start)),
    )
    assert told[0] == (0, 3, 0)
    assert told[-1][:2] == (3, 3)
