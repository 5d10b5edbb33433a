class Mine:
    """The path of the shortest round trip that has room."""

    def select(self, view):
        ready = [path for path in view.paths if path.ready]
        return min(ready, key=lambda path: path.srtt).index if ready else None
