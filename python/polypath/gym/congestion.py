"""A congestion control as an environment."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from math import log
from typing import Any, Final

import gymnasium
import numpy as np
from numpy.typing import NDArray

from polypath.gym.episodes import MOST, Episodes, Observation, key_of
from polypath.interface import Target
from polypath.scenario import Scenario
from polypath.stepping import CongestionDecision, Decision, Run

#: What is told of an interval, in this order.
OF_INTERVAL: Final = ("rate_mbps", "rtt_s", "rtt_over_least", "lost_share", "cwnd", "path")
LEAST_WINDOW: Final = 2
MOST_WINDOW: Final = 1 << 16


class CongestionEnv(Episodes[NDArray[np.float32]]):
    """Decides the congestion window of a path, each `interval` seconds of its acknowledgements.

    Action: `Box(-1, 1, (1,))`, the binary logarithm of the factor by which the window changes, from half to double.
    The window stays from 2 to 65,536 packets. The path is paced at 1.2 windows for each RTT.

    Observation: a `Box` of float32 with `OF_INTERVAL` for each of the last `history` intervals, the newest last.
    `path` is the index of the path: of a multipath connection, paths are decided in turn.

    Reward: by default log(rate in Mbps) - log(RTT over the least RTT) - 10 * (share of packets that were lost). The
    first two are the logarithm of power (Kleinrock 1979). `reward(decision, least_rtt)` replaces it.
    """

    def __init__(
        self,
        scenario: Target,
        key: str | None = None,
        interval: float = 0.1,
        history: int = 4,
        networks: Iterable[int] | None = None,
        reward: Callable[[CongestionDecision, float], float] | None = None,
    ) -> None:
        super().__init__(scenario, networks)
        self._key = key_of(key, "congestion")
        self._interval = interval
        self._reward = power if reward is None else reward
        self._decision: CongestionDecision | None = None
        self._least: dict[int, float] = {}
        self._seen: deque[tuple[float, ...]] = deque(maxlen=history)
        self.observation_space = gymnasium.spaces.Box(0.0, MOST, (history * len(OF_INTERVAL),), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        decision = self._decision
        if decision is None:
            raise gymnasium.error.ResetNeeded("the episode is over: call reset first")
        decision.answer(cwnd=changed(decision.path.cwnd, float(action[0])))
        self._go_on()
        terminated, truncated = self._ends()
        reward = 0.0
        if self._decision is not None:
            reward = float(self._reward(self._decision, self._least.get(self._decision.path.index, 0.0)))
        return self._observed(), reward, terminated, truncated, self._info()

    def _begin(self, scenario: Scenario, seed: int) -> Run:
        return Run(scenario, seed=seed, decide={self._key: self._interval})

    def _first(self) -> Observation:
        self._least.clear()
        self._seen.clear()
        self._go_on()
        return self._observed()

    def _go_on(self) -> None:
        found = self._going().step()
        assert found is None or isinstance(found, Decision)
        self._decision = found if isinstance(found, CongestionDecision) else None
        if self._decision is None:
            return
        path, interval = self._decision.path, self._decision.interval
        if interval.rtt_min is not None:
            self._least[path.index] = min(self._least.get(path.index, interval.rtt_min), interval.rtt_min)
        rtt = path.srtt if interval.rtt_mean is None else interval.rtt_mean
        least = self._least.get(path.index, rtt)
        self._seen.append(
            (
                interval.rate * 8 / 1e6,
                rtt,
                rtt / least if least > 0 else 1.0,
                lost_share(self._decision),
                float(path.cwnd),
                float(path.index),
            )
        )

    def _observed(self) -> Observation:
        found = np.zeros(self.observation_space.shape or (), np.float32)
        if self._seen:
            values = [value for one in self._seen for value in one]
            found[-len(values) :] = values
        return found


def changed(cwnd: int, exponent: float) -> int:
    """The window times two to the power of `exponent`, within bounds, and never the same for a step that is felt."""
    wanted = round(cwnd * 2.0 ** min(max(exponent, -1.0), 1.0))
    if wanted == cwnd and abs(exponent) >= 0.1:
        wanted += 1 if exponent > 0 else -1
    return int(min(max(wanted, LEAST_WINDOW), MOST_WINDOW))


def lost_share(decision: CongestionDecision) -> float:
    """Packets lost, of those lost and acknowledged in the interval."""
    interval = decision.interval
    acknowledged = interval.delivered_bytes / decision.path.mss
    return interval.lost / (interval.lost + acknowledged) if interval.lost else 0.0


def power(decision: CongestionDecision, least_rtt: float) -> float:
    """The default reward: the logarithm of power, and a price for loss."""
    interval = decision.interval
    rtt = interval.rtt_mean
    rate = log(max(interval.rate * 8 / 1e6, 1e-3))
    delay = log(rtt / least_rtt) if rtt is not None and least_rtt > 0 else 0.0
    return rate - delay - 10 * lost_share(decision)
