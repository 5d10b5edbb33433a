"""What the owner of a stepped run decides, and what asks for it inside the run."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from polypath._core import Acknowledgement, ControlledPath, DeliverySample, PathManagerView, View
from polypath.errors import PolypathError

#: Linux paces at 1.2 times the window for each RTT in congestion avoidance (`tcp_pacing_ca_ratio`).
_PACING = 1.2


class DecisionError(PolypathError, ValueError):
    """An answer that the decision cannot take; the message is one line."""


@dataclass
class Decision:
    """A question of the run to its owner, open until `answer` is called."""

    #: The key of the scenario that is decided: "host.client.scheduler".
    key: str
    #: Tells apart the connections, or of a congestion control the paths, in the order in which they first ask.
    number: int
    #: Simulated time, s.
    time: float
    answered: bool = field(default=False, init=False)
    given: Any = field(default=None, init=False, repr=False)

    def give(self, given: Any) -> None:
        """Takes an answer in the form that `given` has afterwards; `answer` checks it first."""
        if self.answered:
            raise DecisionError(f"the decision of {self.key} at {self.time:.6f} s has its answer")
        self.given = given
        self.answered = True


@dataclass
class SchedulerDecision(Decision):
    """Which path sends the next data (docs/python.md)."""

    view: View

    def answer(self, choice: int | tuple[int, int] | None) -> None:
        """The index of a path; None to wait; (index, offset) to send what was sent at that offset again.

        Raises DecisionError for a path that the connection does not have.
        """
        index = choice[0] if isinstance(choice, tuple) else choice
        if index is not None and not 0 <= int(index) < len(self.view.paths):
            raise DecisionError(f"path {index}: the connection has paths 0 to {len(self.view.paths) - 1}")
        plain = tuple(map(int, choice)) if isinstance(choice, tuple) else None if choice is None else int(choice)
        self.give(plain)


@dataclass(frozen=True)
class Interval:
    """What acknowledgements said of a path since its last decision."""

    #: s.
    duration: float
    #: Bytes of full packets that were acknowledged, and bytes a second.
    delivered_bytes: int
    rate: float
    #: Packets newly taken for lost.
    lost: int
    #: s; None where nothing was measured.
    rtt_mean: float | None
    rtt_min: float | None
    #: The sender had nothing more to send at least once.
    app_limited: bool


@dataclass
class CongestionDecision(Decision):
    """The window and the rate of a path until its next decision."""

    path: ControlledPath
    interval: Interval

    def answer(self, cwnd: int | None = None, pacing_rate: float | None = None) -> None:
        """`cwnd` in packets and `pacing_rate` in bytes a second; None leaves the window as it is, and has the path
        paced at 1.2 windows for each RTT. Raises DecisionError for a value that is out of bounds."""
        if cwnd is not None and not 1 <= int(cwnd) <= 1 << 30:
            raise DecisionError(f"cwnd {cwnd}: it is a whole number of packets, 1 to {1 << 30}")
        if pacing_rate is not None and not 1 <= pacing_rate < float("inf"):
            raise DecisionError(f"pacing_rate {pacing_rate}: it is a number of bytes a second, at least 1")
        self.give((None if cwnd is None else int(cwnd), None if pacing_rate is None else float(pacing_rate)))


@dataclass
class PathManagerDecision(Decision):
    """Which subflows or paths a connection opens, closes and announces (docs/python.md)."""

    view: PathManagerView

    def answer(self, actions: Sequence[tuple[Any, ...]] = (), wake: float | None = None) -> None:
        """The actions as tuples, and when to ask again, in seconds on the clock of `view.now`."""
        self.give(([tuple(action) for action in actions], wake))


#: Hands a decision to the run's owner, and returns once it is answered.
Ask = Callable[[Decision], Any]


class _Asker:
    """Asks the owner of the run, with a number from its first question on."""

    def __init__(self, ask: Ask, key: str, numbers: Iterator[int]) -> None:
        self._ask, self._key, self._numbers = ask, key, numbers
        self._number: int | None = None

    def _numbered(self) -> tuple[str, int]:
        if self._number is None:
            self._number = next(self._numbers)
        return self._key, self._number


class _Scheduler(_Asker):
    def select(self, view: View) -> Any:
        return self._ask(SchedulerDecision(*self._numbered(), view.now, view))


class _PathManager(_Asker):
    wake: float | None = None

    def manage(self, view: PathManagerView) -> Any:
        actions, self.wake = self._ask(PathManagerDecision(*self._numbered(), view.now, view))
        return actions


class _Congestion(_Asker):
    paces = True

    def __init__(self, ask: Ask, key: str, numbers: Iterator[int], interval: float) -> None:
        super().__init__(ask, key, numbers)
        self._least = interval
        self._cwnd: int | None = None
        self._rate: float | None = None
        self._begun: float | None = None
        self._clear()

    def _clear(self) -> None:
        self._bytes = self._lost = self._rtts = 0
        self._rtt_sum = 0.0
        self._rtt_min: float | None = None
        self._app_limited = False

    def control(self, path: ControlledPath, ack: Acknowledgement, sample: DeliverySample) -> None:
        if self._begun is None:
            self._begun = ack.now
        self._bytes += ack.packets * path.mss
        self._lost += sample.newly_lost
        self._app_limited |= sample.app_limited
        if ack.rtt is not None:
            self._rtts += 1
            self._rtt_sum += ack.rtt
            self._rtt_min = ack.rtt if self._rtt_min is None else min(self._rtt_min, ack.rtt)
        if ack.now - self._begun >= self._least:
            self._decide(path, ack.now, ack.now - self._begun)
            self._begun = ack.now
            self._clear()
        if self._cwnd is not None:
            path.cwnd = self._cwnd
        if self._rate is not None:
            path.pacing_rate = self._rate
        else:
            pace(path)

    def _decide(self, path: ControlledPath, now: float, duration: float) -> None:
        interval = Interval(
            duration,
            self._bytes,
            self._bytes / duration if duration > 0 else 0.0,
            self._lost,
            self._rtt_sum / self._rtts if self._rtts else None,
            self._rtt_min,
            self._app_limited,
        )
        self._cwnd, self._rate = self._ask(CongestionDecision(*self._numbered(), now, path, interval))


def pace(path: ControlledPath) -> None:
    """Paces a path by its window."""
    if path.srtt > 0:
        path.pacing_rate = max(_PACING * path.cwnd * path.mss / path.srtt, 1.0)


#: What asks, by the class of outside.py that stands for it in the plan.
_ASKING: Final[dict[str, Callable[..., object]]] = {
    "Scheduler": _Scheduler,
    "Congestion": _Congestion,
    "PathManager": _PathManager,
}

#: That class, by the last part of a key of the scenario.
CLASSES: Final = {"scheduler": "Scheduler", "congestion": "Congestion", "path_manager": "PathManager"}


class Askers:
    """Makes what asks, and numbers it."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._numbers: dict[str, Iterator[int]] = {}

    def made(self, name: str, key: str, settings: dict[str, Any]) -> object:
        """An instance for the class `name` of outside.py."""
        return _ASKING[name](self._ask, key, self._numbers.setdefault(key, itertools.count()), **settings)
