"""Which paths Multipath TCP opens: the simulator beside the kernel. All cases are one run, each on hosts of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from polypath import Scenario, run
from polypath.results import Recording

Run = Callable[..., Recording]

#: What both engines are to count alike.
COUNTED = (
    *("MPCapableSYNTX", "MPJoinSynRx", "MPJoinSynBackupRx", "MPJoinSynAckRx", "MPJoinSynAckBackupRx", "MPJoinAckRx"),
    *("MPJoinRejected", "AddAddr", "AddAddrTx", "EchoAdd", "EchoAddTx", "RmAddr", "RmAddrTx", "RmSubflow"),
    *("MPPrioTx", "MPPrioRx", "MPRstTx", "MPRstRx"),
)

#: Several round trips, in nanoseconds.
LASTING = 100_000_000


@dataclass(frozen=True)
class Case:
    """Two hosts with path manager endpoints: its parameters, their links, and what happens after 1 s and after 2 s."""

    client: str
    server: str
    #: Networks of one interface of each host; or links of the client and of the server to a router.
    apart: int = 0
    ends: tuple[int, int] = (1, 1)
    reverse: bool = False
    backup: str = ""
    then: tuple[str, str] = ("", "")

    def text(self, name: str, net: int) -> str:
        hosts = {"client": (1, self.client), "server": (2, self.server)}
        lines = []
        for side, (number, parameters) in hosts.items():
            lines += [f"[host.{name}-{side}]", f'path_manager = {{ kind = "endpoints", {parameters} }}']
            lines += [f"interface.{self.backup}.backup = true"] * (side == "client" and bool(self.backup))
            lines += [f'interface.eth{path}.address = "10.{net}.{path}.{number}"' for path in range(self.apart)]
        ends = [(f"{name}-client:eth{path}", f"{name}-server:eth{path}") for path in range(self.apart)]
        if not self.apart:
            lines.append(f"[router.{name}-router]")
            ends = [
                (f"{name}-{side}:eth{path}", f"{name}-router")
                for side, count in zip(hosts, self.ends, strict=True)
                for path in range(count)
            ]
        for number, pair in enumerate(ends):
            lines += [f"[link.{name}-{number}]", f"ends = {list(pair)}", 'rate = "4 Mbps"', 'delay = "5 ms"']
        lines += [
            *("[[application]]", f'name = "{name}"', 'kind = "stream"', 'rate = "1 Mbps"', 'block = "10 kB"'),
            *(f'client = "{name}-client"', f'server = "{name}-server"', 'duration = "3 s"'),
            f"reverse = {str(self.reverse).lower()}",
        ]
        for at, change in zip(("1 s", "2 s"), self.then, strict=True):
            if change:
                lines += ["[[event]]", f'at = "{at}"', change.replace("client", f"{name}-client")]
        return "\n".join(lines).replace("'", '"')


NONE, OPENS = 'flags = "none", subflows = 8', 'flags = "subflow", subflows = 8'
SIGNALS, MESH = 'flags = "signal", subflows = 8', 'flags = "fullmesh", subflows = 8'
TAKES = f"{NONE}, add_addr_accepted = 8"


GONE = 'interface = "client:eth1"\nup = '


def _gone(interface: str) -> tuple[str, str]:
    change = f'interface = "client:{interface}"\nup = '
    return f"{change}false", f"{change}true"


CASES: Mapping[str, Case] = {
    "apart": Case(TAKES, SIGNALS, apart=2),
    "limit-1": Case(OPENS, 'flags = "none", subflows = 1', ends=(3, 1)),
    "limit-0": Case(OPENS, 'flags = "none", subflows = 0', ends=(3, 1)),
    "second-back": Case(OPENS, NONE, ends=(2, 1), then=_gone("eth1")),
    "first-back": Case(OPENS, NONE, ends=(2, 1), then=_gone("eth0")),
    "first-back-mesh": Case(MESH, NONE, ends=(2, 1), then=_gone("eth0")),
    "first-is-backup": Case(OPENS, NONE, ends=(2, 1), backup="eth0", reverse=True),
    "second-is-backup": Case(OPENS, NONE, ends=(2, 1), backup="eth1"),
    "signals": Case(TAKES, SIGNALS, ends=(1, 3), reverse=True),
    "signals-at-limit": Case(TAKES, 'flags = "signal", subflows = 0', ends=(1, 3)),
    "signals-and-opens": Case(TAKES, 'flags = "signal subflow", subflows = 8', ends=(1, 3), reverse=True),
    "unused-back": Case(NONE, NONE, ends=(2, 1), then=_gone("eth1")),
    "down-is-backup": Case(OPENS, NONE, ends=(2, 1), then=(f"{GONE}false", 'interface = "client:eth1"\nbackup = true')),
    "last-back": Case(OPENS, NONE, then=_gone("eth0")),
    "first-unused": Case('flags = "subflow", subflows = 0', NONE, then=_gone("eth0")),
    "last-announced": Case(SIGNALS, NONE, then=_gone("eth0")),
    "was-backup": Case(NONE, NONE, backup="eth0", then=('interface = "client:eth0"\nbackup = true', "")),
    "becomes-backup": Case(OPENS, NONE, ends=(2, 1), then=('interface = "client:eth1"\nbackup = true', "")),
}


def _scenario() -> Scenario:
    cases = [case.text(name, 1 + number) for number, (name, case) in enumerate(CASES.items())]
    return Scenario.parse("\n".join(['duration = "5 s"', "[defaults]", 'profile = "linux"', *cases]), "paths.toml")


def _found(recording: Recording) -> dict[str, dict[str, Any]]:
    """Of each case: the pairs of addresses between which there were subflows, in their order, and what was counted. A
    subflow that the other side refuses at its third ACK is established for a round trip in the kernel's eyes."""
    names = recording.table("connection_ends").sort("connection")["name"].to_list()
    lasted = (pl.col("closed_ns") - pl.col("established_ns")).fill_null(LASTING) >= LASTING
    worked = recording.table("subflow_ends").filter(pl.col("established_ns").is_not_null() & lasted)
    found: dict[str, dict[str, Any]] = {name: {"subflows": []} for name in names}
    for row in worked.sort("connection", "subflow").iter_rows(named=True):
        pair = tuple(str(row[end]).rsplit(":", 1)[0] for end in ("source", "destination"))
        found[names[row["connection"]]]["subflows"].append(pair)
    for row in recording.table("counters").iter_rows(named=True):
        case, _, side = str(row["host"]).rpartition("-")
        counter = str(row["name"]).removeprefix("MPTcpExt")
        if counter in COUNTED and row["value"]:
            found[case][f"{side} {counter}"] = row["value"]
    return found


def test_the_simulator_opens_the_paths_of_the_kernel(linux: Run) -> None:
    plan = _scenario().plan(None).data
    kernel = linux("pair", change=lambda data: (data.clear(), data.update(plan)))
    told, expected = _found(run(_scenario())), _found(kernel)
    assert set(told) == set(expected) == set(CASES)
    for name in CASES:
        assert told[name] == expected[name], name
