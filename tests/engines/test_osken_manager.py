"""The example applications under os-ken's own commands, in real time over TCP, as they are.

The switches are the simulator's: what they send on their control channels goes over sockets to the command, which knows
nothing of it.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from polypath import Scenario, _core

from ..processes import LIMIT_S, wait

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
#: os-ken 3.1.1, the last that has the command: `make target/osken/.ready`.
MANAGER = ROOT / "target" / "osken" / "bin" / "osken-manager"
#: What took its place in os-ken 4, of the release that is installed.
RUN_APPS = """
import sys
import time
from os_ken.lib import hub
hub.patch()
from os_ken import cfg
from os_ken.base.app_manager import AppManager
from os_ken.controller import controller
cfg.CONF(sys.argv[1:-1], project="os_ken", default_config_files=[])
AppManager.run_apps([sys.argv[-1]])
"""
MS = 1_000_000
SECOND = 1_000 * MS
SWITCHES = 4
#: When the hosts begin, so that the controller has time to find the switches.
START_S = 20
#: OpenFlow 1.3.5 section A.1, ofp_type.
ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY, PACKET_IN, PACKET_OUT, FLOW_MOD = 2, 3, 5, 6, 10, 13, 14
LLDP = b"\x88\xcc"


def scenario(app: str) -> Scenario:
    """Two hosts at the ends of a line of switches."""
    nodes = ["a", *(f"s{number}" for number in range(1, SWITCHES + 1)), "b"]
    links = "".join(
        f'[link.l{number}]\nends = ["{here}", "{there}"]\nrate = "10 Mbps"\ndelay = "1 ms"\n'
        for number, (here, there) in enumerate(pairwise(nodes))
    )
    switches = "".join(f"[switch.s{number}]\n" for number in range(1, SWITCHES + 1))
    text = f"""
