"""A packet scheduler from a table that `train.py` learned: which of three actions was best in each state."""

from bisect import bisect_right

FAST, SLOW, WAIT = "fast", "slow", "wait"
ROUNDS, RATIOS = (0.5, 1, 2, 4, 8), (1.5, 2, 4, 8)


def situation(view):
    """The state of the table, the actions that are possible there, and the path of each; None with one path or none."""
    usable = sorted((path for path in view.paths if path.usable), key=lambda path: path.srtt)
    if len(usable) < 2:
        return None
    fast, slow = usable[:2]
    rounds = view.unsent / (fast.cwnd * fast.mss)
    ratio = slow.srtt / max(fast.srtt, 1e-3)
    state = f"{fast.ready:d}{slow.ready:d}{bisect_right(ROUNDS, rounds)}{bisect_right(RATIOS, ratio)}"
    possible = [FAST] if fast.ready else []
    if slow.ready:
        # To wait makes sense only where an acknowledgement will ask again.
        possible += [SLOW, WAIT] if fast.in_flight and not fast.ready else [SLOW]
    return state, possible, {FAST: fast.index, SLOW: slow.index, WAIT: None}


class Learned:
    def __init__(self, policy):
        self.policy = policy

    def select(self, view):
        known = situation(view)
        if known is None or not known[1]:
            return next((path.index for path in view.paths if path.ready), None)
        state, possible, paths = known
        action = self.policy.get(state)
        return paths[action if action in possible else possible[0]]
