"""What the plan schedules stands in the Recording of every engine in the same way."""

import polars as pl
import pytest

from polypath.engines import EngineError, get
from polypath.engines.linux.kernel import KernelError, find
from polypath.engines.linux.kernel.make import supported
from polypath.engines.live.machine import probe
from polypath.scenario import Scenario

SCENARIO = """
name = "scheduled"
duration = "2 s"

[defaults]
profile = "linux"
path_manager = "fullmesh"

[host.client]
[host.server]
[router.r]

[link.wifi]
ends = ["client:wlan0", "r"]
rate = "2 Mbps"
delay = "10 ms"

[link.lte]
ends = ["client:wwan0", "r"]
rate = "2 Mbps"
delay = "20 ms"

[link.server]
ends = ["r", "server"]

[[application]]
kind = "bulk"

[[event]]
at = "400 ms"
link = "wifi"
rate = "1 Mbps"
delay = "15 ms"

[[event]]
at = "500 ms"
link = "lte"
direction = "forward"
loss = "1%"

[[event]]
at = "600 ms"
interface = "client:wwan0"
backup = true

[[event]]
at = "800 ms"
interface = "client:wlan0"
up = false

[[event]]
at = "1200 ms"
interface = "client:wlan0"
up = true

[[event]]
at = "1500 ms"
link = "lte"
up = false
"""

EXPECTED = [
    (400, "link-changed", "", 0, "both: rate 1000000 bit/s, delay 15000000 ns"),
    (500, "link-changed", "", 1, "forward: loss random probability 0.01"),
    (600, "interface-changed", "client", None, "wwan0 backup"),
    (800, "interface-changed", "client", None, "wlan0 down"),
    (1200, "interface-changed", "client", None, "wlan0 up"),
    (1500, "link-changed", "", 1, "both: down"),
]


def _require(engine: str) -> None:
    """Skips where the machine cannot run it."""
    try:
        if engine == "linux":
            supported()
            find()
        elif engine == "live":
            probe()
    except (EngineError, KernelError) as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("engine", ["sim", "linux", "live"])
def test_every_engine_tells_the_plans_events_alike(engine: str) -> None:
    _require(engine)
    recording = get(engine).run(Scenario.parse(SCENARIO, "scheduled.toml").plan())
    events = recording.table("events")
    assert events["time_ns"].is_sorted()
    scheduled = events.filter(pl.col("kind").is_in(["link-changed", "interface-changed"]))
    rows = scheduled.select(pl.col("time_ns") // 1_000_000, "kind", "host", "link", "detail").rows()
    assert rows == EXPECTED
