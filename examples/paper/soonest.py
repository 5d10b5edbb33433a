"""A packet scheduler: the path of lowest RTT, and another one only where that brings the data sooner."""


class Soonest:
    def select(self, view):
        usable = [path for path in view.paths if path.usable]
        ready = [path for path in usable if path.ready]
        if not ready:
            return None
        fast = min(usable, key=lambda path: path.srtt)
        best = min(ready, key=lambda path: path.srtt)
        # Rounds of the fast path that all the data left would take, with the one that it is in.
        rounds = 1 + view.unsent / (fast.cwnd * fast.mss)
        if best is not fast and fast.in_flight and rounds * fast.srtt < best.srtt:
            return None
        return best.index
