"""Random starts of applications, drawn from the seed when the plan is made."""

from statistics import fmean

import pytest

from polypath.scenario import Scenario, ScenarioError

MS = 1_000_000


def scenario(jitter: str, rest: str = "") -> Scenario:
    text = f"""
duration = "2 s"
[host.client]
[host.server]
[link.l]
ends = ["client", "server"]
[[application]]
name = "one"
kind = "bulk"
start = "100 ms"
start_jitter = "{jitter}"
{rest}
"""
    return Scenario.parse(text, "x.toml")


def starts(of: Scenario, seed: int) -> list[int]:
    return [int(each["start_ns"]) for each in of.plan(seed).data["applications"]]


def test_starts_are_spread_evenly_over_the_jitter() -> None:
    found = [starts(scenario("50 ms"), seed)[0] for seed in range(400)]
    assert all(100 * MS <= start <= 150 * MS for start in found)
    # the mean of 400 even draws has a deviation of 50 / sqrt(12 * 400) ms = 0.72 ms
    assert fmean(found) == pytest.approx(125 * MS, abs=3 * MS)
    assert min(found) < 102 * MS
    assert max(found) > 148 * MS


def test_a_seed_gives_the_same_start_and_another_seed_another() -> None:
    of = scenario("50 ms")
    assert starts(of, 4) == starts(of, 4)
    assert starts(of, 4) != starts(of, 5)
    assert of.plan(4) == of.plan(4)


def test_connections_side_by_side_start_apart() -> None:
    found = starts(scenario("50 ms", "count = 4"), 1)
    assert len(set(found)) == 4


def test_without_jitter_the_plan_is_as_ever() -> None:
    of = scenario("0 s")
    assert starts(of, 1) == starts(of, 2) == [100 * MS]


def test_another_setting_leaves_the_start() -> None:
    """So that the values of a comparison are paired in their starts, too."""
    other = scenario("50 ms", 'transport = "tcp"')
    assert starts(other, 7) == starts(scenario("50 ms"), 7)


@pytest.mark.parametrize(
    ("jitter", "rest", "message"),
    [
        ("1.9 s", "", "it may start at 2 s, but the run ends at 2 s; give less or a longer"),
        ("5 ms", 'arrivals = 3\nsize = "1 kB"', "flows that arrive begin at random anyway; leave 'start_jitter' out"),
    ],
)
def test_what_makes_no_sense_is_refused(jitter: str, rest: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        scenario(jitter, rest).plan(1)
