class Mine:
    """The path on which least was acknowledged, so that both carry as much."""

    def select(self, view):
        ready = [path for path in view.paths if path.ready]
        return min(ready, key=lambda path: path.acked + path.queued).index if ready else None
