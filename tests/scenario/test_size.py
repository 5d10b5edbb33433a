"""Work grows with a scenario's size, not with its square: counted, not timed."""

from __future__ import annotations

import random
import sys
from types import FrameType
from typing import Any

import pytest

from polypath.scenario import Scenario, ScenarioError
from polypath.scenario.topologies import base
from polypath.scenario.topologies.fat_tree import FatTree

FAT_TREE = """
duration = "10 ms"
[topology]
kind = "fat-tree"
k = {}
rate = "100 Mbps"
[[application]]
kind = "bulk"
matrix = "permutation"
"""


def lines(k: int) -> int:
    """Lines of the package that run from the text to the plan."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        if "/polypath/scenario/" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        Scenario.parse(FAT_TREE.format(k), "x").plan()
    finally:
        sys.settrace(before)
    return count


def test_from_text_to_plan() -> None:
    lines(2)  # builds the models
    small, large = lines(4), lines(8)
    assert large < 8.5 * small  # eight times the hosts, links and applications


def test_a_topology_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = FatTree.made
    count = []

    def counted(self: FatTree) -> base.Network:
        count.append(self.k)
        return made(self)

    monkeypatch.setattr(FatTree, "made", counted)
    base._network.cache_clear()
    scenario = Scenario.parse(FAT_TREE.format(4), "x")
    scenario.plan()
    scenario.plan(7)
    assert count == [4]


def flooded(near: dict[str, set[str]], start: str) -> set[str]:
    """What packets from a host reach: hosts forward nothing."""
    reached, frontier = {start}, [start]
    while frontier:
        for each in near[frontier.pop()] - reached:
            reached.add(each)
            if each.startswith("r"):
                frontier.append(each)
    return reached


@pytest.mark.parametrize("seed", range(40))
def test_reach_is_what_a_flood_finds(seed: int) -> None:
    draw = random.Random(seed)
    hosts = [f"h{number}" for number in range(draw.randint(2, 6))]
    routers = [f"r{number}" for number in range(draw.randint(0, 5))]
    near: dict[str, set[str]] = {name: set() for name in hosts + routers}
    text = "".join(f"[host.{name}]\n" for name in hosts) + "".join(f"[router.{name}]\n" for name in routers)
    for number in range(draw.randint(len(hosts), 2 * len(near))):
        a, b = draw.sample(hosts + routers, 2)
        near[a].add(b)
        near[b].add(a)
        text += f'[link.l{number}]\nends = ["{a}", "{b}"]\n'
    pairs = [draw.sample(hosts, 2) for _ in range(4)]
    text += "".join(f'[[application]]\nkind = "bulk"\nclient = "{a}"\nserver = "{b}"\n' for a, b in pairs)
    expected = [f"host '{name}' is disconnected" for name in hosts if not near[name]]
    expected += [
        f"host '{b}' is disconnected from '{a}'" for a, b in pairs if near[a] and near[b] and b not in flooded(near, a)
    ]
    try:
        Scenario.parse(text, "x")
        found = []
    except ScenarioError as error:
        found = [each.message.partition(":")[0].partition(", the client")[0] for each in error.errors]
    assert sorted(found) == sorted(expected)
