"""What would help: tried, and ranked."""

from collections.abc import Callable

import pytest

from polypath import Scenario, ScenarioError
from polypath.what_if.candidates import AS_IT_IS, Candidate, candidates, subject
from polypath.what_if.ranked import GOALS, Ranking, Trials, rank, require_support, usual_goal

HOME = """
duration = "4 s"
[host.client]
[host.server]
[router.r]
[link.wifi]
ends = ["client:wifi", "r"]
rate = "6 Mbps"
delay = "20 ms"
loss = "2 %"
[link.lte]
ends = ["client:lte", "r"]
rate = "4 Mbps"
delay = "30 ms"
[link.server]
ends = ["r", "server"]
[[application]]
name = "get"
kind = "bulk"
reverse = true
"""


def ranking(text: str, kinds: set[str], seeds: int = 10, goal: str | None = None) -> Ranking:
    scenario = Scenario.parse(text, "home.toml")
    of = subject(scenario, None)
    trials = Trials(scenario, of, GOALS[goal or usual_goal(scenario, of)], range(1, seeds + 1), (), 1)
    return rank(trials, lambda _: None, only=lambda each: each.kind in kinds)


def test_random_loss_is_a_case_for_bbr() -> None:
    found = ranking(HOME, {"congestion control"})
    assert found.best.candidate.name == "congestion control bbr"
    assert found.best.comparison is not None
    assert found.best.comparison.verdict == "higher"
    assert AS_IT_IS in [row.candidate for row in found.rows]
    assert "congestion control lia" not in [row.candidate.name for row in found.rows], "the scenario has it"


def test_each_path_is_left_out() -> None:
    found = {row.candidate.name: row for row in ranking(HOME, {"paths"}, seeds=1).rows}
    assert set(found) == {"as it is", "without wifi", "without lte"}
    assert found["without wifi"].mean == pytest.approx(3.6, rel=0.1)
    assert found["without lte"].candidate.settings == ("link.lte.up=false", "application.get.source=10.0.0.1")


def test_what_helps_is_tried_together() -> None:
    slow = HOME.replace("[host.client]", '[defaults]\nreceive_buffer = "20 kB"\n[host.client]')
    found = ranking(slow, {"congestion control", "buffers"})
    assert found.best.candidate.kind == "several"
    assert set(found.best.candidate.name.split(" + ")) > {"congestion control bbr"}


def test_a_goal_follows_from_the_application() -> None:
    asked = HOME.replace(
        'kind = "bulk"\nreverse = true', 'kind = "request-response"\ncount = 5\nrequest = "1 kB"\nresponse = "9 kB"'
    )
    sized = HOME.replace("reverse = true", 'size = "100 kB"')
    many = asked.replace("count = 5", "count = 20")
    goals = [usual_goal(scenario, subject(scenario, None)) for scenario in map(_parsed, (HOME, asked, many, sized))]
    assert goals == ["goodput", "delay-median", "delay-p95", "completion"]
    fast = ranking(asked, {"paths"}, seeds=2)
    assert fast.rows[0].mean is not None
    assert fast.rows[0].mean <= min(row.mean for row in fast.rows if row.mean is not None)


def test_a_percentile_of_few_requests_is_refused() -> None:
    asking = 'kind = "request-response"\ncount = 19\nrequest = "1 kB"\nresponse = "9 kB"'
    few = _parsed(HOME.replace('kind = "bulk"\nreverse = true', asking))
    of = subject(few, None)
    with pytest.raises(ScenarioError, match="a 95th percentile needs 20 requests, and 'get' sends 19"):
        require_support("delay-p95", few, of)
    require_support("delay-median", few, of)


def _parsed(text: str) -> Scenario:
    return Scenario.parse(text, "home.toml")


def test_one_path_has_no_schedulers_and_one_connection_must_be_named() -> None:
    alone = Scenario.parse(HOME.replace("reverse = true", 'reverse = true\ntransport = "tcp"'), "home.toml")
    kinds = {each.kind for each in candidates(subject(alone, None))}
    assert kinds == {"congestion control", "buffers", "paths"}
    several = Scenario.parse(HOME + '[[application]]\nname = "other"\nkind = "bulk"\n', "home.toml")
    with pytest.raises(ScenarioError, match="name the connection, --connection NAME: there is get, other"):
        subject(several, None)
    with pytest.raises(ScenarioError, match=r"no connection is named 'x' \(there: get, other\)"):
        subject(several, "x")
    assert subject(several, "other").name == "other"


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Candidate], None]:
    def put(candidate: Candidate) -> None:
        monkeypatch.setattr("polypath.what_if.ranked.candidates", lambda _: iter([candidate]))

    return put


def test_what_a_scenario_cannot_have_is_said(refusing: Callable[[Candidate], None]) -> None:
    refusing(Candidate("buffers", "no such", ("application.get.client_stack.nothing=1",)))
    found = ranking(HOME, {"buffers"}, seeds=1)
    assert [row.candidate for row in found.rows] == [AS_IT_IS]
    assert "nothing" in found.refused["no such"]
