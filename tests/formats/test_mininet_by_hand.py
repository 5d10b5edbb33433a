"""Files that build their network by hand, and habits of files in the field."""

from collections.abc import Callable
from pathlib import Path

import pytest

from polypath.formats import mininet
from polypath.scenario import Scenario

Load = Callable[[str], tuple[Scenario, list[str]]]

#: As MiniEdit writes it.
MINIEDIT = """#!/usr/bin/env python

from mininet.net import Mininet
from mininet.node import Controller, RemoteController, OVSController
from mininet.node import CPULimitedHost, Host, Node
from mininet.node import OVSKernelSwitch, UserSwitch
from mininet.cli import CLI
from mininet.log import setLogLevel, info
from mininet.link import TCLink, Intf
from subprocess import call


def myNetwork():
    net = Mininet(topo=None, build=False, ipBase='10.0.0.0/8')

    info('*** Adding controller\\n')
    c0 = net.addController(name='c0', controller=Controller, protocol='tcp', port=6633)

    info('*** Add switches\\n')
    s1 = net.addSwitch('s1', cls=OVSKernelSwitch)
    r3 = net.addHost('r3', cls=Node, ip='0.0.0.0')
    r3.cmd('sysctl -w net.ipv4.ip_forward=1')

    info('*** Add hosts\\n')
    h2 = net.addHost('h2', cls=Host, ip='10.0.0.2', defaultRoute=None)
    h1 = net.addHost('h1', cls=Host, ip='10.0.0.1', defaultRoute=None)

    info('*** Add links\\n')
    h1s1 = {'bw': 10, 'delay': '5ms', 'loss': 1, 'max_queue_size': 100}
    net.addLink(h1, s1, cls=TCLink, **h1s1)
    net.addLink(h2, r3)
    net.addLink(r3, s1)

    info('*** Starting network\\n')
    net.build()
    info('*** Starting controllers\\n')
    for controller in net.controllers:
        controller.start()

    info('*** Starting switches\\n')
    net.get('s1').start([c0])

    info('*** Post configure switches and hosts\\n')
    r3.cmd('ifconfig r3-eth0 10.0.1.1 netmask 255.255.255.0')
    h2.setIP('10.0.1.2/24', intf='h2-eth0')
    r3.cmd('ip addr add 10.0.0.3/24 dev r3-eth1 && true')

    CLI(net)
    net.stop()
    call(['rm', '-f', '*'])


if __name__ == '__main__':
    setLogLevel('info')
    myNetwork()
"""


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def loaded(text: str) -> tuple[Scenario, list[str]]:
        (tmp_path / "net.py").write_text(text)
        scenario, _, warnings = mininet.load(tmp_path / "net.py")
        return scenario, warnings

    return loaded


def addresses(scenario: Scenario) -> dict[str, str]:
    hosts = [(name, host.interface) for name, host in scenario.host.items()]
    routers = [(name, router.interface) for name, router in scenario.router.items()]
    return {
        f"{name}:{interface}": str(at)
        for name, interfaces in (*hosts, *routers)
        for interface, table in interfaces.items()
        for at in table.address or []
    }


def test_a_file_of_miniedit(load: Load) -> None:
    scenario, warnings = load(MINIEDIT)
    assert (list(scenario.host), list(scenario.router), list(scenario.switch)) == (["h1", "h2"], ["r3"], ["s1"])
    assert addresses(scenario) == {
        "h1:eth0": "10.0.0.1",
        "h2:eth0": "10.0.1.2",
        "r3:eth0": "10.0.1.1",
        "r3:eth1": "10.0.0.3",
    }
    shaped = scenario.link["h1-s1"]
    assert (shaped.rate, shaped.delay, shaped.ends) == (10_000_000, 5_000_000, ["h1:eth0", "s1:eth1"])
    assert not any("switches do not join" in warning for warning in warnings)


BY_HAND = """
from mininet.net import Mininet
from mininet.link import TCLink
def main():
    net = Mininet(link=TCLink)
    c, r, a = (net.addHost(n) for n in ('client', 'router', 'a'))
    net.addLink(r, c, bw=10, delay='10ms')
    net.addLink(r, c, bw=10, delay='50ms')
    net.addLink(r, a, bw=20)
    net.build()
    {more}
    net.start()
    {after}
"""


