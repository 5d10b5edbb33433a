"""Mininet's topologies: the graph that they give, and how each thing that cannot be is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from polypath.formats import mininet
from polypath.formats.mininet import process
from polypath.scenario import Scenario, ScenarioError

CUSTOM = '''
"""Two switches with parallel links."""
from functools import partial

from mininet.cli import CLI
from mininet.link import TCLink
from mininet.log import info, setLogLevel
from mininet.net import Mininet
from mininet.node import CPULimitedHost, OVSKernelSwitch
from mininet.topo import Topo
from mininet.util import custom, irange


class Parallel(Topo):
    def build(self, n=2, **_):
        info("building")
        left = self.addSwitch("s1", cls=OVSKernelSwitch, dpid="1")
        right = self.addSwitch("s2")
        h2 = self.addHost("h2", ip="10.1.0.7/8", mac="00:00:00:00:00:02")
        h10 = self.addHost("h10", cls=custom(CPULimitedHost, cpu=0.5))
        self.addLink(h2, left, cls=TCLink, bw=100, delay="1ms", max_queue_size=200, use_htb=True)
        self.addLink(h10, right, bw=50)
        for number in irange(1, n):
            self.addLink(left, right, cls=TCLink, bw=10 * number, delay="%dms" % (5 * number), loss=0.5, jitter="3ms")


topos = {"parallel": lambda **given: Parallel(**given)}


def run():
    net = Mininet(topo=Parallel())
    CLI(net)


if __name__ == "__main__":
    run()
'''
TWO = """
from mininet.topo import Topo
from mininet.link import TCLink
class Two(Topo):
    def build(self):
        a, b = self.addHost("a"), self.addHost("b")
        self.addLink(a, b, {options})
"""


def imported(file: Path | None, topo: str | None = None, **given: Any) -> tuple[Scenario, str, list[str]]:
    return mininet.load(file, None if topo is None else mininet.Asked.parse(topo), **given)


def counts(scenario: Scenario) -> tuple[int, int, int]:
    return len(scenario.host), len(scenario.switch), len(scenario.link)


def neighbours(scenario: Scenario) -> set[frozenset[str]]:
    return {frozenset(end.partition(":")[0] for end in link.ends) for link in scenario.link.values()}


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., tuple[Scenario, str, list[str]]]:
    def written(text: str, topo: str | None = None, **given: Any) -> tuple[Scenario, str, list[str]]:
        (tmp_path / "topo.py").write_text(text)
        return imported(tmp_path / "topo.py", topo, **given)

    return written


@pytest.fixture
def complaint(load: Any, tmp_path: Path) -> Callable[..., str]:
    def message(text: str, topo: str | None = None, **given: Any) -> str:
        with pytest.raises(ScenarioError) as caught:
            load(text, topo, **given)
        assert "\n" not in str(caught.value)
        return str(caught.value).replace(f"{tmp_path}/", "")

    return message


def directions(load: Any, options: str) -> tuple[Mapping[str, Any], Mapping[str, Any], list[str]]:
    scenario, _, warnings = load(TWO.format(options=options))
    (link,) = scenario.plan().data["links"]
    return link["forward"], link["backward"], warnings


@pytest.mark.parametrize(
    ("topo", "expected"),
    [
        ("minimal", (2, 1, 2)),
        ("single,3", (3, 1, 3)),
        ("reversed,3", (3, 1, 3)),
        ("linear,4", (4, 4, 7)),
        ("linear,3,2", (6, 3, 8)),
        ("linear,k=3,n=2", (6, 3, 8)),
        ("tree", (2, 1, 2)),
        ("tree,depth=2,fanout=3", (9, 4, 12)),
        ("tree,3", (8, 7, 14)),
        ("torus,3,4", (12, 12, 36)),
    ],
)
def test_the_topologies_of_mn(topo: str, expected: tuple[int, int, int]) -> None:
    scenario, _, _ = imported(None, topo)
    assert counts(scenario) == expected
    assert scenario.plan().data["links"]
    hosts = [interface.address for host in scenario.host.values() for interface in host.interface.values()]
    assert [str(address[0]) for address in hosts if address] == [f"10.0.0.{n + 1}" for n in range(expected[0])]


def test_who_is_linked_to_whom() -> None:
    linear = {frozenset(pair) for pair in (("h1", "s1"), ("h2", "s2"), ("h3", "s3"), ("s1", "s2"), ("s2", "s3"))}
    assert neighbours(imported(None, "linear,3")[0]) == linear
    tree = {frozenset((f"s{(n + 3) // 2}", f"h{n}")) for n in range(1, 5)} | {
        frozenset(("s1", f"s{n}")) for n in (2, 3)
    }
    assert neighbours(imported(None, "tree,2")[0]) == tree
    ends = {name: link.ends for name, link in imported(None, "reversed,3")[0].link.items()}
    assert ends["h1-s1"] == ["h1:eth0", "s1:eth3"]
    assert ends["h3-s1"] == ["h3:eth0", "s1:eth1"]


def test_a_custom_file_with_parallel_links(load: Any) -> None:
    scenario, comments, warnings = load(CUSTOM, "parallel,n=3")
    assert counts(scenario) == (2, 2, 5)
    data = scenario.plan().data
    links = {link["name"]: link["forward"] for link in data["links"]}
    assert list(links) == ["h2-s1", "h10-s2", "s1-s2", "s1-s2-2", "s1-s2-3"]
    access, core = links["h2-s1"], links["s1-s2-3"]
    assert (access["rate_bps"], access["delay_ns"]) == (100_000_000, 1_000_000)
    assert access["queue"] == {"kind": "drop-tail", "packets": 200, "bytes": None}
    assert access["queue_at"] == "host-netem"
    assert links["h10-s2"]["queue_at"] == "host-tbf"
    assert (core["rate_bps"], core["delay_ns"]) == (30_000_000, 15_000_000)
    assert core["queue"]["packets"] == 1000
    assert core["loss"] == {"kind": "random", "probability": 0.005}
    assert core["jitter_ns"] == round(3e6 / 3**0.5)
    addresses = [node["interfaces"][0]["addresses"] for node in data["nodes"][:2]]
    assert addresses == [["10.1.0.7"], ["10.0.0.2"]], "the second host by the natural order of names"
    assert 'client = "h2"' in comments
    assert "h2: 'mac' has no effect: there are no Ethernet addresses" in warnings
    assert "h10: 'cpu' has no effect: hosts take no processor time" in warnings
    assert any(warning.startswith("the switches have loops") for warning in warnings)


def test_the_only_topology_needs_no_name(load: Any) -> None:
    assert counts(load(CUSTOM)[0]) == (2, 2, 4)
    assert counts(load(CUSTOM.replace("topos =", "others ="))[0]) == (2, 2, 4)
    assert counts(load(CUSTOM, "Parallel,1")[0]) == (2, 2, 3)
    assert counts(load(CUSTOM, "linear,3")[0]) == (3, 3, 5)


def test_library_classes_can_be_subclassed_and_built_in_init(load: Any) -> None:
    text = """
