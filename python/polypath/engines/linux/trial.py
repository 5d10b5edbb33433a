"""The trial of a kernel before runs use it: data over two paths, with each scheduler, the same way twice."""

from __future__ import annotations

from typing import Final

from polypath.engines.base import EngineError
from polypath.engines.linux.engine import LinuxEngine
from polypath.engines.linux.kernel import Installed
from polypath.scenario import Plan, Scenario

_BYTES: Final = 300_000
_TRIED: Final = (
    ("default", "cubic"),
    ("roundrobin", "reno"),
    ("kbest", "lia"),
    ("balanced", "olia"),
    ("blest", "balia"),
    ("ecf", "lia"),
)
_NETWORK: Final = f"""
name = "trial"
duration = "10 s"
[host.client]
[host.server]
[link.one]
ends = ["client", "server"]
rate = "10 Mbps"
delay = "5 ms"
[link.two]
ends = ["client", "server"]
rate = "10 Mbps"
delay = "10 ms"
loss = "1 %"
[[application]]
kind = "bulk"
size = "{_BYTES} B"
[defaults]
profile = "linux"
path_manager = "fullmesh"
"""


def trial(kernel: Installed) -> None:
    """Raises EngineError where data is lost, a path stays empty, or a second run differs."""
    engine = LinuxEngine(kernel=kernel)
    for scheduler, congestion in _TRIED:
        plan = _plan(scheduler, congestion)
        first, second = (engine.run(plan) for _ in range(2))
        what = f"{scheduler} with {congestion}"
        (received,) = first.table("connection_ends")["server_received_bytes"]
        if received != _BYTES:
            raise EngineError(f"{what} brings {received} of {_BYTES} bytes")
        paths = first.table("subflow_ends")["server_received_bytes"].to_list()
        if sum(each > 0 for each in paths) < 2:
            raise EngineError(f"{what} brings {paths} bytes over two paths")
        if first.metadata.recording_sha256 != second.metadata.recording_sha256:
            raise EngineError(f"{what} goes otherwise when it is repeated")


def _plan(scheduler: str, congestion: str) -> Plan:
    return Scenario.parse(f"{_NETWORK}scheduler = '{scheduler}'\ncongestion = '{congestion}'\n", "trial.toml").plan()
