"""Web pages: dependencies, connections, load times."""

from __future__ import annotations

import pytest

import polypath
from polypath import Scenario, measures
from polypath.results import metrics, pages

SECOND = 1_000_000_000
SCENARIO = """
duration = "10 s"
[host.client]
[host.server]
[link.l]
ends = ["client", "server"]
rate = "100 Mbps"
delay = "50 ms"
[[application]]
kind = "page"
"""
CHAIN = """
objects = [
    { name = "index", size = "1 kB" },
    { name = "style", size = "1 kB", after = ["index"], think = "30 ms" },
    { name = "image", size = "1 kB", after = ["style"] },
]
"""


def run(text: str) -> tuple[polypath.Recording, list[pages.Load]]:
    recording = polypath.run(Scenario.parse(SCENARIO + text, "page"))
    loads = [pages.load(recording, each) for each in metrics.connections(recording)]
    return recording, [each for each in loads if each is not None]


@pytest.mark.parametrize("transport", ["tcp", "mptcp", "quic", "mpquic"])
def test_an_object_waits_for_what_it_needs(transport: str) -> None:
    recording, (load,) = run(f'transport = "{transport}"\n{CHAIN}')
    (connection,) = metrics.connections(recording)
    assert connection.finished
    assert recording.metadata.end_ns < SECOND
    index, style, image = load.objects
    assert (index.name, style.name, image.name) == ("index", "style", "image")
    assert index.arrived_ns == style.asked_ns
    assert style.arrived_ns == image.asked_ns
    # The handshake, and a round trip for each object.
    assert load.first_ns == pytest.approx(200e6, rel=0.01)
    assert load.load_ns == pytest.approx(430e6, rel=0.01)
    assert not load.missing


def test_connections_share_the_objects() -> None:
    leaves = ", ".join(f'{{ name = "o{number}", size = "10 kB", after = ["index"] }}' for number in range(5))
    objects = f'objects = [{{ name = "index", size = "1 kB" }}, {leaves}]'
    _, (alone,) = run(f'transport = "tcp"\n{objects}')
    recording, loads = run(f'transport = "tcp"\nconnections = 6\n{objects}')
    assert len(loads) == 6
    assert loads[0] is loads[5]
    assert alone.load_ns is not None
    assert loads[0].load_ns is not None
    # One after the other, or all five in one round trip.
    assert alone.load_ns == pytest.approx(700e6, rel=0.05)
    assert loads[0].load_ns == pytest.approx(300e6, rel=0.05)
    assert len({each.connection for each in loads[0].objects}) == 5
    assert all(each.finished for each in metrics.connections(recording))


def test_a_summary_has_the_objects_once() -> None:
    recording, _ = run(f'transport = "tcp"\nconnections = 2\n{CHAIN}')
    first, second = polypath.summary(recording)["connections"]
    assert [each["name"] for each in first["page"]["objects"]] == ["index", "style", "image"]
    assert "objects" not in second["page"]
    assert second["page"]["load_s"] == first["page"]["load_s"]


def test_expectations_may_be_of_the_page() -> None:
    recording, (load,) = run(f'transport = "tcp"\n{CHAIN}')
    (name,) = (each.name for each in metrics.connections(recording))
    assert load.first_ns is not None
    assert load.load_ns is not None
    assert measures.REGISTRY["first_object"](recording, {"connection": name}) == pytest.approx(load.first_ns / 1e9)
    assert measures.REGISTRY["page_load"](recording, {"connection": name}) == pytest.approx(load.load_ns / 1e9)


def test_an_object_that_does_not_come_leaves_no_load_time() -> None:
    _, (load,) = run('transport = "tcp"\nobjects = [{ name = "huge", size = "1000 GB" }]')
    assert load.load_ns is None
    assert load.missing == 1


@pytest.mark.parametrize("transport", ["tcp", "quic"])
def test_an_empty_object_comes(transport: str) -> None:
    _, (load,) = run(f'transport = "{transport}"\nobjects = [{{ name = "gone", size = "0 B" }}]')
    assert load.load_ns == pytest.approx(200e6, rel=0.01)
