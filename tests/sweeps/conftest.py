"""A small scenario with axes."""

import pytest

from polypath.scenario import Scenario

TWO_PATHS = """
name = "small"
duration = "1 s"

[host.client]
[host.server]
[router.r]

[link.path0]
ends = ["client:eth0", "r"]
rate = "10 Mbps"
delay = "10 ms"
loss = "1 %"

[link.path1]
ends = ["client:eth1", "r"]
rate = "5 Mbps"
delay = "20 ms"

[link.server]
ends = ["r", "server"]

[[application]]
name = "iperf"
kind = "bulk"
"""

AXES = """
[vary]
"defaults.receive_buffer" = ["30 kB", "1 MB"]
seed = [4, 5, 6]
"""


@pytest.fixture
def text() -> str:
    return TWO_PATHS + AXES


@pytest.fixture
def scenario(text: str) -> Scenario:
    return Scenario.parse(text, "small.toml")


@pytest.fixture
def plain() -> str:
    return TWO_PATHS
