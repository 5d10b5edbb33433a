"""Stands in a plan where the owner of a stepped run decides: polypath.Run(scenario, decide=..)."""


class _Outside:
    def __init__(self, key, **settings):
        raise RuntimeError(f"{key} was decided step by step, by a program that is not part of this plan")


class Scheduler(_Outside):
    def select(self, view):
        raise NotImplementedError


class Congestion(_Outside):
    paces = True

    def control(self, path, ack, sample):
        raise NotImplementedError


class PathManager(_Outside):
    def manage(self, view):
        raise NotImplementedError
