"""Where nodes of a network are drawn."""

from __future__ import annotations

from typing import Any

import pytest

from polypath.plan.places import distances, places


def plan(names: str, *links: str, clients: str = "") -> Any:
    """A plan of nodes with a letter each."""
    ends = [{side: {"node": names.index(one)} for side, one in zip("ab", link, strict=True)} for link in links]
    return {
        "nodes": [{"name": name} for name in names],
        "links": ends,
        "applications": [{"client": names.index(client)} for client in clients],
    }


def drawn(names: str, *links: str, clients: str = "") -> list[str]:
    """The nodes of each column, from the top down."""
    found = places(plan(names, *links, clients=clients))
    columns = sorted({x for x, _ in found.values()})
    return [
        "".join(names[node] for node in sorted(found, key=lambda node: -found[node][1]) if found[node][0] == x)
        for x in columns
    ]


def test_columns_go_by_distance_from_clients() -> None:
    assert drawn("abcd", "ab", "bc", "cd", clients="a") == ["a", "b", "c", "d"]
    assert drawn("abcd", "ab", "bc", "cd", clients="ad") == ["da", "cb"]


def test_nodes_without_links_are_last() -> None:
    assert drawn("abx", "ab", clients="a") == ["a", "b", "x"]


def test_nodes_stand_in_the_order_of_their_neighbours_so_that_few_links_cross() -> None:
    assert drawn("cdabrs", "ca", "cb", "da", "br", "as", clients="cd") == ["dc", "ab", "sr"]


def test_the_middle_of_all_nodes_is_0_0() -> None:
    found = places(plan("abcde", "ab", "ac", "ad", "ae", clients="a"))
    assert sum(x for x, _ in found.values()) == pytest.approx(0)
    assert sum(y for _, y in found.values()) == pytest.approx(0)
    assert found[0] == (-0.8, 0.0)


def test_distances_are_those_from_the_nearest_source() -> None:
    near = [[1], [0, 2], [1, 3], [2], []]
    assert distances(near, [0]) == {0: 0, 1: 1, 2: 2, 3: 3}
    assert distances(near, [0, 3]) == {0: 0, 3: 0, 1: 1, 2: 1}
