"""Flows that arrive at random: how many, when, between whom, how large."""

import itertools
import math
from statistics import fmean

import pytest
from pydantic import TypeAdapter

from polypath.scenario import Scenario, ScenarioError
from polypath.scenario.sizes import AnySizes

HEAD = 'duration = "10 s"\n[topology]\nkind = "dumbbell"\npairs = 4\nrate = "100 Mbps"\n'
FLOWS = HEAD + '[[application]]\nname = "web"\nkind = "bulk"\nmatrix = "all-to-all"\narrivals = 200\nsize = "10 kB"\n'
ONE = HEAD + '[[application]]\nkind = "bulk"\nclient = "client0"\nserver = "server0"\n'


def applications(text: str, seed: int = 1) -> list[dict[str, object]]:
    found: list[dict[str, object]] = Scenario.parse(text, "x").plan(seed).data["applications"]
    return found


def starts(text: str, seed: int = 1) -> list[int]:
    return [int(str(each["start_ns"])) for each in applications(text, seed)]


def test_they_arrive_as_a_poisson_process() -> None:
    """2,000 on average with a standard deviation of 45; gaps of 5 ms with a deviation of 5 ms; others for each seed."""
    counts = [len(starts(FLOWS, seed)) for seed in range(1, 6)]
    assert all(abs(count - 2000) < 4 * math.sqrt(2000) for count in counts)
    assert len(set(counts)) > 1
    times = starts(FLOWS)
    assert times == sorted(times)
    gaps = [after - before for before, after in itertools.pairwise(times)]
    mean = fmean(gaps)
    assert mean == pytest.approx(5e6, rel=0.1)
    assert math.sqrt(fmean((gap - mean) ** 2 for gap in gaps)) == pytest.approx(5e6, rel=0.15)


def test_each_takes_a_pair_of_the_matrix() -> None:
    found = applications(FLOWS)
    pairs = [(each["client"], each["server"]) for each in found]
    assert len(set(pairs)) == 8 * 7
    assert all(client != server for client, server in pairs)
    assert [each["name"] for each in found[:2]] == ["web-1", "web-2"]
    assert {each["group"] for each in found} == {"web"}
    assert len({each["port"] for each in found}) == len(found)


def test_they_begin_within_their_time() -> None:
    times = starts(ONE + 'arrivals = 100\nsize = "1 kB"\nstart = "2 s"\nduration = "3 s"\n')
    assert min(times) >= 2_000_000_000
    assert max(times) < 5_000_000_000
    assert 220 < len(times) < 380


def sizes(written: object) -> list[int]:
    adapter: TypeAdapter[AnySizes] = TypeAdapter(AnySizes)
    found = adapter.validate_python(written)
    return [found.at((number + 0.5) / 100_000) for number in range(100_000)]


@pytest.mark.parametrize(
    ("written", "mean"),
    [
        ({"kind": "exponential", "mean": "50 kB"}, 50_000),
        ({"kind": "pareto", "mean": "50 kB", "shape": 2.5}, 50_000),
        ({"kind": "cdf", "points": [["1 kB", "0 %"], ["3 kB", "100 %"]]}, 2_000),
        ("web-search", 1_671_000),
        ("data-mining", 7_470_000),
    ],
)
def test_sizes_have_their_mean(written: object, mean: int) -> None:
    drawn = sizes(written)
    assert min(drawn) >= 1
    assert drawn == sorted(drawn)
    assert fmean(drawn) == pytest.approx(mean, rel=0.02)


def test_published_sizes_are_those_of_their_points() -> None:
    web = sizes("web-search")
    assert web[14_000] == 6 * 1460
    assert web[53_000] == pytest.approx(53 * 1460, rel=0.001)
    assert web[97_000] == pytest.approx(6667 * 1460, rel=0.001)
    mining = sizes("data-mining")
    assert sum(size <= 1460 for size in mining) == pytest.approx(50_000, abs=10)
    assert mining[95_000] == pytest.approx(2107 * 1460, rel=0.01)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("arrivals = 10\n", "x.toml:10: application 1: flows that arrive need either 'size' or 'sizes'"),
        ('sizes = "web-search"\n', "x.toml:10: application 1: 'sizes' are of flows that arrive; give 'arrivals', or"),
        (
            'arrivals = 10\nsizes = "websearch"\n',
            "x.toml:11: application 1.sizes: unknown kind 'websearch'; did you mean",
        ),
        (
            'arrivals = 1e5\nsize = "1 kB"\n',
            "x.toml:10: some 1,000,000 flows would arrive, and 45,000 at most are taken",
        ),
        ('arrivals = 0\nsize = "1 kB"\n', "x.toml:10: application 1.arrivals: must be greater than 0"),
        (
            'arrivals = 1\nsizes = { kind = "cdf", points = [["1 kB", "50 %"]] }\n',
            "x.toml:11: application 1.sizes.points: the last point is that of 100 %",
        ),
        (
            'arrivals = 1\nsizes = { kind = "cdf", points = [["1 kB", "50 %"], ["1 MB"]] }\n',
            "x.toml:11: application 1.sizes.points 2: a point is a size and a share, such as",
        ),
    ],
)
def test_mistakes_are_named_with_their_line(more: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(ONE + more, "x.toml")
    assert str(caught.value).startswith(message)


def test_written_out_they_are_the_same_plan() -> None:
    for text in (FLOWS, ONE + 'arrivals = 20\nsizes = { kind = "pareto", mean = "10 kB" }\n'):
        scenario = Scenario.parse(text, "x", default_name="x")
        assert Scenario.parse(scenario.to_toml(), "y").plan() == scenario.plan()
        assert scenario.resolved().plan() == scenario.plan()
