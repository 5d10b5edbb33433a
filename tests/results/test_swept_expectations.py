"""Expectations of sweeps: points, seeds, quotients, models, shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
import pytest

from polypath.labs import models, shapes
from polypath.labs.expectations import Sample, evaluate
from polypath.results import Recording

BUFFER = "defaults.receive_buffer"
BENEFIT = {"run": "single", "over": "path", "by": "aggregation-benefit"}


@dataclass(frozen=True)
class Expected:
    minimum: float | None = None
    maximum: float | None = None
    at: Mapping[str, str] = field(default_factory=dict)
    along: str | None = None
    shape: str = "rising"
    share_above: float | None = None
    relative_to: Mapping[str, Any] | None = None
    run: str = "mptcp"
    measure: str = "goodput"
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"connection": "iperf"})
    name: str = "a"
    published: str = "b"
    unit: str = ""


def carrying(recording: Recording, mbps: float) -> Recording:
    """The handmade Recording with iperf's goodput, which is over 2 s, changed."""
    ends = recording.table("connection_ends").with_columns(
        server_received_bytes=pl.when(pl.col("name") == "iperf")
        .then(int(mbps * 250_000))
        .otherwise(pl.col("server_received_bytes"))
        .cast(pl.UInt64)
    )
    return replace(recording, tables={**recording.tables, "connection_ends": ends})


@pytest.fixture
def runs(recording: Recording) -> Mapping[str, list[Sample]]:
    """Goodput by buffer (rows) and seed, for reno and for olia; TCP varies the seed alone."""
    goodputs = {
        ("reno", "1 MB"): (9, 11),
        ("reno", "2 MB"): (20, 20),
        ("reno", "4 MB"): (18, 20),
        ("olia", "1 MB"): (8, 8),
        ("olia", "2 MB"): (8, 8),
        ("olia", "4 MB"): (16, 16),
    }
    swept = [
        Sample({"cc": cc, BUFFER: buffer, "seed": str(seed)}, carrying(recording, mbps))
        for (cc, buffer), pair in goodputs.items()
        for seed, mbps in enumerate(pair, start=1)
    ]
    tcp = [Sample({"seed": str(seed)}, carrying(recording, 4)) for seed in (1, 2)]
    single = [Sample({"path": path}, carrying(recording, 4)) for path in ("a", "b")]
    slow = [Sample({}, carrying(recording, 2))]
    return {"mptcp": swept, "tcp": tcp, "single": single, "slow": slow}


@pytest.mark.parametrize(
    ("expected", "measured", "ok"),
    [
        (Expected(8, 20), "8 to 20 at 6 points", True),
        (Expected(8.1, 20), "8 to 20 at 6 points", False),
        (Expected(10, 10, at={"cc": "reno", BUFFER: "1 MB"}), "10", True),
        (Expected(8, 19, at={BUFFER: "4 MB"}), "16 to 19 at 2 points", True),
        (Expected(2, 5, relative_to={"run": "tcp"}), "2 to 5 at 6 points", True),
        (
            Expected(2, 2, at={"cc": "reno", BUFFER: "2 MB"}, relative_to={"at": {BUFFER: "1 MB"}}, unit="x"),
            "2.02 x",
            False,
        ),
        (Expected(0.5, at={BUFFER: "1 MB"}, relative_to={"at": {"cc": "olia"}}), "1 to 1.25 at 2 points", True),
        (Expected(maximum=0.051, along=BUFFER), "0 to 0.05 at 2 curves", True),
        (Expected(maximum=0.04, along=BUFFER), "0 to 0.05 at 2 curves", False),
        (Expected(maximum=0.3, along="cc", shape="falling"), "0 at 3 curves", True),
        # Of 10, 20, 19, 8, 8 and 16.
        (Expected(0.5, share_above=10), "0.5", True),
        (Expected(0.6, share_above=10), "0.5", False),
        # TCP gets 4 over each: 10 is 6 more than one of them, where both together would be 4 more; 2 is half of one.
        (Expected(1.5, 1.5, at={"cc": "reno", BUFFER: "1 MB"}, relative_to=BENEFIT), "1.5", True),
        (Expected(-0.5, -0.5, run="slow", relative_to=BENEFIT), "-0.5", True),
    ],
)
def test_places_seeds_and_shapes(runs: Mapping[str, list[Sample]], expected: Expected, measured: str, ok: bool) -> None:
    row = evaluate(expected, runs)
    assert (row.measured, row.ok) == (measured, ok)


