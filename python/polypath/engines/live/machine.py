"""The features of this computer's kernel, tested in short-lived namespaces."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from polypath.engines.base import EngineError
from polypath.engines.namespaces import programs
from polypath.engines.namespaces.kernel import Kernel
from polypath.scenario.stack import of_profile

if TYPE_CHECKING:
    from polypath.plan.types import Stack

#: A user, network, mount and process namespace of their own, which end with the process that asked for them.
NAMESPACES: Final = (
    "setpriv",
    "--pdeathsig=KILL",
    "unshare",
    "--user",
    "--map-root-user",
    "--net",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child=KILL",
)
_TOOLS: Final = {"unshare": "util-linux", "setpriv": "util-linux", "ip": "iproute2", "tc": "iproute2"}

_PROBE: Final = """
have() { "$@" >/dev/null 2>&1; }
echo inside
cat /proc/sys/net/mptcp/enabled 2>/dev/null | sed 's/^/mptcp /'
sed 's/^/congestion /' /proc/sys/net/ipv4/tcp_available_congestion_control
sed 's/^/schedulers /' /proc/sys/net/mptcp/available_schedulers 2>/dev/null
(cd /proc/sys/net && echo settings ipv4/tcp_* mptcp/*)
have ip mptcp limits set subflows 64 && echo subflows 64
have ip tuntap add dev t0 mode tap && echo tap
have ip link add v0 type veth peer name v1 &&
  have tc qdisc add dev v0 root handle 1: netem delay 1ms &&
  have tc qdisc add dev v0 parent 1:1 handle 10: netem rate 1mbit &&
  have tc qdisc add dev v0 clsact &&
  have tc filter add dev v0 ingress matchall action mirred egress redirect dev v1 && echo netem
true
"""

#: What these settings are where nobody changed them; a kernel without the switch behaves so.
_DEFAULTS: Final[Mapping[str, object]] = {
    "ipv4/tcp_rto_min_us": 200_000,
    "ipv4/tcp_mtu_probing": 0,
    "mptcp/scheduler": "default",
}


def _rto_min_of_profile(stack: Stack) -> int:
    return int(of_profile(stack["profile"])["rto_min"])


@dataclass(frozen=True)
class Machine:
    """The machine's kernel as a run would find it."""

    release: str
    congestion: tuple[str, ...]
    schedulers: tuple[str, ...]
    #: Files below /proc/sys/net.
    settings: frozenset[str]
    netem: bool
    tap: bool
    #: Further subflows that a connection may have.
    subflows: int = 8


def probe() -> Machine:
    """Raises EngineError, with the way out, where the machine cannot run anything at all."""
    for tool, package in _TOOLS.items():
        if shutil.which(tool, path=programs.PATH) is None:
            raise EngineError(f"engine live needs {tool} (apt-get install {package})")
    done = subprocess.run(
        [*NAMESPACES, "sh", "-c", _PROBE],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env={"PATH": programs.PATH, "LC_ALL": "C"},
        check=False,
    )
    return read(done.stdout, done.stderr)


def read(said: str, complaint: str) -> Machine:
    """What the probe printed. Raises EngineError where engine live has no use for such a machine."""
    facts = {key: words.split() for key, _, words in (line.partition(" ") for line in said.splitlines())}
    release = platform.release()
    if "inside" not in facts:
        reason = complaint.strip().splitlines()[-1] if complaint.strip() else "no reason given"
        raise EngineError(
            f"engine live needs user namespaces, which this machine refuses ({reason}); --engine linux does not"
        )
    if "mptcp" not in facts:
        raise EngineError(f"this machine's kernel ({release}) has no Multipath TCP; --engine linux brings one that has")
    if facts["mptcp"] != ["1"]:
        raise EngineError(
            "Multipath TCP is off on this machine (sysctl net.mptcp.enabled=1); --engine linux does not mind"
        )
    machine = Machine(
        release,
        congestion=tuple(facts.get("congestion", [])),
        schedulers=tuple(facts.get("schedulers", ["default"])),
        settings=frozenset(facts.get("settings", [])),
        netem="netem" in facts,
        tap="tap" in facts,
        subflows=int(facts.get("subflows", ["8"])[0]),
    )
    if not machine.netem and not machine.tap:
        raise EngineError(
            f"this machine's kernel ({release}) has no netem, and no TAP interface can be made (/dev/net/tun): "
            "nothing can carry packets; --engine linux can"
        )
    return machine


class MachineKernel(Kernel):
    """A stock kernel: its congestion controls are granted to sockets rather than to namespaces, and it lacks ours."""

    congestion_of_host = False

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.most_subflows = machine.subflows
        self.be_of(machine.release)
        if "mptcp/path_manager" not in machine.settings:
            self.userspace_paths = ("mptcp/pm_type", "1")

    def settings(self, stack: Stack) -> dict[str, object]:
        kept: dict[str, object] = {}
        for name, value in super().settings(stack).items():
            if name == "ipv4/tcp_congestion_control":
                continue
            if name in self.machine.settings:
                kept[name] = value
            elif name == "ipv4/tcp_rto_min_us" and stack["rto_min_ns"] == _rto_min_of_profile(stack):
                continue  # nobody asked for another timeout than the kernel's
            elif value != _DEFAULTS.get(name):
                switch = f"net.{name.replace('/', '.')}"
                raise EngineError(
                    f"this machine's kernel ({self.machine.release}) has no {switch}, which is {value} here"
                )
        return kept

    def congestion(self, stack: Stack) -> str:
        return self._known("congestion control", super().congestion(stack), self.machine.congestion)

    def scheduler(self, stack: Stack) -> str:
        return self._known("MPTCP scheduler", super().scheduler(stack), self.machine.schedulers)

    def _known(self, kind: str, name: str, there: tuple[str, ...]) -> str:
        if name not in there:
            raise EngineError(
                f"this machine's kernel ({self.machine.release}) has no {kind} '{name}', only {', '.join(there)}; "
                "--engine linux has more"
            )
        return name
