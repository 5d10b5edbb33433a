"""Head-of-line blocking as the simulator records it, beside what its samples show."""

from typing import Any

import polars as pl
import pytest

import polypath
from polypath import labs
from polypath.results import Recording, metrics

MS = 1_000_000
INTERVAL_NS = 1 * MS


def recorded(*settings: str) -> Recording:
    scenario = labs.get("aggregation").scenario()
    scenario = scenario.with_settings([*settings, "record.interval=1 ms", "application.iperf.duration=2 s"])
    return polypath.run(scenario)


def integral(recording: Recording, table: str, column: str) -> float:
    samples = recording.table(table).filter(pl.col("side") == "server")
    every = samples.unique(["time_ns", "subflow"] if table == "subflows" else ["time_ns"], keep="last")
    total: Any = every.filter(pl.col("time_ns") % INTERVAL_NS == 0)[column].sum()
    return float(total) * INTERVAL_NS / metrics.SECOND


@pytest.mark.parametrize(
    ("level", "table", "column"),
    [("subflow", "subflows", "out_of_order_bytes"), ("connection", "connections", "reassembly_bytes")],
)
def test_the_integral_is_that_of_the_samples(level: str, table: str, column: str) -> None:
    recording = recorded("link.path0.loss=1%", "link.path1.delay=60 ms")
    [of] = metrics.connections(recording)
    found = metrics.blocking(recording, of)
    assert found
    own = sum(each.byte_s for each in found if each.level == level)
    assert own == pytest.approx(integral(recording, table, column), rel=0.02)
    assert own > 0
