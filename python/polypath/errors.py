"""The base of every error of Polypath."""


class PolypathError(Exception):
    """Something that a person can put right; the message is one line.

    Every other error of the package is one, and an error of Python's that fits, a ValueError for example, as well.
    """
