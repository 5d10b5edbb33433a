"""A case: two hosts, what their path managers are told, what happens then, and what is counted of it.

The server is the first namespace of the kernel's selftest, the client the second. Each has four interfaces, each on a
link of its own to one router, so that every address is reached from every other. Address number n of the server is
10.NET.n.1 and fd00:NET:n::1, of the client 10.NET.n.2 and fd00:NET:n::2; the connection is between those of number 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

#: What upstream's script asks of a case, by the name of the counter.
COUNTED = (
    *("MPJoinSynTx", "MPJoinSynRx", "MPJoinSynBackupRx", "MPJoinSynAckRx", "MPJoinSynAckBackupRx", "MPJoinAckRx"),
    *("MPJoinRejected", "AddAddrTx", "AddAddr", "EchoAddTx", "EchoAdd", "RmAddrTx", "RmAddr", "RmSubflow"),
    *("MPPrioTx", "MPPrioRx", "MPFastcloseTx", "MPFastcloseRx", "MPRstTx", "MPRstRx", "SubflowStale"),
)

_EVERY = (1, 2, 3, 4)


@dataclass(frozen=True)
class Conditions:
    """What a case leaves open: when its connections begin and how long each lasts, and the delay of each link."""

    starts: Sequence[str] = ("0 s",)
    lasts: str = "5 s"
    #: That of all: another route may be the shortest where they differ, and other addresses are used.
    delay: str = "5 ms"


@dataclass(frozen=True)
class Case:
    """One test of `mptcp_join.sh` in our words."""

    name: str
    #: Endpoints as `ip mptcp endpoint` has them, by number: "3 subflow", or "6:2 signal port 10100" for one of IPv6.
    client: tuple[str, ...] = ()
    server: tuple[str, ...] = ()
    #: Accepted announcements and further subflows, at most (`ip mptcp limits`).
    client_limits: tuple[int, int] = (0, 2)
    server_limits: tuple[int, int] = (0, 2)
    #: Interfaces that are backups, as "client 3".
    backup: tuple[str, ...] = ()
    #: Changes at 1 s, 2 s and so on: "client 3 removed", "client 3 added", "server 2 backup"; "client 1 cut": its link
    #: loses everything.
    then: tuple[str, ...] = ()
    #: Interfaces that have no endpoints as the connection begins.
    later: tuple[str, ...] = ()
    #: Further settings of the hosts.
    client_stack: str = ""
    server_stack: str = ""
    #: Interfaces whose links lose everything.
    dead: tuple[str, ...] = ()
    ipv6: bool = False
    families: str = "4"
    #: Who aborts the connection at its end, if anybody does.
    aborts: str = ""
    reverse: bool = False
    #: Other counts are 0, but for those that are not said of a case: None.
    expect: Mapping[str, int] = field(default_factory=dict)

    def address(self, side: str, of: str, net: int) -> str:
        family, _, number = of.rpartition(":")
        last = {"server": 1, "client": 2}[side]
        six = family == "6" or (not family and self.ipv6)
        return f"fd00:{net}:{number}::{last}" if six else f"10.{net}.{number}.{last}"

    def text(self, net: int, conditions: Conditions = Conditions()) -> str:
        """The case as part of a scenario; `net` tells its addresses from other cases'."""
        label = f"case{net}"
        lines = [f"[router.{label}-router]"]
        for side in ("client", "server"):
            lines += self._host(side, label, net)
        for side in ("client", "server"):
            for number in _EVERY:
                lines += [f"[link.{label}-{side}{number}]", f'ends = ["{label}-{side}:eth{number}", "{label}-router"]']
                lines += ['rate = "4 Mbps"', f'delay = "{conditions.delay}"']
        for number, start in enumerate(conditions.starts, 1):
            lines += ["[[application]]", f'name = "{label}{f"-{number}" if number > 1 else ""}"', f'start = "{start}"']
            lines += [*self._work(conditions.lasts), f'client = "{label}-client"', f'server = "{label}-server"']
            for key, side in (("destination", "server"), ("source", "client")):
                lines.append(f'{key} = "{self.address(side, "1", net)}"')
        for change in self.later:
            lines += self._event(label, "0 s", f"{change} removed")
        for end in self.dead:
            lines += self._event(label, "0 s", f"{end} cut")
        for at, change in enumerate(self.then, 1):
            if change:
                lines += self._event(label, f"{at} s", change)
        return "\n".join(lines)

    def _work(self, lasts: str) -> list[str]:
        if self.aborts:
            reverse = str(self.aborts == "server").lower()
            return ['kind = "bulk"', 'duration = "3 s"', "abort = true", f"reverse = {reverse}"]
        lines = ['kind = "stream"', 'rate = "1 Mbps"', 'block = "10 kB"', f'duration = "{lasts}"']
        return [*lines, f"reverse = {str(self.reverse).lower()}"]

    def _host(self, side: str, label: str, net: int) -> list[str]:
        accepted, subflows = getattr(self, f"{side}_limits")
        lines = [f"[host.{label}-{side}]"]
        endpoints = ", ".join(f'"{self._endpoint(side, each, net)}"' for each in getattr(self, side))
        flags = f"endpoints = [{endpoints}]" if endpoints else 'flags = "none"'
        manager = f'kind = "endpoints", {flags}, subflows = {subflows}, add_addr_accepted = {accepted}'
        lines.append(f"path_manager = {{ {manager} }}")
        lines += filter(None, getattr(self, f"{side}_stack").split("; "))
        for number in _EVERY:
            addresses = [f'"{self.address(side, f"{family}:{number}", net)}"' for family in self.families]
            lines.append(f"interface.eth{number}.address = [{', '.join(addresses)}]")
            if f"{side} {number}" in self.backup:
                lines.append(f"interface.eth{number}.backup = true")
        return lines

    def _endpoint(self, side: str, text: str, net: int) -> str:
        number, _, words = text.partition(" ")
        return f"{self.address(side, number, net)} {words}"

    def _event(self, label: str, at: str, change: str) -> list[str]:
        side, number, what = change.split()
        if what == "cut":
            return ["[[event]]", f'at = "{at}"', f'link = "{label}-{side}{number}"', "up = false"]
        value = {
            "removed": "endpoint = false",
            "added": "endpoint = true",
            "backup": "backup = true",
            "nobackup": "backup = false",
        }[what]
        return ["[[event]]", f'at = "{at}"', f'interface = "{label}-{side}:eth{number}"', value]
