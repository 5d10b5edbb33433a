"""RipL's routing `random` as an os-ken application: each flow takes any of the shortest paths."""

import random

from ripl import Ripl


class Random(Ripl):
    def choose(self, paths, flow):
        return random.choice(paths)
