"""What schedulers need of the stack they have in every profile."""

import polars as pl
import pytest

import polypath
from polypath import labs


@pytest.mark.parametrize("profile", ["rfc", "mptcp.org", "linux"])
def test_the_queues_that_the_linux_scheduler_fills_grow_with_the_windows(profile: str) -> None:
    settings = [f"defaults.profile={profile}", "defaults.path_manager=fullmesh", "defaults.scheduler=linux"]
    recording = polypath.run(labs.get("aggregation").scenario().with_settings(settings))
    (iperf,) = polypath.summary(recording)["connections"]
    # Two paths of 20 Mbps.
    assert iperf["goodput_mbps"] > 30


def test_under_upstream_a_message_goes_over_one_path_as_a_whole() -> None:
    settings = ["defaults.profile=linux", "defaults.path_manager=fullmesh", "defaults.scheduler=roundrobin"]
    recording = polypath.run(labs.get("scheduler-reqres").scenario().with_settings(settings))
    (requests,) = polypath.summary(recording)["connections"]
    # Round trips of 40 and 80 ms, in turn; segments dealt out one by one would make each message wait for the longer.
    assert requests["requests"]["delay_s"] == pytest.approx([0.04, 0.08] * 10, rel=0.01)


@pytest.mark.parametrize("scheduler", ["kbest", "roundrobin"])
def test_any_scheduler_penalises_if_asked(scheduler: str) -> None:
    def penalised(*settings: str) -> int:
        given = [f"defaults.scheduler={scheduler}", "defaults.receive_buffer=300 kB", "link.path1.delay=200 ms"]
        events = polypath.run(labs.get("aggregation").scenario().with_settings([*given, *settings])).table("events")
        return events.filter(pl.col("kind") == "penalised").height

    assert penalised() == 0
    assert penalised("defaults.scheduler.penalisation=true") > 0