def test_a_function_that_nobody_calls_and_addresses_in_the_order_of_hosts(load: Load) -> None:
    """mininet/net.py `addHost`: `a` is the third, though not by its name."""
    scenario, _ = load(BY_HAND.format(more="r.cmd('echo 1 > /proc/sys/net/ipv4/ip_forward')", after="net.stop()"))
    assert list(scenario.router) == ["router"]
    assert addresses(scenario) == {"client:eth0": "10.0.0.1", "router:eth0": "10.0.0.2", "a:eth0": "10.0.0.3"}
    assert [link.rate for link in scenario.link.values()] == [10_000_000, 10_000_000, 20_000_000]


@pytest.mark.parametrize("after", ["net.pingAll()", "raise ValueError", "open('mine', 'w')", "import sys; sys.exit(1)"])
def test_what_a_file_does_with_a_running_network_does_not_count(load: Load, after: str) -> None:
    scenario, _ = load(BY_HAND.format(more="pass", after=after))
    assert len(scenario.link) == 3


def test_a_host_without_forwarding_is_named(load: Load) -> None:
    _, warnings = load(BY_HAND.format(more="pass", after="pass"))
    (found,) = [warning for warning in warnings if "forward" in warning]
    assert found.startswith("router: does not forward in the file, so that client and a do not reach each other")


def topology(build: str, before: str = "") -> str:
    return f"from mininet.topo import Topo\n{before}\nclass T(Topo):\n    def build(self):\n        {build}\n"


PAIR = "self.addLink(self.addHost('h1'{one}), self.addHost('h2'{two}), bw=10{more})"


def test_a_multihomed_host_is_no_router(load: Load) -> None:
    """Two hosts that reach each other by two ways, and one that stands at both."""
    build = "; ".join(
        [
            "s, t = self.addSwitch('s1'), self.addSwitch('s2')",
            "c = self.addHost('c')",
            "d = self.addHost('d')",
            "[self.addLink(a, b, bw=10) for a in (c, d) for b in (s, t)]",
        ]
    )
    _, warnings = load(topology(build))
    assert not any("forward" in warning for warning in warnings)


def test_an_address_without_a_prefix_is_in_a_network_of_8_bits(load: Load) -> None:
    """mininet/node.py `Node.setIP`: otherwise each would be a subnet of its own."""
    scenario, warnings = load(
        topology(
            "s = self.addSwitch('s1'); self.addLink(self.addHost('h1', ip='10.0.0.1'), s, bw=1); "
            "self.addLink(self.addHost('h2', ip='10.9.0.2'), s, bw=1)"
        )
    )
    assert addresses(scenario) == {"h1:eth0": "10.0.0.1", "h2:eth0": "10.9.0.2"}
    assert warnings == []


def test_subnets_at_one_switch_are_named_and_others_are_not(load: Load) -> None:
    apart = ", ip='10.0.{n}.1/24'"
    line = PAIR.format(one=apart.format(n=1), two=apart.format(n=2), more="")
    _, warnings = load(topology(line))
    (found,) = warnings
    assert found.startswith("10.0.1.0/24, 10.0.2.0/24: Mininet's switches do not join these subnets; ")
    routed = (
        "r = self.addHost('r', ip=None); "
        "self.addLink(self.addHost('h1', ip='10.0.1.1/24'), r, bw=1, params2={'ip': '10.0.1.9/24'}); "
        "self.addLink(self.addHost('h2', ip='10.0.2.1/24'), r, bw=1, params2={'ip': '10.0.2.9/24'})"
    )
    _, warnings = load(topology(routed))
    assert not any("switches" in warning for warning in warnings)


def test_a_fraction_of_a_packet_is_dropped(load: Load) -> None:
    scenario, warnings = load(topology(PAIR.format(one="", two="", more=", max_queue_size=88.2")))
    (link,) = scenario.link.values()
    assert link.queue is not None
    assert link.queue.planned()["packets"] == 88
    assert warnings == ["h1-h2: max_queue_size=88.2: Mininet drops the fraction, and so does the import"]


@pytest.mark.parametrize(
    "before",
    [
        "import logging; logging.basicConfig(filename='./mine.log', level=logging.INFO); logging.info('x')",
        "import argparse; p = argparse.ArgumentParser(); p.add_argument('--k', default=4); p.parse_args()",
        "import sizes",
    ],
)
def test_habits_at_import(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sizes.py").write_text("RATE = 10\n")
    scenario, _ = load(topology(PAIR.format(one="", two="", more=""), before))
    assert len(scenario.host) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.py", "sizes.py"]
