"""Connections that fail, on our own kernel."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from polypath.engines import get
from polypath.results import Recording
from polypath.scenario import Scenario

Run = Callable[..., Recording]
Load = Callable[..., Scenario]


def _transfer(recording: Recording) -> dict[str, Any]:
    (row,) = recording.table("connection_ends").to_dicts()
    return row


def test_a_run_ends_when_the_client_of_its_application_has_failed(linux: Run, scenario: Load) -> None:
    ours, theirs = linux("fails"), get("sim").run(scenario("fails").plan(None))
    for recording in (ours, theirs):
        assert _transfer(recording)["state"] == "timed-out"
        assert recording.metadata.end_ns == pytest.approx(_transfer(recording)["end_ns"], abs=1e6)
    assert ours.metadata.end_ns == pytest.approx(theirs.metadata.end_ns, rel=0.1)


@pytest.mark.parametrize("transport", ["tcp", "mptcp"])
@pytest.mark.parametrize("duration", ["2 s", "200 s"])
def test_a_syn_without_an_answer_is_an_attempt_of_a_subflow(
    linux: Run, scenario: Load, transport: str, duration: str
) -> None:
    settings = ["link.path.up=false", f"application.transfer.transport={transport}", f"duration={duration}"]
    settings += ['application.transfer.stack={ profile = "linux" }']
    ours, theirs = (
        run.table("connection_ends").join(run.table("subflow_ends"), on="connection")
        for run in (linux("fails", *settings), get("sim").run(scenario("fails", *settings).plan(None)))
    )
    columns = ["state", "source", "destination", "destination_port", "interface", "established_ns", "client_sent_bytes"]
    assert ours.select(columns).rows() == theirs.select(columns).rows()
    assert ours["state"].to_list() == ["open" if duration == "2 s" else "unreachable"]
    (lasted,), (there,) = (each["closed_ns"].to_list() for each in (ours, theirs))
    assert lasted == (there and pytest.approx(there, rel=0.1))


@pytest.mark.parametrize("stack", ["{}", '{ user_timeout = "2 s" }'])
def test_its_segments_are_the_simulators(linux: Run, scenario: Load, stack: str) -> None:
    settings = ["link.path.up=false", "duration=3500 ms", "record.segments=true"]
    settings += [f"application.transfer.stack={stack}"]
    both = linux("fails", *settings), get("sim").run(scenario("fails", *settings).plan(None))
    ours, theirs = (each.table("segments").select(pl.exclude("time_ns")).rows() for each in both)
    assert ours == theirs
    assert len(ours) > 1


def test_both_ends_of_a_subflow_that_was_closed_count_the_same(linux: Run) -> None:
    def down(data: dict[str, Any]) -> None:
        client = next(index for index, node in enumerate(data["nodes"]) if node["name"] == "client")
        action = {"kind": "interface", "node": client, "interface": 1, "up": False}
        data["events"] = [{"at_ns": 1_950_000_000, "action": action}]

    settings = ("duration=4 s", "defaults.path_manager=fullmesh", "record.interval=1 s", "link.path0.rate=2 Mbps")
    rows = linux("pair", *settings, change=down).table("subflow_ends").to_dicts()
    (closed,) = (row for row in rows if row["interface"] == "eth1")
    # some 2 Mbps until then; what was under way is lost
    assert 400_000 < closed["client_sent_bytes"] < 600_000
    assert 0 <= closed["client_sent_bytes"] - closed["server_received_bytes"] < 50_000