from mininet.topo import SingleSwitchTopo, LinearTopo, SingleSwitchReversedTopo, Topo
from mininet.topolib import TreeTopo
class Mine(TreeTopo):
    def build(self, depth=1):
        TreeTopo.build(self, depth=depth, fanout=2)
        self.addLink(self.addHost("extra"), "s1", port2=9)
class Old(Topo):
    def __init__(self, n=2, **opts):
        Topo.__init__(self, **opts)
        for host in range(n):
            self.addNode("h%d" % host)
        self.addNode("sw", isSwitch=True)
        for host in self.hosts():
            self.addLink(host, "sw")
topos = {"mine": Mine, "old": Old, "lib": lambda: LinearTopo(k=2, lopts={"bw": 3})}
"""
    mine = load(text, "mine,2")[0]
    assert counts(mine) == (5, 3, 7)
    assert mine.link["extra-s1"].ends == ["extra:eth0", "s1:eth9"]
    assert counts(load(text, "old,n=3")[0]) == (3, 1, 3)
    assert {link.rate for link in load(text, "lib")[0].link.values()} == {3_000_000}


def test_a_router_of_the_files_own(load: Any) -> None:
    text = """
from mininet.topo import Topo
from mininet.node import Node
class LinuxRouter(Node):
    def config(self, **params):
        super().config(**params)
        self.cmd("sysctl net.ipv4.ip_forward=1")
class Routed(Topo):
    def build(self):
        r = self.addNode("r0", cls=LinuxRouter, ip="192.168.1.1/24")
        for n in (1, 2):
            s = self.addSwitch("s%d" % n)
            self.addLink(s, r, intfName2="r0-eth%d" % n, params2={"ip": "192.168.%d.1/24" % n})
            self.addLink(self.addHost("h%d" % n, ip="192.168.%d.100/24" % n), s)
