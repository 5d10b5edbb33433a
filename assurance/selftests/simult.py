"""The set-ups of `tools/testing/selftests/net/mptcp/simult_flows.sh` (Linux 7.2): two paths at once, within a time.

A client has two interfaces to a router, and the server one. Both directions of a path have the same rate, delay and
queue. Over one connection a small file goes one way and a large one the other way.

Each end writes 100 bytes and pauses for 200 ms, so that the join ends before the files do. Both files then flow at
once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from .setup import Place, Run, Seen, SetUp, around, incomplete, started

SCRIPT = "simult_flows"
SMALL, LARGE = 20 * 4096, 2 * 2048 * 4096
#: In ms: what the script adds to the time of the bytes.
_MORE = 400 + 50


def _takes_ms(size: int, rate_mbps: int) -> int:
    return 1000 * size * 8 * 10 // (rate_mbps * 10**6 * 9)


@dataclass(frozen=True)
class _Paths:
    name: str
    #: Mbit/s, ms and packets of either path.
    rates: tuple[int, int]
    delays: tuple[int, int]
    queues: tuple[int, int]
    flaky: bool = False

    @property
    def bound_ms(self) -> int:
        """The script's: the large file at both rates together, a tenth of which is headers."""
        return _takes_ms(LARGE, sum(self.rates)) + _MORE

    def text(self, at: Place, random: Random, to_server: int, to_client: int) -> str:
        label, net = at.label, at.net
        lines = [f"[router.{label}-ns2]", f"[host.{label}-ns1]"]
        manager = f'kind = "endpoints", endpoints = ["10.{net}.2.1 subflow"], subflows = 1, add_addr_accepted = 1'
        lines += [f"path_manager = {{ {manager} }}"]
        lines += [f'interface.eth{number}.address = "10.{net}.{number}.1"' for number in (1, 2)]
        lines += [f"[host.{label}-ns3]", f'interface.eth1.address = "10.{net}.3.3"']
        lines += ['path_manager = { kind = "endpoints", flags = "none", subflows = 1, add_addr_accepted = 1 }']
        for number, (rate, delay, queue) in enumerate(zip(self.rates, self.delays, self.queues, strict=True), 1):
            lines += [f"[link.{label}-{number}]", f'ends = ["{label}-ns1:eth{number}", "{label}-ns2"]']
            lines += [
                f'rate = "{rate} Mbps"',
                f'delay = "{around(1000 * delay, random)}"',
                f'queue = "{queue} packets"',
            ]
        lines += [f"[link.{label}-3]", f'ends = ["{label}-ns2", "{label}-ns3:eth1"]']
        lines += [f'delay = "{around(0, random)}"']
        lines += ["[[application]]", f'name = "{label}"', 'kind = "bulk"', 'first = "100 B"', 'pause = "200 ms"']
        lines += [f'client = "{label}-ns1"', f'server = "{label}-ns3"', f'source = "10.{net}.1.1"']
        lines += [f'start = "{started(random)}"', f'size = "{to_server} B"', f'reverse_size = "{to_client} B"']
        return "\n".join(lines)

    def set_up(self, name: str, to_server: int, to_client: int) -> SetUp:
        def faults(seen: Seen) -> list[str]:
            return incomplete(seen, to_server, to_client)

        def draw(at: Place, random: Random) -> Run:
            return Run(self.text(at, random, to_server, to_client), faults)

        return SetUp(SCRIPT, name, draw, self.bound_ms, flaky=self.flaky)


_PATHS = (
    _Paths("balanced bwidth", (10, 10), (0, 0), (20, 20)),
    _Paths("balanced bwidth with unbalanced delay", (10, 10), (1, 25), (20, 50)),
    _Paths("unbalanced bwidth", (10, 3), (0, 0), (30, 20), flaky=True),
    _Paths("unbalanced bwidth with unbalanced delay", (10, 3), (1, 25), (40, 30)),
    _Paths("unbalanced bwidth with opposed, unbalanced delay", (10, 3), (25, 1), (50, 30)),
)


def _every() -> Iterator[SetUp]:
    for paths in _PATHS:
        yield paths.set_up(paths.name, SMALL, LARGE)
        yield paths.set_up(f"{paths.name} - reverse direction", LARGE, SMALL)


SET_UPS = tuple(_every())
