class Threefold:
    """Three decisions of four are for the first subflow, the fourth is for the second. threefold.c is the same."""

    def __init__(self):
        self.decisions = 0

    def select(self, view):
        ready = sorted(path.index for path in view.paths if path.ready)
        if not ready:
            return None
        turn = self.decisions % 4 == 3 and len(ready) > 1
        self.decisions += 1
        return ready[1] if turn else ready[0]
