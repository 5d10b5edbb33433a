"""A scenario that is resolved and written as TOML has the plan of the one that was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from polypath.formats import plan as plans
from polypath.scenario import Plan, Scenario, ScenarioError

EXAMPLES = sorted(
    path
    for path in Path(__file__).parents[2].joinpath("examples").rglob("*.toml")
    if path.name not in ("Cargo.toml", "rubric.toml")
)

NETWORK = """
duration = "5 s"
[host.client]
[host.server]
[host.other]
[router.r]
[link.a]
ends = ["client", "r"]
rate = "5 Mbps"
delay = "10 ms"
[link.b]
ends = ["client", "r"]
rate = "8 Mbps"
loss = "1 %"
[link.o]
ends = ["other", "r"]
[link.s]
ends = ["r", "server"]
"""
OBJECTS = 'objects = [{name = "i", size = "5 kB"}, {name = "a", size = "9 kB", after = ["i"], think = "3 ms"}]\n'
#: Each kind of application, and what stands for several.
APPLICATIONS = {
    "page": f'kind = "page"\n{OBJECTS}',
    "page over three connections": f'kind = "page"\nconnections = 3\ntransport = "tcp"\n{OBJECTS}',
    "page with jitter and ports": f'kind = "page"\nconnections = 2\nport = 7000\nstart_jitter = "1 s"\n{OBJECTS}',
    "page over quic": f'kind = "page"\ntransport = "quic"\n{OBJECTS}',
    "page of everyone": f'kind = "page"\nconnections = 2\nmatrix = "permutation"\n{OBJECTS}',
    "bulk": 'kind = "bulk"\nsize = "1 MB"\n',
    "bulk with count": 'kind = "bulk"\ncount = 3\nsize = "1 MB"\nport = 6000\n',
    "bulk left out": 'kind = "bulk"\ncount = 0\nsize = "1 MB"\n',
    "bulk both ways": 'kind = "bulk"\nsize = "1 MB"\nreverse_size = "2 MB"\nstart_jitter = "500 ms"\n',
    "bulk of everyone": 'kind = "bulk"\nsize = "1 MB"\nmatrix = "permutation"\ncount = 2\n',
    "flows": 'kind = "bulk"\narrivals = 5.0\nsizes = "web-search"\nduration = "2 s"\n',
    "stream with count": 'kind = "stream"\nrate = "1 Mbps"\ncount = 2\nduration = "2 s"\n',
    "video": 'kind = "video"\nlength = "20 s"\n',
    "messages": 'kind = "messages"\nsize = "1 kB"\nrate = "1 Mbps"\nduration = "1 s"\n',
    "fetch": 'kind = "fetch"\nsize = "20 kB"\n',
    "cbr": 'kind = "cbr"\nrate = "1 Mbps"\n',
    "ping": 'kind = "ping"\ncount = 3\n',
}

#: What a scenario has drawn, changed and conditioned besides.
NETWORKS = {
    "defaults": '[defaults]\nprofile = "linux"\nreceive_buffer = ["4 kB", "100 kB", "6 MB"]\n',
    "draws": '[defaults]\npath_manager = "fullmesh"\n[link.a.backward]\nloss = "2 %"\njitter = "3 ms"\n',
    "events": '[[event]]\nat = "1 s"\nlink = "a"\nrate = "1 Mbps"\n'
    '[[event]]\nat = "2 s"\ninterface = "client:eth1"\nup = false\n',
    "routes": '[[route]]\nnode = "r"\ndestination = "10.0.0.1/32"\ninterface = "eth0"\n',
    "controller": '[controller]\nrouting = "shortest-path"\n',
    "ecmp": 'routing = "ecmp"\n',
}
TOPOLOGIES = {
    "dumbbell": 'kind = "dumbbell"\n',
    "fat-tree": 'kind = "fat-tree"\nk = 4\n',
}


def same(scenario: Scenario) -> None:
    """Under the scenario's own seed, from which what was drawn follows, and resolved twice."""
    expected = scenario.plan()
    written = scenario.to_toml(resolved=True)
    assert Scenario.parse(written, "x.toml").plan() == expected
    assert scenario.resolved().plan() == expected
    again = scenario.resolved().to_toml(resolved=True)
    assert Scenario.parse(again, "x.toml").plan() == expected


@pytest.fixture(autouse=True)
def small_registry() -> None:
    """The engine's own registry."""


@pytest.mark.parametrize("name", APPLICATIONS)
@pytest.mark.parametrize("seed", [1, 77])
def test_every_kind_of_application(name: str, seed: int) -> None:
    text = f"seed = {seed}\n{NETWORK}" + "".join(
        f"[[application]]\n{own}" for own in (APPLICATIONS[name], APPLICATIONS["fetch"])
    )
    same(Scenario.parse(text, "x"))


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("application", ["page over three connections", "bulk with count", "video"])
def test_every_part_of_a_network(name: str, application: str) -> None:
    own = NETWORKS[name]
    head, tables = (own, "") if own.startswith("routing") else ("", own)
    same(Scenario.parse(f"{head}{NETWORK}{tables}[[application]]\n{APPLICATIONS[application]}", "x"))


@pytest.mark.parametrize("name", TOPOLOGIES)
@pytest.mark.parametrize("application", ["page of everyone", "bulk of everyone"])
def test_topologies(name: str, application: str) -> None:
    same(
        Scenario.parse(
            f'duration = "5 s"\n[topology]\n{TOPOLOGIES[name]}[[application]]\n{APPLICATIONS[application]}', "x"
        )
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples(path: Path) -> None:
    scenario = Scenario.load(path)
    same(scenario.at([axis.values[-1] for axis in scenario.axes]))


def test_a_page_of_another_is_refused_where_there_is_none() -> None:
    page = f'[[application]]\nname = "p"\nkind = "page"\ntransport = "tcp"\n{OBJECTS}'
    more = '[[application]]\nname = "q"\nkind = "page"\ntransport = "tcp"\nof = "{}"\n{}'
    Scenario.parse(NETWORK + page + more.format("p", ""), "x")
    for text, message in (
        (page + more.format("x", ""), "unknown page before this one 'x'"),
        (more.format("p", "") + page, "unknown page before this one 'p'"),
        (page + more.format("p", 'client = "other"'), "is between other hosts: client and server"),
        (page + more.format("p", OBJECTS), "leave 'objects' out"),
        (page + more.format("p", "connections = 2"), "leave 'connections' out"),
        (page + more.format("p", "").replace('transport = "tcp"\nof', 'transport = "quic"\nof'), "one connection"),
        (page.replace('"tcp"', '"quic"') + more.format("p", ""), "page 'p' is over QUIC"),
    ):
        with pytest.raises(ScenarioError, match=message):
            Scenario.parse(NETWORK + text, "x")


def test_a_plan_of_a_page_over_several_connections_is_a_scenario(tmp_path: Path) -> None:
    plan = Scenario.parse(NETWORK + f"[[application]]\n{APPLICATIONS['page over three connections']}", "x").plan()
    plan.save(tmp_path / "plan.json")
    found = plans.load(tmp_path / "plan.json").plan()
    assert found.view["applications"] == plan.view["applications"]
    assert isinstance(found, Plan)
