"""Pictures of networks that are too large for words at each node and link."""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from polypath import plots
from polypath.plan.overview import ARRANGEMENTS, Arrangement, Network, Stack, arranged, is_large
from polypath.plan.overview.columns import columns
from polypath.plan.overview.network import HEIGHT, PITCH, WIDTH
from polypath.plan.overview.rows import _spread
from polypath.plots.network import size
from polypath.plots.style import Look
from polypath.report import network as page
from polypath.results import Metadata, Recording
from polypath.scenario import Scenario

from ..slow import others_slow

#: Inches that fit across a page with two columns of text, and on it.
WIDE, HIGH = 10.0, 8.0

LARGE: dict[str, tuple[str, dict[str, Any]]] = {
    "bcube": ("rows", {"kind": "bcube", "n": 5, "k": 2}),
    "large bcube": ("rows", {"kind": "bcube", "n": 6, "k": 3}),
    "fat-tree": ("rows", {"kind": "fat-tree", "k": 4}),
    "fat-tree k=8": ("rows", {"kind": "fat-tree", "k": 8}),
    "fat-tree k=16": ("rows", {"kind": "fat-tree", "k": 16}),
    "fat-tree of several links": ("rows", {"kind": "fat-tree", "k": 8, "interfaces": 2}),
    "vl2": ("rows", {"kind": "vl2"}),
    "three-level": ("rows", {"kind": "three-level"}),
    "three-level with many hosts": ("rows", {"kind": "three-level", "edges": 64, "hosts": 40}),
    "parallel": ("rows", {"kind": "parallel", "paths": 256}),
    "dumbbell": ("chain", {"kind": "dumbbell", "pairs": 12}),
    "large dumbbell": ("chain", {"kind": "dumbbell", "pairs": 1000}),
    "parking-lot": ("chain", {"kind": "parking-lot", "hops": 10}),
    "largest parking-lot": ("chain", {"kind": "parking-lot", "hops": 256}),
    "torus": ("grid", {"kind": "torus"}),
    "torus of three directions": ("grid", {"kind": "torus", "dimensions": 3, "hosts": 3}),
    "large torus": ("grid", {"kind": "torus", "size": 40}),
    "ring": ("ring", {"kind": "torus", "size": 12, "dimensions": 1}),
    "jellyfish": ("ring", {"kind": "jellyfish"}),
    "large jellyfish": ("ring", {"kind": "jellyfish", "switches": 500, "hosts": 10}),
}


def of(topology: dict[str, Any]) -> Recording:
    """What is known of a run before it begins."""
    return _of(json.dumps(topology))


@cache
def _of(topology: str) -> Recording:
    links = {"rate": "100 Mbps", "delay": "10 us"}
    written = {"name": "large", "duration": "1 s", "topology": links | json.loads(topology)}
    hosts = Scenario.from_data({**written, "application": []}).topology.network.hosts  # type: ignore[union-attr]
    server = next((host for host in hosts if host.startswith("server")), hosts[-1])
    return planned({**written, "application": [{"kind": "bulk", "client": hosts[0], "server": server}]})


def planned(written: dict[str, Any]) -> Recording:
    return Recording({}, Scenario.from_data(written).plan().view, Metadata("large", 1, "none", "", "", 0))


def pairs(count: int) -> Recording:
    """Clients and servers with a link each, side by side: no topology has this shape."""
    names = [f"{side}{number}" for number in range(count) for side in ("client", "server")]
    return planned(
        {
            "name": "pairs",
            "duration": "1 s",
            "host": {name: {} for name in names},
            "link": {f"p{number}": {"ends": [f"client{number}", f"server{number}"]} for number in range(count)},
            "application": [
                {"kind": "bulk", "client": f"client{number}", "server": f"server{number}"} for number in range(count)
            ],
        }
    )


@pytest.mark.parametrize("name", others_slow(LARGE, *(name for name in LARGE if not name.startswith("large"))))
def test_a_large_network_has_a_picture_of_bounded_size(name: str) -> None:
    arrangement, topology = LARGE[name]
    recording = of(topology)
    assert is_large(recording.plan)
    wide, high = size(recording)
    assert 1 < wide <= WIDE
    assert 0.5 < high <= HIGH
    network = Network.of(recording.plan)
    assert next(each for each in ARRANGEMENTS if each(network) is not None).__name__ == arrangement


@pytest.mark.parametrize("name", LARGE)
def test_every_node_of_a_large_network_has_a_place_of_its_own_or_in_a_stack(name: str) -> None:
    recording = of(LARGE[name][1])
    network, made = Network.of(recording.plan), arranged(recording.plan)
    stacked = {host for stack in made.stacks for host in network.leaves[stack.at]}
    assert set(made.places) | stacked == set(range(len(network.names)))
    assert sum(stack.count for stack in made.stacks) == len(stacked)
    places = Counter((round(x, 6), round(y, 6)) for x, y in made.places.values())
    assert max(places.values()) == 1


