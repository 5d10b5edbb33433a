"""Wires without netem: everything between the hosts is the simulator's network, in real time."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from polypath import _core
from polypath.engines.base import EngineError
from polypath.engines.namespaces.script import Script
from polypath.engines.namespaces.topology import End, Network, namespace

if TYPE_CHECKING:
    from polypath.plan.types import Action

#: The driver's first descriptor, behind those that a shell may use.
_FIRST = 20
#: What may wait for the driver's turn, in packets.
_QUEUE = 10_000
#: Keys of the plan that are none of the simulator's.
_ENGINES_OWN = ("programs", "clients")


class Simulated:
    """Hosts are namespaces whose interfaces are TAPs; the driver (drive.py) holds their other ends."""

    #: Its routers and links are not in the kernel.
    whole = True

    def __init__(self, network: Network) -> None:
        self.network = network
        self.nodes = [node for node in range(len(network.nodes)) if network.is_host(node)]
        self.ports = [end for node in self.nodes for end in network.ends(node)]

    def namespaces(self) -> list[str]:
        return []

    def lay(self, script: Script) -> None:
        for link in self.network.links:
            if any(link[way]["mtu"] is not None for way in ("forward", "backward")):
                raise EngineError(
                    f"the simulator's network tells no real sender of an MTU, and link {link['name']} has one"
                )
            if any(link[way].get("queue_at") for way in ("forward", "backward")):
                raise EngineError(
                    f"the simulator's network has no queue in a real host, and link {link['name']} asks for one"
                )
        for node in self.nodes:
            lines = []
            for end in self.network.ends(node):
                device = self.network.device(end)
                lines.append(f"tuntap add dev {device} mode tap")
                lines.append(
                    f"link set dev {device} address {end.mac} mtu {self.network.mtu(node)} txqueuelen {_QUEUE}"
                )
            script.ip(namespace(node), lines, "taps")

    def observers(self, interval_ns: int) -> Iterator[str]:
        return iter(())

    def uncounted(self, link: int, direction: str) -> int:
        return 0

    def change(self, number: int, action: Action, files: dict[str, str]) -> None:
        """The driver knows the Plan's events."""

    def bridges(self) -> Sequence[str]:
        return ()

    def files(self) -> dict[str, str]:
        """What the driver reads, and the script that starts it."""
        ports = [{"node": end.node, "interface": end.interface, "mac": _bytes(end)} for end in self.ports]
        taps = [f"{namespace(end.node)}:{self.network.device(end)}" for end in self.ports]
        driver = [
            sys.executable,
            "-I",
            "-S",
            str(Path(__file__).with_name("drive.py")),
            str(_core.__file__),
            *("plan.json", "ports.json", str(_FIRST), str(len(taps)), "out/links"),
        ]
        command = ["exec", "./guest", "taps", str(_FIRST), *taps, "--", *driver]
        return {
            "plan.json": json.dumps(
                {key: value for key, value in self.network.plan.items() if key not in _ENGINES_OWN}
            ),
            "ports.json": json.dumps(ports),
            "carry.sh": " ".join(map(shlex.quote, command)) + "\n",
        }


def _bytes(end: End) -> list[int]:
    return list(bytes.fromhex(end.mac.replace(":", "")))
