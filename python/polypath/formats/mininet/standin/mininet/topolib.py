"""mininet.topolib: trees and tori."""

from __future__ import annotations

from ._place import Refused
from ._placeholder import placeholder as __getattr__  # noqa: F401
from .topo import Topo


class TreeTopo(Topo):
    """A tree of switches of the given depth, with hosts as its leaves."""

    def build(self, depth: int = 1, fanout: int = 2) -> None:
        self.hostNum = 1
        self.switchNum = 1
        self.addTree(depth, fanout)

    def addTree(self, depth: int, fanout: int) -> str:
        """Adds a subtree, each switch before its children, and gives its root."""
        if depth <= 0:
            self.hostNum += 1
            return self.addHost(f"h{self.hostNum - 1}")
        root = self.addSwitch(f"s{self.switchNum}")
        self.switchNum += 1
        for _ in range(fanout):
            self.addLink(root, self.addTree(depth - 1, fanout))
        return root


class TorusTopo(Topo):
    """A torus of x times y switches, each with n hosts."""

    def build(self, x: int, y: int, n: int = 1) -> None:
        if x < 3 or y < 3:
            raise Refused(f"a torus has at least 3 x 3 switches, not {x} x {y}")
        places = [(row, column) for row in range(x) for column in range(y)]
        switches = {}
        for row, column in places:
            place = f"{row + 1}x{column + 1}"
            switch = self.addSwitch(f"s{place}", dpid=f"{(row + 1) * 256 + column + 1:016x}")
            switches[row, column] = switch
            for number in range(n):
                self.addLink(self.addHost(f"h{place}" if n == 1 else f"h{place}x{number + 1}"), switch)
        for row, column in places:
            self.addLink(switches[row, column], switches[row, (column + 1) % y])
            self.addLink(switches[row, column], switches[(row + 1) % x, column])
