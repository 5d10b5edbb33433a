"""RipL's routing `st` as an os-ken application: all flows over one tree, whose root is the first switch."""

from ripl import Ripl


class SpanningTree(Ripl):
    def paths(self, first, last):
        there, back = self.to_root(first), self.to_root(last)
        while len(there) > 1 and len(back) > 1 and there[-2] == back[-2]:
            there.pop()
            back.pop()
        return [[*there, *reversed(back[:-1])]] if there[-1] == back[-1] else []

    def to_root(self, switch):
        """The switches on the way to the root: each next one is the least of those nearer to it."""
        found = super().paths(switch, min(self.switches))
        return found[0] if found else [switch]

    def choose(self, paths, flow):
        return paths[0]