"""
    scenario, _, warnings = load(text)
    assert {name: str(one.address[0]) for name, one in scenario.router["r0"].interface.items() if one.address} == {
        "eth1": "192.168.1.1",
        "eth2": "192.168.2.1",
    }
    assert not any("subnets" in warning for warning in warnings)
    assert scenario.plan().data["nodes"][2]["kind"] == "router"


def test_the_options_of_tc(load: Any) -> None:
    forward, backward, warnings = directions(load, "cls=TCLink, bw=8, delay='2.5ms', loss=2, max_queue_size=30")
    assert forward == backward
    assert (forward["rate_bps"], forward["delay_ns"], forward["queue"]["packets"]) == (8_000_000, 2_500_000, 30)
    assert warnings == []
    forward, _, _ = directions(load, "bw=8, use_tbf=True, latency_ms=10")
    assert (forward["burst_bytes"], forward["queue"]["bytes"]) == (15_000, 15_000 + 10_000)
    assert directions(load, "bw=8, use_tbf=True")[0]["queue"]["bytes"] == 30_000
    red = directions(load, "bw=8, enable_ecn=True")[0]["queue"]
    assert (red["kind"], red["ecn"], red["min"], red["max"]) == ("red", True, 20, 23)
    assert directions(load, "bw=8, enable_red=True")[0]["queue"]["ecn"] is False


def test_the_two_directions_can_differ(load: Any) -> None:
    forward, backward, _ = directions(load, "params1={'bw': 5}, params2={'bw': 7, 'delay': '1ms'}, loss=1")
    assert (forward["rate_bps"], forward["delay_ns"]) == (5_000_000, 0)
    assert (backward["rate_bps"], backward["delay_ns"]) == (7_000_000, 1_000_000)
    assert forward["loss"] == backward["loss"]


def test_what_differs_from_mininet_is_said(load: Any) -> None:
    assert directions(load, "bw=5, delay=3")[2] == ["a-b: delay=3 has no unit: tc takes it for microseconds"]
    assert directions(load, "bw=2000")[2] == ["a-b: Mininet itself ignores rates above 1000 Mbit/s; here they count"]
    (told,) = directions(load, "bw=100, delay='10ms', max_queue_size=10")[2]
    assert told == "a-b: netem's limit of 10 packets counts those on their way, too; here it is the queue's"
    forward, _, (told,) = directions(load, "")
    assert forward["rate_bps"] == 10_000_000_000
    assert told.startswith("a-b: no 'bw': as fast as the processor in Mininet, 10 Gbps here")


def test_links_without_a_class_are_those_of_the_command(load: Any) -> None:
    own = TWO.format(options="cls=TCLink, bw=8") + "        self.addLink(a, b)\n"
    links = load(own, links=mininet.link("tc,bw=3,delay=4ms"))[0].link
    assert [(link.rate, link.delay) for link in links.values()] == [(8_000_000, None), (3_000_000, 4_000_000)]


def test_plain_links_have_no_shape(load: Any) -> None:
    text = TWO.replace("import TCLink", "import Link, TCLink").format(options="cls=Link, bw=8, delay='1ms'")
    scenario, _, warnings = load(text)
    assert scenario.link["a-b"].delay is None
    assert "a-b: plain links of Mininet have no rate, delay, loss or queue" in warnings


def test_hosts_with_several_interfaces_and_subnets(load: Any) -> None:
    text = """
from mininet.topo import Topo
class Multi(Topo):
    def build(self):
        a, b = self.addHost("a", ip="10.0.1.1/24"), self.addHost("b", ip="10.0.2.1/24")
        self.addLink(a, b, bw=1)
        self.addLink(a, b, bw=1, params1={"ip": "10.0.1.2/24"})
