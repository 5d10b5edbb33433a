"""A packet scheduler and a congestion control in one environment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import gymnasium
import numpy as np
from numpy.typing import NDArray

from polypath._core import Acknowledgement, ControlledPath, DeliverySample, View
from polypath.gym.congestion import changed
from polypath.gym.episodes import MOST, Episodes, Observation, key_of
from polypath.interface import Target
from polypath.scenario import Scenario
from polypath.stepping import Run
from polypath.stepping.decisions import pace

#: What is told of each path over the last interval, in this order.
OF_PATH: Final = ("rate_mbps", "srtt_s", "min_rtt_s", "lost", "cwnd", "in_flight")


class _Hands:
    """What the actions say until the next one, and what the paths told since the last one."""

    def __init__(self, paths: int) -> None:
        self.shares = np.full(paths, 1.0 / paths)
        self.windows: list[int | None] = [None] * paths
        self.clear()
        self.told: list[tuple[float, float, int, int]] = [(0.0, 0.0, 0, 0)] * paths

    def clear(self) -> None:
        self.acknowledged = [0.0] * len(self.windows)
        self.lost = [0] * len(self.windows)


class _Scheduler:
    """Gives each path its share of the bytes, by deficit (Shreedhar and Varghese 1996)."""

    def __init__(self, hands: _Hands) -> None:
        self._hands = hands
        self._sent = np.zeros(len(hands.windows))

    def select(self, view: View) -> int | None:
        shares = self._hands.shares
        usable = [path for path in view.paths[: len(shares)] if path.usable]
        if not usable:
            return next((path.index for path in view.paths if path.ready), None)
        first = min(usable, key=lambda path: (self._sent[path.index] / shares[path.index], path.index))
        if first.ready or any(path.in_flight for path in view.paths):
            return first.index
        return next((path.index for path in usable if path.ready), None)

    def carried(self, path: int, size: int, new: bool) -> None:
        if path < len(self._sent):
            self._sent[path] += size


class _Window:
    """Keeps the window of a path that the last action gave."""

    paces = True

    def __init__(self, hands: _Hands) -> None:
        self._hands = hands

    def control(self, path: ControlledPath, ack: Acknowledgement, sample: DeliverySample) -> None:
        hands, index = self._hands, path.index
        if index < len(hands.windows):
            hands.acknowledged[index] += ack.packets * path.mss
            hands.lost[index] += sample.newly_lost
            wanted = hands.windows[index]
            if wanted is not None:
                path.cwnd = wanted
            hands.told[index] = (path.srtt, path.min_rtt, path.cwnd, path.in_flight)
        pace(path)


class JointEnv(Episodes[NDArray[np.float32]]):
    """Decides the windows of all paths, and the share of the data that each carries, every `interval` seconds.

    `side` is the sender: a host or an application of the scenario with its congestion control and its scheduler, or
    the defaults. It must be the sender of one connection.

    Action: `Box(-1, 1, (2 * paths,))`. First comes, for each path, the binary logarithm of the factor by which its
    window changes. Then comes a weight for each path. The shares of the data are the softmax of the weights, and data
    waits for the path whose turn it is.

    Observation: a `Box` of float32 with `OF_PATH` for each path.

    Reward: by default the goodput of the interval in Mbps, less the price `delay` for each second of mean smoothed
    RTT. `reward(observation, delivered_bytes)` replaces it.
    """

    def __init__(
        self,
        scenario: Target,
        side: str = "defaults",
        paths: int = 2,
        interval: float = 0.1,
        delay: float = 10.0,
        networks: Iterable[int] | None = None,
        reward: Callable[[Observation, float], float] | None = None,
    ) -> None:
        super().__init__(scenario, networks)
        self._keys = [key_of(f"{side}.{last}", last) for last in ("scheduler", "congestion")]
        self._paths, self._interval, self._delay = paths, interval, delay
        self._reward = reward
        self._hands = _Hands(paths)
        self._delivered = 0
        self.observation_space = gymnasium.spaces.Box(0.0, MOST, (len(OF_PATH) * paths,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2 * paths,), np.float32)

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        run = self._going()
        if run.finished:
            raise gymnasium.error.ResetNeeded("the episode is over: call reset first")
        hands = self._hands
        for index, exponent in enumerate(action[: self._paths]):
            if (cwnd := hands.told[index][2]) > 0:
                hands.windows[index] = changed(cwnd, float(exponent))
        weights = np.exp(np.asarray(action[self._paths :], np.float64))
        hands.shares = weights / weights.sum()
        delivered = self._go_on()
        observation = self._observed()
        reward = self._earned(observation, delivered) if self._reward is None else self._reward(observation, delivered)
        terminated, truncated = self._ends()
        return observation, float(reward), terminated, truncated, self._info()

    def _begin(self, scenario: Scenario, seed: int) -> Run:
        self._hands = hands = _Hands(self._paths)
        scheduler, congestion = self._keys
        made = {scheduler: lambda: _Scheduler(hands), congestion: lambda: _Window(hands)}
        return Run(scenario, seed=seed, algorithms=made)

    def _first(self) -> Observation:
        self._delivered = 0
        self._go_on()
        return self._observed()

    def _go_on(self) -> float:
        """Runs for an interval; gives the bytes that arrived in order meanwhile."""
        run = self._going()
        self._hands.clear()
        run.step(run.now + self._interval)
        before, self._delivered = self._delivered, sum(row["delivered_bytes"] for row in run.observe().connections)
        return float(self._delivered - before)

    def _earned(self, observation: Observation, delivered: float) -> float:
        rtts = observation.reshape(self._paths, len(OF_PATH))[:, 1]
        known = rtts[rtts > 0]
        mean = float(known.mean()) if known.size else 0.0
        return delivered * 8 / 1e6 / self._interval - self._delay * mean

    def _observed(self) -> Observation:
        hands = self._hands
        values = [
            (hands.acknowledged[index] * 8 / 1e6 / self._interval, srtt, least, hands.lost[index], cwnd, in_flight)
            for index, (srtt, least, cwnd, in_flight) in enumerate(hands.told)
        ]
        return np.asarray(values, np.float32).reshape(-1)
