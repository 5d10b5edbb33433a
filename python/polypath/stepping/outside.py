"""Stands in a plan where the owner of a stepped run decides: polypath.Run(scenario, decide=..)."""

from typing import Any, NoReturn


class _Outside:
    def __init__(self, key: str, **settings: Any) -> None:
        raise RuntimeError(f"{key} was decided step by step, by a program that is not part of this plan")


class Scheduler(_Outside):
    def select(self, view: Any) -> NoReturn:
        raise NotImplementedError


class Congestion(_Outside):
    paces = True

    def control(self, path: Any, ack: Any, sample: Any) -> NoReturn:
        raise NotImplementedError


class PathManager(_Outside):
    def manage(self, view: Any) -> NoReturn:
        raise NotImplementedError