"""
    scenario, _, warnings = load(text)
    interfaces = {name: one.address for name, one in scenario.host["a"].interface.items()}
    assert [str(address[0]) for address in interfaces.values() if address] == ["10.0.1.1", "10.0.1.2"]
    assert "b:eth1: has no address in Mininet; here it gets one" in warnings
    assert any(warning.startswith("10.0.1.0/24, 10.0.2.0/24: Mininet's switches do not join") for warning in warnings)
    assert len(scenario.plan().data["nodes"][1]["interfaces"][1]["addresses"]) == 1


def test_applications_are_added_on_demand() -> None:
    scenario, comments, _ = imported(None, "linear,3", wanted=mininet.Wanted(("h1", "h3"), True))
    assert comments == ""
    found = scenario.plan().data["applications"]
    assert [one["name"] for one in found[-1:]] == ["iperf"]
    assert sum(one["transport"] == "icmp" for one in found) == 6


def test_the_comments_are_an_application() -> None:
    scenario, comments, _ = imported(None, "linear,3")
    text = "\n".join(line.removeprefix("# ") for line in comments.splitlines() if not line.startswith("# What"))
    (application,) = Scenario.parse(scenario.to_toml() + text.replace("#", ""), "x").plan().data["applications"]
    assert application["work"]["duration_ns"] == 5_000_000_000
    assert Scenario.parse(scenario.to_toml() + comments, "x") == scenario


TOPO = "from mininet.topo import Topo\n"
NODES = (
    TOPO + "class T(Topo):\n    def build(self):\n        self.addHost('h1')\n        self.addSwitch('s1')\n        "
)
HOSTILE = {
    "a syntax error": ("def f(:\n", "topo.py:1: invalid syntax"),
    "Python 2": (
        "x = 1\nprint 'x'\n",
        "topo.py:2: this is Python 2: Missing parentheses in call to 'print'. Did you mean print(...)?; Mininet 2.3",
    ),
    "an operator of Python 2": ("if 1 <> 2: pass\n", "topo.py:1: this is Python 2: invalid syntax"),
    "an exception of Python 2": ("raise ValueError, 'x'\n", "topo.py:1: this is Python 2: invalid syntax"),
    "a function of Python 2": ("xrange(3)\n", "topo.py:1: this is Python 2: Python 3 has no 'xrange'"),
    "a module of Python 2": (
        "import urllib2\n",
        "topo.py:1: this is Python 2: Python 3 has no module 'urllib2'",
    ),
    "a method of Python 2": ("{}.iteritems()\n", "topo.py:1: this is Python 2: tables of Python 3 have no 'iteritems'"),
    "arguments": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('k')\np.parse_args()\n",
        "topo.py:4: it needs arguments on its command line, and an import gives none",
    ),
    "nothing in it": ("x = 1\n", "topo.py: there are no 'topos' and no class of Topo in it: nothing to import"),
    "topos of another kind": (
        "topos = [1]\n",
        "topo.py: 'topos' is no table of topologies by name, {'mytopo': MyTopo}",
    ),
    "no Topo comes out": ("topos = {'a': lambda: 3}\n", "topo.py: topology 'a' is of type int, which is no Topo"),
    "a command": ("import os\nos.system('true')\n", "topo.py:2: os.system is not allowed: "),
    "a command, and the refusal caught": (
        TOPO + "import os\ntry:\n    os.system('true')\nexcept BaseException:\n    pass\ntopos = {'a': Topo}\n",
        "topo.py:4: os.system is not allowed: ",
    ),
    "a program": ("import subprocess\nsubprocess.run(['true'])\n", "topo.py:2: subprocess.Popen is not allowed: "),
    "a process": ("import os\nos.fork()\n", "topo.py:2: os.fork is not allowed: "),
    "a file": ("open('mine', 'w')\n", "topo.py:1: writing to 'mine' is not allowed: "),
    "a pipe": ("import os\nos.mkfifo('mine')\n", "topo.py:2: os.mkfifo is not allowed: "),
    "a spawned program": (
        "import os\nos.posix_spawn('/bin/true', ['true'], {})\n",
        "topo.py:2: os.posix_spawn is not allowed: ",
    ),
    "a copy": ("import shutil\nshutil.copyfile('/etc/hosts', 'mine')\n", "topo.py:2: shutil.copyfile is not allowed: "),
    "a database": ("import sqlite3\nsqlite3.connect('mine')\n", "topo.py:2: sqlite3.connect is not allowed: "),
    "a name looked up": (
        "import socket\nsocket.getaddrinfo('host', 1)\n",
        "topo.py:2: socket.getaddrinfo is not allowed: ",
    ),
    "an event that nobody knows": (
        "import sys\nsys.audit('package.writes')\n",
        "topo.py:2: package.writes is not allowed: ",
    ),
    "a file removed": ("import os\nos.remove(__file__)\n", "topo.py:2: os.remove is not allowed: "),
    "a socket": ("import socket\nsocket.socket()\n", "topo.py:2: socket.__new__ is not allowed: "),
    "memory of others": ("import ctypes\nctypes.string_at(0)\n", "topo.py:2: ctypes.string_at is not allowed: "),
    "an end": ("import sys\nsys.exit(0)\n", "topo.py:2: it ends the process (sys.exit)"),
    "a hard end": ("import os\nos._exit(0)\n", "topo.py: the topology ended its process without a result"),
    "a crash": ("import faulthandler\nfaulthandler._sigsegv()\n", "topo.py: the process that ran the topology died"),
    "endless recursion": ("def f():\n    f()\nf()\n", "topo.py:2: RecursionError: it calls itself without end"),
    "an exception": (TOPO + "x = {}['y']\n", "topo.py:2: KeyError: 'y'"),
    "a network of nothing": ("from mininet.net import Mininet\nMininet()\n", "topo.py: topology 'topo' has no host"),
    "a network beside a topology": (
        TOPO + "from mininet.net import Mininet\nclass T(Topo): pass\nMininet(topo=T())\n",
        "topo.py:4: Mininet(..) is not run: ",
    ),
    "a network that is never built": (
        "from mininet.net import Mininet\ndef run(k):\n    Mininet()\n",
        "topo.py: it builds no network: ",
    ),
    "a file of a network": (
        "from mininet.net import Mininet\nopen('mine', 'w')\nMininet().addHost('h')\n",
        "topo.py:2: writing to 'mine' is not allowed: ",
    ),
    "a test before the start": (
        "from mininet.net import Mininet\nnet = Mininet()\nnet.addHost('h')\nnet.pingAll()\n",
        "topo.py:4: net.pingAll is not run: ",
    ),
    "a node that nobody added": (
        "from mininet.net import Mininet\nnet = Mininet()\nnet.addLink(net.addHost('h'), 's')\n",
        "topo.py:3: addLink: no node is named 's'",
    ),
    "a missing package": ("import nowhere\n", "topo.py:1: ModuleNotFoundError: No module named 'nowhere'"),
    "too many nodes": (
        TOPO + "class T(Topo):\n    def build(self):\n        for n in range(200000): self.addHost('h%d' % n)\n",
        "topo.py:4: the topology has more than 100,000 nodes and links",
    ),
    "no host": (
        TOPO + "class T(Topo):\n    def build(self): self.addSwitch('s1')\n",
        "topo.py: topology 'T' has no host",
    ),
    "an unknown node": (
        NODES + "self.addLink('h1', 's2')\n",
        "topo.py:6: addLink: no node is named 's2'; there is h1, s1",
    ),
    "an unknown option": (NODES + "self.addLink('h1', 's1', los=1)\n", "no option 'los'; did you mean 'loss'?"),
    "a link to itself": (NODES + "self.addLink('s1', 's1')\n", "topo.py:6: s1-s1: both ends are the same node"),
    "a port twice": (
        NODES + "self.addLink('h1', 's1', port2=1); self.addLink('h1', 's1', port2=1)\n",
        "topo.py:6: addLink: port 1 of 's1' (eth1) has a link already",
    ),
    "a bad rate": (NODES + "self.addLink('h1', 's1', bw='10')\n", "topo.py:6: h1-s1: bw='10': expected a number"),
    "a bad delay": (NODES + "self.addLink('h1', 's1', delay='5 parsec')\n", "expected a time such as '5ms'"),
    "a bad loss": (NODES + "self.addLink('h1', 's1', loss=101)\n", "loss=101: expected a number from 0 to 100"),
    "a bad queue": (NODES + "self.addLink('h1', 's1', max_queue_size=0)\n", "expected a number of packets"),
    "no rate for tbf": (NODES + "self.addLink('h1', 's1', use_tbf=True)\n", "is about a rate, and there is no 'bw'"),
    "a bad address": (NODES + "self.addLink(self.addHost('x', ip='10.0.0'), 's1')\n", "topo.py:6: x: ip='10.0.0': "),
    "an address twice": (
        NODES + "[self.addLink(self.addHost(n, ip='10.0.0.9'), 's1') for n in 'xy']\n",
        "topo.py:6: y: the address 10.0.0.9 belongs to x:eth0 already",
    ),
    "a bad name": (NODES + "self.addHost('h.1')\n", "topo.py:6: h.1: a name in a scenario is of letters, digits"),
    "a name that is a number": (NODES + "self.addHost(3)\n", "topo.py:6: the name of a node is a text, not 3"),
    "a gateway": (
        "from mininet.nodelib import NAT\n" + NODES + "self.addNode('n', cls=NAT)\n",
        "topo.py:7: n: class NAT is a gateway to the world outside",
    ),
    "a host of its own": (
        "from mininet.node import Host\nclass My(Host):\n    def config(self): pass\n"
        + NODES
        + "self.addHost('x', cls=My)\n",
        "topo.py:9: x: class My is the file's own and defines 'config'",
    ),
    "a switch of its own": (
        "from mininet.node import OVSSwitch\nclass My(OVSSwitch):\n    def start(self, c): pass\n"
        + NODES
        + "self.addSwitch('x', cls=My)\n",
        "topo.py:9: x: class My is the file's own and defines 'start'",
    ),
    "a controller in the topology": (
        NODES + "self.addController('c7')\n",
        "topo.py:6: controller 'c7': a topology has none",
    ),
    "a remote controller": (
        CUSTOM.replace("topo=Parallel()", "topo=Parallel(), controller=RemoteController"),
        "topo.py:31: controller 'c0' is of class RemoteController, which cannot take part in a simulation",
    ),
    "a controller of its own": (
        "controllers = {'pox': POX}\n",
        "topo.py:1: controller 'pox' is of class POX, which cannot take part in a simulation",
    ),
    "several controllers": (
        CUSTOM.replace("CLI(net)", "net.addController('c1'); x = 2\n    net.addController('c2')"),
        "topo.py:33: several controllers (c1, c2): a scenario has one; --no-controllers leaves them out",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_cannot_be_is_one_line(complaint: Any, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text, expected = HOSTILE[case]
    told = complaint(text)
    assert told.startswith("topo.py:")
    assert expected in told
    assert [path.name for path in tmp_path.iterdir()] == ["topo.py"]


def test_controllers_can_be_left_out(load: Any) -> None:
    text, _ = HOSTILE["a remote controller"]
    scenario, _, warnings = load(text, leave_controllers_out=True)
    assert counts(scenario) == (2, 2, 4)
    assert "left out: c0 (RemoteController)" in warnings


def test_an_endless_loop_ends(complaint: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "CPU_S", 1)
    assert complaint("while True: pass\n") == "topo.py: the topology takes more than 1 s of processor time"


def test_sleeping_ends(complaint: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "WALL_S", 1.0)
    assert complaint("import time\ntime.sleep(1000)\n") == "topo.py: the topology takes longer than 1 s"


def test_memory_is_bounded(complaint: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MEMORY_BYTES", 300_000_000)
    text = "x = []\nwhile True: x.append(bytearray(10**7))\n"
    assert complaint(text) == "topo.py: it takes more memory than an import may"


@pytest.mark.parametrize(
    ("topo", "message"),
    [
        ("linea,3", "--topo linea,3: no topology is named 'linea'; did you mean 'linear'?"),
        ("", "--topo : the name is missing, as in 'linear,4'"),
        ("linear,", "--topo linear,: '' is no argument such as '4' or 'depth=2'"),
        ("tree,depth=2,3", "--topo tree,depth=2,3: '3' has no name, but an argument before it has"),
        ("tree,depth=2,depth=3", "--topo tree,depth=2,depth=3: 'depth' is given twice"),
        ("torus,2,2", "--topo torus,2,2: a torus has at least 3 x 3 switches, not 2 x 2"),
        ("tree,depth=30", "--topo tree,depth=30: the topology has more than 100,000 nodes and links"),
    ],
)
def test_wrong_names_and_parameters(topo: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        imported(None, topo)
    assert str(caught.value) == message


def test_wrong_parameters_of_a_class(complaint: Any) -> None:
    told = complaint(CUSTOM, "parallel,3")
    assert told.startswith("--topo parallel,3: topology 'parallel': TypeError: ")
    assert complaint(CUSTOM, "paralel").startswith("--topo paralel: no topology is named 'paralel'; did you mean")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tcp,bw=3", "--link tcp,bw=3: no kind of link is named 'tcp'; did you mean 'tc'?"),
        ("tc,3", "--link tc,3: '3' is no option such as 'bw=10'"),
        ("ovs,bw=3", "--link ovs,bw=3: links of kind 'ovs' have no options; those of 'tc' have"),
    ],
)
def test_wrong_links(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        mininet.link(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        (("h1", "h9"), "--iperf: no host is named 'h9'; there is h1, h2, h3"),
        (("h1", "h1"), "--iperf: client and server are the same host"),
    ],
)
def test_wrong_hosts(hosts: tuple[str, str], message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        imported(None, "single,3", wanted=mininet.Wanted(hosts))
    assert str(caught.value).startswith(message)
