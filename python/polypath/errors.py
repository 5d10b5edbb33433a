"""The base of every error of Polypath, and the error of figures, which several parts raise."""


class PolypathError(Exception):
    """Something that a person can put right; the message is one line.

    Every other error of the package is one, and an error of Python's that fits, a ValueError for example, as well.
    """


class MetricError(PolypathError, ValueError):
    """A figure was asked of a Recording that cannot have it; the message is one line."""
