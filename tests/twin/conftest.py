from collections.abc import Callable
from pathlib import Path

import pytest

from polypath import Scenario, run

#: The parts of a scenario with one path, all of which have a value.
ONE_PATH = """
duration = "{duration}"
[defaults]
profile = "linux"
congestion = "{congestion}"
{more}
[host.client]
[host.server]
[router.r]
[link.path0]
ends = ["client:path0", "r"]
rate = "{rate}"
delay = "{delay}"
queue = "{queue}"
loss = "{loss}"
jitter = "{jitter}"
[link.server]
ends = ["r", "server"]
[[application]]
name = "app"
transport = "{transport}"
{work}
"""
USUAL = {
    "duration": "6 s",
    "congestion": "cubic",
    "more": "",
    "rate": "8 Mbps",
    "delay": "15 ms",
    "queue": "40 packets",
    "loss": "0 %",
    "jitter": "0 ms",
    "transport": "tcp",
    "work": 'kind = "bulk"\nreverse = true\nduration = "6 s"',
}

Captured = Callable[..., list[Path]]


@pytest.fixture
def captured(tmp_path: Path) -> Captured:
    """Runs the scenario with one path, other values given by name, and captures it at these hosts."""

    def made(*hosts: str, **values: str) -> list[Path]:
        scenario = Scenario.parse(ONE_PATH.format(**{**USUAL, **values}), "one.toml")
        run(scenario, captures="hosts", directory=tmp_path)
        return [tmp_path / f"{host}.pcapng" for host in hosts]

    return made