@pytest.mark.parametrize("name", ["bcube", "dumbbell", "torus", "jellyfish", "vl2"])
def test_the_picture_of_a_large_network_fits_a_page(name: str, tmp_path: Path) -> None:
    path = plots.save("topology", of(LARGE[name][1]), tmp_path / "topology.png")
    assert path is not None
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    assert width <= 150 * WIDE
    assert height <= 150 * HIGH


def test_rows_say_what_stands_in_them_and_what_joins_them() -> None:
    figure = plots.figure(of({"kind": "three-level"}), "topology")
    assert figure is not None
    texts = {text.get_text() for text in figure.axes[0].texts}
    assert texts == {
        "2 routers\ncore0 .. core1",
        "4 routers\nedge0 .. edge3",
        "72 hosts, 18 at each\nh0 .. h71",
        "9 links each\n100 Mbps\n0.01 ms",
        "100 Mbps\n0.01 ms",
    }


def test_servers_of_bcube_stand_below_a_row_for_each_level() -> None:
    recording = of({"kind": "bcube", "n": 5, "k": 2})
    made = arranged(recording.plan)
    rows: dict[float, set[str]] = {}
    for node, (_, y) in made.places.items():
        rows.setdefault(y, set()).add(recording.plan["nodes"][node]["name"].partition("-")[0].rstrip("0123456789"))
    assert [rows[y] for y in sorted(rows)] == [{"h"}, {"level"}, {"level"}, {"level"}]


def test_hosts_that_have_no_room_are_a_stack_with_their_number() -> None:
    figure = plots.figure(of({"kind": "dumbbell", "pairs": 1000}), "topology")
    assert figure is not None
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts.count("×1000") == 2
    assert "client0 .. client999" in texts


def test_words_and_marks_of_a_large_network_are_in_proportion_to_the_figure() -> None:
    recording = of({"kind": "fat-tree", "k": 8})
    wide, high = size(recording)

    def points(share: float) -> float:
        figure = plots.figure(recording, "topology", Look(size=(share * wide, share * high), titles=False))
        assert figure is not None
        return float(figure.axes[0].texts[0].get_fontsize())

    assert points(0.5) == pytest.approx(points(1.0) / 2)


def test_hosts_of_one_link_stand_beside_those_of_several() -> None:
    hosts = {f"h{number}": ("left", "right") if number else ("left",) for number in range(12)}
    links = {f"{host}-{end}": {"ends": [host, end]} for host, ends in hosts.items() for end in ends}
    recording = planned(
        {
            "name": "mixed",
            "duration": "1 s",
            "host": {host: {} for host in hosts},
            "router": {"left": {}, "right": {}},
            "link": links,
            "application": [{"kind": "bulk", "client": "h0", "server": "h5"}],
        }
    )
    assert is_large(recording.plan)
    made = arranged(recording.plan)
    assert not made.stacks
    assert Counter(y for _, y in made.places.values()) == {0.0: 12, 1.15: 2}


def test_any_other_large_network_stands_in_columns() -> None:
    recording = pairs(40)
    assert is_large(recording.plan)
    made = arranged(recording.plan)
    assert len({x for x, _ in made.places.values()}) == 2
    wide, high = size(recording)
    assert wide <= WIDE
    assert high <= HIGH


def network(near: list[list[int]], hosts: int = 0) -> Network:
    """The last so many nodes are hosts, and the first one is a client."""
    kinds = ["router"] * (len(near) - hosts) + ["host"] * hosts
    return Network([f"n{node}" for node in range(len(near))], kinds, near, {}, frozenset({0}))


def test_columns_are_as_far_apart_as_the_picture_is_wide_and_nodes_stand_around_the_middle() -> None:
    chain = [[1], *([number - 1, number + 1] for number in range(1, 8)), [7]]
    places = columns(network(chain)).places
    assert [x for x, _ in places.values()] == pytest.approx([WIDTH / 8 * number for number in range(9)])
    high = columns(network([list(range(1, 21)), *[[0]] * 20])).places
    assert [high[node][1] for node in range(1, 21)] == pytest.approx(
        [HEIGHT / 2 - HEIGHT / 19 * number for number in range(20)]
    )
    star = columns(network([[1, 2, 3], [0], [0], [0]])).places
    assert list(star.values()) == [(0, 0), (1.6, 0.5), (1.6, 0), (1.6, -0.5)]


