"""Axes whose values are drawn: distributions, correlation, what stays when more are drawn."""

from __future__ import annotations

from math import log
from pathlib import Path
from statistics import correlation, fmean
from typing import Any

import pytest

from polypath.scenario import Scenario, ScenarioError
from polypath.units import RATE, TIME

NETWORK = """
name = "drawn"
duration = "1 s"
[host.client]
[host.server]
[link.dsl]
ends = ["client", "server"]
rate = "10 Mbps"
delay = "10 ms"
[[application]]
name = "download"
kind = "bulk"
size = "10 kB"
"""


def drawn(tmp_path: Path, axis: str) -> list[dict[str, Any]]:
    file = tmp_path / "drawn.toml"
    file.write_text(f"{NETWORK}\n[vary.network]\n{axis}\n")
    (found,) = Scenario.load(file).axes
    assert found.listed
    return [dict(value.settings) for value in found.values]


def refused(tmp_path: Path, axis: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        drawn(tmp_path, axis)
    return str(caught.value).removeprefix(f"{tmp_path}/")


def test_the_logarithm_is_drawn_evenly_between_the_bounds(tmp_path: Path) -> None:
    values = drawn(tmp_path, 'draw = 400\nset = { "link.dsl.rate" = { log_uniform = ["1 Mbps", "100 Mbps"] } }')
    rates = [log(RATE.parse(each["link.dsl.rate"]) / 1e6, 100) for each in values]
    assert min(rates) >= 0
    assert max(rates) <= 1
    # the standard error of the mean is 0.0144
    assert fmean(rates) == pytest.approx(0.5, abs=0.05)
    assert sum(rate < 0.25 for rate in rates) / 400 == pytest.approx(0.25, abs=0.07)


def test_a_setting_follows_another_as_closely_as_it_says(tmp_path: Path) -> None:
    axis = """draw = 500
    [vary.network.set]
    "link.dsl.delay" = { uniform = ["5 ms", "50 ms"], follows = "link.dsl.rate", correlation = -0.8 }
    "link.dsl.rate" = { log_uniform = ["1 Mbps", "100 Mbps"] }
    "link.dsl.loss" = { uniform = ["0.1 %", "1 %"] }
    """
    values = drawn(tmp_path, axis)
    rates = [log(RATE.parse(each["link.dsl.rate"])) for each in values]
    delays = [float(TIME.parse(each["link.dsl.delay"])) for each in values]
    losses = [float(each["link.dsl.loss"].removesuffix(" %")) for each in values]
    # of even distributions behind a Gaussian copula: 6 / pi * asin(-0.8 / 2)
    assert correlation(rates, delays) == pytest.approx(-0.786, abs=0.06)
    assert abs(correlation(rates, losses)) < 0.13


def test_more_draws_keep_those_that_were_drawn_and_another_seed_draws_others(tmp_path: Path) -> None:
    of = 'set = { "link.dsl.rate" = { uniform = ["1 Mbps", "100 Mbps"] } }'
    few, more, other = (drawn(tmp_path, f"{axis}\n{of}") for axis in ("draw = 3", "draw = 12", "draw = 3\nseed = 2"))
    assert more[:3] == few
    assert not any(one == another for one, another in zip(few, other, strict=True))


def test_values_are_the_same_on_every_machine(tmp_path: Path) -> None:
    axis = """draw = 1
    [vary.network.set]
    "link.dsl.rate" = { log_uniform = ["1 Mbps", "100 Mbps"] }
    "link.dsl.queue" = { uniform = ["10 packets", "200 packets"] }
    "link.dsl.loss" = { one_of = ["0 %", "0.1 %", "1 %"] }
    "defaults.receive_buffer" = "1 MB"
    """
    assert drawn(tmp_path, axis) == [
        {
            "link.dsl.rate": "4.038 Mbps",
            "link.dsl.queue": "131 packets",
            "link.dsl.loss": "0.1 %",
            "defaults.receive_buffer": "1 MB",
        },
    ]


def test_the_cells_of_a_value_are_of_one_row(tmp_path: Path) -> None:
    (tmp_path / "lines.csv").write_text("name,mbps,ms\n" + "".join(f"l{n},{n},{10 * n}\n" for n in range(1, 30)))
    axis = 'draw = 40\ncsv = "lines.csv"\nset = { "link.dsl.rate" = "{mbps} Mbps", "link.dsl.delay" = "{ms} ms" }'
    values = drawn(tmp_path, axis)
    pairs = [(each["link.dsl.rate"].split()[0], each["link.dsl.delay"].split()[0]) for each in values]
    assert all(10 * int(rate) == int(delay) for rate, delay in pairs)
    assert len(set(pairs)) > 15


def test_a_number_from_the_command_line_draws_so_many(tmp_path: Path) -> None:
    file = tmp_path / "drawn.toml"
    file.write_text(f'{NETWORK}\n[vary.network]\ndraw = 2\nset = {{ "link.dsl.delay" = {{ one_of = ["1 ms"] }} }}\n')
    (axis,) = Scenario.load(file).with_axes(["network=5"]).axes
    assert axis.labels == ["n1", "n2", "n3", "n4", "n5"]
    with pytest.raises(ScenarioError, match="an axis that draws its values takes their number, such as 2"):
        Scenario.load(file).with_axes(["network=n1,n2"])


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ("draw = 0", "'draw' is a whole number, 1 to 10000, not 0"),
        ("draw = 2", "axis 'network' sets nothing"),
        ('draw = 2\nsett = { "link.dsl.rate" = "1 Mbps" }', "did you mean 'set'?"),
        ('draw = 2\nset = { "link.dsl.rate" = { uniform = ["1 Mbps"] } }', "is a list of two bounds"),
        ('draw = 2\nset = { "link.dsl.rate" = { uniform = ["1 Mbps", "2 s"] } }', "no two numbers of one unit"),
        ('draw = 2\nset = { "link.dsl.rate" = { uniform = ["2 Mbps", "1 Mbps"] } }', "must be above the first"),
        ('draw = 2\nset = { "link.dsl.loss" = { log_uniform = ["0 %", "1 %"] } }', "must be above 0"),
        ('draw = 2\nset = { "link.dsl.rate" = { log_unifrm = ["1 Mbps", "2 Mbps"] } }', "did you mean 'log_uniform'?"),
        ('draw = 2\nset = { "link.dsl.rate" = "{mbps} Mbps" }', "no file with a column 'mbps'"),
        (
            'draw = 2\nset = { "link.dsl.rate" = { uniform = ["1 Mbps", "2 Mbps"], follows = "link.dsl.rate", '
            "correlation = 1 } }",
            "'link.dsl.rate' follows itself",
        ),
        (
            'draw = 2\nset = { "link.dsl.rate" = { uniform = ["1 Mbps", "2 Mbps"], correlation = 0.5 } }',
            "'follows' and 'correlation' go together",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(tmp_path: Path, axis: str, message: str) -> None:
    assert message in refused(tmp_path, axis)