@pytest.mark.parametrize(
    ("expected", "complaint"),
    [
        (Expected(1, at={BUFFER: "3 MB"}), f"'{BUFFER}' is never '3 MB' (there: 1 MB, 2 MB, 4 MB)"),
        (Expected(1, at={"mtu": "3"}), f"nothing varies 'mtu' (axes: cc, {BUFFER}, seed)"),
        (Expected(1, along="mtu"), f"nothing varies 'mtu' (axes: cc, {BUFFER}, seed)"),
        (Expected(1, along=BUFFER, shape="risen"), "unknown shape 'risen'; did you mean 'rising'?"),
        (Expected(1, relative_to={"run": "udp"}), "unknown run 'udp' (there: mptcp, tcp, single, slow)"),
        (Expected(1, relative_to={**BENEFIT, "over": "way"}), "nothing varies 'way' (axes: path)"),
        (Expected(1, relative_to={"model": "link"}), "unknown model 'link'; did you mean 'links'?"),
        (Expected(1, relative_to={"at": {BUFFER: "9 MB"}}), f"'{BUFFER}' is never '9 MB' (there: 1 MB, 2 MB, 4 MB)"),
    ],
)
def test_what_the_sweep_has_not(runs: Mapping[str, list[Sample]], expected: Expected, complaint: str) -> None:
    row = evaluate(expected, runs)
    assert (row.measured, row.ok) == (complaint, False)


def test_a_run_is_a_sweep_of_one_point(recording: Recording) -> None:
    assert evaluate(Expected(12, 12), {"mptcp": recording}).measured == "12"


@pytest.mark.parametrize(
    ("shape", "curve", "departure"),
    [
        ("rising", [1, 2, 3], 0),
        ("rising", [10, 9, 12, 11.4, 9.6], 0.2),
        ("rising", [0, 0, 1], 0),
        ("falling", [3, 2, 2], 0),
        ("falling", [10, 5, 6, 4], 0.2),
    ],
)
def test_shapes(shape: str, curve: list[float], departure: float) -> None:
    assert shapes.REGISTRY[shape].departure(curve) == pytest.approx(departure)


class TestModels:
    @pytest.fixture
    def made(self, recording: Recording) -> Recording:
        """The handmade run on a plan that has addresses: 20 Mbps at 40 ms and 10 Mbps at 80 ms."""
        plan: Any = dict(recording.plan)
        names: list[list[list[str]]] = [[["10.0.0.1"], ["fd00::1"]], [[], [], []], [["10.1.0.1", "fd01::1"]]]
        plan["nodes"] = [
            {
                **node,
                "interfaces": [{**one, "addresses": own} for one, own in zip(node["interfaces"], each, strict=True)],
            }
            for node, each in zip(plan["nodes"], names, strict=True)
        ]
        return replace(recording, plan=plan)

    def test_links(self, made: Recording) -> None:
        assert models.REGISTRY["links"](made, {"connection": "iperf"}) == 30.0
        assert models.REGISTRY["links"](made, {"connection": "msg"}) == 20.0

    def test_window_is_the_advertised_one_over_the_longest_round_trip(self, made: Recording) -> None:
        assert models.REGISTRY["window"](made, {"connection": "iperf"}) == pytest.approx(65536 * 8 / 0.08 / 1e6)

    def test_a_cap_is_what_disjoint_paths_carry_with_no_more_than_a_share_on_one(self, made: Recording) -> None:
        """Paths of 20 and 10 Mbps: two thirds on one without a cap; with 0.55, 10 Mbps are the other 45 %."""
        for epsilon, rate, share in ((None, 30.0, 2 / 3), (0.0, 20.0, 0.5), (0.05, 10 / 0.45, 0.55)):
            given = {"connection": "iperf", "epsilon": epsilon}
            assert models.REGISTRY["capped"](made, given) == pytest.approx(rate)
            assert models.REGISTRY["capped_share"](made, given) == pytest.approx(share)

    def test_a_figure_is_held_against_it(self, made: Recording) -> None:
        row = evaluate(Expected(0.4, 0.4, relative_to={"model": "links"}), {"mptcp": made})
        assert (row.measured, row.ok) == ("0.4", True)
        row = evaluate(Expected(0.4, relative_to={"model": "links", "size": 3}), {"mptcp": made})
        assert row.measured == "model 'links': got an unexpected keyword argument 'size'"

    def test_every_model_is_tested_here(self) -> None:
        assert set(models.REGISTRY) == {"links", "window", "capped", "capped_share"}