def test_a_row_is_even_but_for_gaps_between_groups() -> None:
    def places(*names: str) -> list[float]:
        return _spread(replace(network([[], [], []]), names=names), range(3))

    assert places("s-0", "s-1", "s-2") == pytest.approx([-WIDTH / 3, 0, WIDTH / 3])
    # three nodes and two gaps, of which half stands at either end
    node = WIDTH / 4.2
    assert places("a-0", "a-1", "b-0") == pytest.approx([-1.3 * node, -0.3 * node, 1.3 * node])


def test_switches_of_a_ring_stand_on_a_circle_with_their_hosts_outside() -> None:
    made = arranged(of({"kind": "torus", "size": 12, "dimensions": 1}).plan)
    distances = Counter(round(math.hypot(*place), 3) for place in made.places.values())
    assert distances == {2.4: 12, 2.62: 12}
    top = [place for place in made.places.values() if abs(place[0]) < 1e-9]
    assert sorted(y for _, y in top) == pytest.approx([-2.62, -2.4, 2.4, 2.62])


def test_hosts_hang_in_rows_around_the_middle_below_their_switch_or_are_a_stack() -> None:
    hosts = 5
    of_five = network([[1, 2, 3, 4, 5], *[[0]] * hosts], hosts)
    made = Arrangement()
    of_five.hang(made, 0, (1.0, 2.0), room=3 * PITCH, most=2)
    # three and two, as far apart as there is room for
    lower = 2.0 - 1.0 * PITCH
    expected = [(1 - PITCH, 2.0), (1.0, 2.0), (1 + PITCH, 2.0), (1 - PITCH / 2, lower), (1 + PITCH / 2, lower)]
    assert [made.places[host] for host in range(1, 6)] == [pytest.approx(place) for place in expected]
    made = Arrangement()
    of_five.hang(made, 0, (1.0, 2.0), room=10.0, most=1)
    assert [made.places[host][0] for host in range(1, 6)] == pytest.approx(
        [1 + 2.5 * PITCH * step for step in range(-2, 3)]
    )
    made = Arrangement()
    of_five.hang(made, 0, (1.0, 2.0), room=PITCH, most=4)
    assert (made.places, made.stacks) == ({}, [Stack(0, 5, (1.0, 2.0))])


def test_what_links_have_in_common_is_told_where_all_of_them_have_it() -> None:
    def link(rate: int | None, delay: int) -> dict[str, Any]:
        way = {"rate_bps": rate, "delay_ns": delay}
        return {"forward": way, "backward": way}

    pair = {(0, 1): [link(10_000_000, 1_000_000)], (1, 2): [link(20_000_000, 1_000_000)]}
    nodes = network([[1], [0, 2], [1]])
    assert replace(nodes, links=pair).told_of_links(pair) == "10 to 20 Mbps, 1 ms"
    some = {**pair, (1, 2): [link(None, 0)]}
    assert replace(nodes, links=some).told_of_links(some) == ""
    several = {(0, 1): pair[0, 1] * 3, (1, 2): pair[0, 1] * 3}
    assert replace(nodes, links=several).told_of_links(several) == "3 links each, 10 Mbps, 1 ms"


@pytest.mark.parametrize(
    "topology",
    [{"kind": "dumbbell", "pairs": 6}, {"kind": "parking-lot"}, {"kind": "parallel", "paths": 6}],
    ids=lambda topology: str(topology["kind"]),
)
def test_a_small_network_has_its_words_at_each_link(topology: dict[str, Any]) -> None:
    recording = of(topology)
    assert not is_large(recording.plan)
    figure = plots.figure(recording, "topology")
    assert figure is not None
    texts = {text.get_text() for text in figure.axes[0].texts}
    assert {f"{link['name']}\n100 Mbps, 0.01 ms" for link in recording.plan["links"]} <= texts


def test_the_page_has_all_nodes_of_a_large_network_within_bounds_and_without_names() -> None:
    drawn = page.drawn(of({"kind": "vl2", "servers": 40}), {})
    assert drawn is not None
    assert drawn["large"] is True
    assert len(drawn["nodes"]) == 170
    across, up = ([node[way] for node in drawn["nodes"]] for way in ("x", "y"))
    assert max(up) - min(up) < max(across) - min(across) < 30
    small = page.drawn(of({"kind": "dumbbell"}), {})
    assert small is not None
    assert "large" not in small


def test_links_that_close_a_ring_swing_out_on_the_page() -> None:
    drawn = page.drawn(of({"kind": "torus"}), {})
    assert drawn is not None
    bends = {link["name"]: link["bend"] for link in drawn["links"]}
    assert bends["s0-0-s0-1"] == 0
    assert bends["s0-3-s0-0"] > 0 > bends["s3-0-s0-0"]
