"""What schedulers need of the stack they have in every profile."""

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