duration = "10000 s"
[controller]
app = "{app}"
[host.a]
[host.b]
{switches}{links}
[[application]]
kind = "bulk"
transport = "tcp"
client = "a"
server = "b"
size = "50 kB"
start = "{START_S} s"
"""
    return Scenario.parse(text, str(EXAMPLES / "x.toml"), folder=EXAMPLES)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command(kind: str, app: str, port: int) -> list[str]:
    options = ["--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", str(port)]
    if kind == "run_apps":
        return [sys.executable, "-W", "ignore", "-c", RUN_APPS, *options, Path(app).stem]
    if not MANAGER.exists():
        pytest.skip("no osken-manager: make target/osken/.ready")
    return [str(MANAGER), *options, str(EXAMPLES / app)]


@contextmanager
def managed(kind: str, app: str) -> Iterator[tuple[int, Path]]:
    """A controller that listens, and its port."""
    port = free_port()
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES), "OSKEN_HUB_TYPE": "eventlet", "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen(
        command(kind, app, port), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:

        def listens() -> bool:
            assert process.poll() is None, process.stdout and process.stdout.read()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        wait(listens)
        yield port, EXAMPLES
        assert process.poll() is None, "it still serves"
    finally:
        process.terminate()
        said = process.communicate(timeout=60)[0]
    assert "Traceback" not in said, said


def probed(message: bytes) -> int | None:
    """The switch that an OFPT_PACKET_IN with ripl.py's frame of LLDP names, or None if it has another.

    The layout is that of OpenFlow 1.3.5 section 7.4.1, and of IEEE 802.1AB section 8.5 for the chassis ID.
    """
    match = 24
    frame = message[match + (int.from_bytes(message[match + 2 : match + 4]) + 7) // 8 * 8 + 2 :]
    if frame[12:14] != LLDP:
        return None
    return int(frame[17 : 16 + (int.from_bytes(frame[14:16]) & 0x1FF)])


class Switches:
    """The switches of a run, each with a connection to a controller in real time.

    What the controller sends to the `late` switch is read when `LATE` rounds are over.
    """

    LATE = 20
    #: Rounds of 20 ms that a packet's answer is waited for. Some packets have none.
    PATIENCE = 250

    def __init__(self, app: str, port: int, late: int | None = None) -> None:
        self.late = late
        self.rounds = 0
        self.heard: set[frozenset[int]] = set()
        self.simulation = _core.Simulation(scenario(app).plan().json())
        self.port = port
        self.sockets: dict[int, socket.socket] = {}
        self.heads: dict[int, bytes] = {}
        self.up: Counter[tuple[int, int]] = Counter()
        self.down: Counter[tuple[int, int]] = Counter()
        self.over = False
        self.patience = 0

    def until(self, condition: Callable[[], bool], patient: bool = False) -> None:
        """Lets simulated time go on, a millisecond at a time, and carries what is said, until a condition is met."""
        end = time.monotonic() + LIMIT_S
        while not condition():
            assert time.monotonic() < end, "in vain"
            assert not self.over, "the run ended before"
            self.over = self.simulation.step(self.simulation.now_ns + MS)
            self.exchange(patient)

    def exchange(self, patient: bool) -> None:
        said = self.simulation.controller_receives()
        for datapath, message in said:
            if datapath not in self.sockets:
                self.sockets[datapath] = socket.create_connection(("127.0.0.1", self.port))
            self.up[datapath, message[1]] += 1
            if message[1] == PACKET_IN:
                far = probed(message)
                if far is None:
                    self.patience = self.PATIENCE
                else:
                    self.heard.add(frozenset((datapath, far)))
            self.sockets[datapath].sendall(message)
        self.rounds += 1
        read = [each for each in self.sockets if each != self.late or self.rounds > self.LATE]
        datapaths = {self.sockets[each]: each for each in read}
        # Until a packet is answered, a millisecond of the simulation takes 20 of the clock on the wall.
        waits = patient or self.patience > 0
        self.patience -= 1
        for each in select.select(list(datapaths), [], [], 0.02 if waits else 0)[0]:
            data = each.recv(1 << 16)
            assert data, "the controller hung up"
            self.patience = 0
            self.count(datapaths[each], data)
            self.simulation.controller_sends(datapaths[each], data)

    def settle(self) -> None:
        """Lets the controller read all that was said: it answers an echo after what came before (section 7.5.2)."""
        for each in self.sockets.values():
            each.sendall(bytes([4, ECHO_REQUEST, 0, 8, 0, 0, 0, 0]))
        self.until(lambda: all(self.down[each, ECHO_REPLY] for each in self.sockets), patient=True)

    @staticmethod
    def total(counts: Counter[tuple[int, int]], kind: int) -> int:
        return sum(count for (_, each), count in counts.items() if each == kind)

    def count(self, datapath: int, data: bytes) -> None:
        """Counts whole messages by their types; the rest waits for more."""
        data = self.heads.pop(datapath, b"") + data
        while len(data) >= 8 and len(data) >= (length := int.from_bytes(data[2:4])):
            self.down[datapath, data[1]] += 1
            data = data[length:]
        self.heads[datapath] = data

    def close(self) -> None:
        for each in self.sockets.values():
            each.close()


APPS = ["learning_switch.py", "ripl_random.py", "ripl_hashed.py", "ripl_spanning_tree.py"]


@pytest.mark.parametrize(
    ("kind", "app", "late"),
    [
        *((kind, app, None) for kind in ("osken-manager", "run_apps") for app in APPS),
        *(("run_apps", "ripl_random.py", late) for late in (1, SWITCHES)),
    ],
)
def test_an_example_runs_under_os_kens_command_as_it_does_in_a_simulation(
    kind: str, app: str, late: int | None
) -> None:
    with managed(kind, app) as (port, _):
        switches = Switches(app, port, late)
        try:
            every = range(1, SWITCHES + 1)
            switches.until(lambda: all(switches.down[each, FLOW_MOD] for each in every), patient=True)
            assert all(switches.down[each, FEATURES_REQUEST] == 1 for each in every)
            assert all(switches.up[each, FEATURES_REPLY] == 1 for each in every)
            if app != "learning_switch.py":
                # One end of each link hears of the other by LLDP. The other may not have been told to say so yet.
                links = {frozenset(pair) for pair in pairwise(every)}
                switches.until(lambda: switches.heard == links, patient=True)
                switches.settle()
            assert switches.simulation.now_ns < START_S * SECOND
            switches.until(lambda: switches.over)
            assert all(switches.up[each, PACKET_IN] for each in every)
            assert switches.total(switches.down, PACKET_OUT) >= 2
            assert all(switches.down[each, FLOW_MOD] >= 3 for each in every), "an entry for each direction"
            ends = pl.DataFrame(switches.simulation.recording().table("connection_ends"))
            assert ends["state"].to_list() == ["finished"]
            assert ends["server_received_bytes"].to_list() == [50_000]
        finally:
            switches.close()
