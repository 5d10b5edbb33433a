"""A packet scheduler as an environment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import gymnasium
import numpy as np

from polypath.gym.episodes import MOST, Episodes, Observation, key_of
from polypath.interface import Target
from polypath.scenario import Scenario
from polypath.stepping import Decision, Run, SchedulerDecision

#: What is told of each path, in this order.
OF_PATH: Final = ("usable", "ready", "srtt_s", "min_rtt_s", "cwnd", "in_flight", "room", "queued_kb")
#: What is told of the connection, after its paths.
OF_CONNECTION: Final = ("unsent_kb", "outstanding_kb", "window_kb")


class SchedulingEnv(Episodes[np.int64]):
    """Decides which path carries the next data, at each decision that the scheduler of `key` takes.

    Action: `Discrete(paths + 1)`, the index of a path, or `paths` to wait. Where nothing is in flight, a wait would
    have no end, and the data goes to the ready path of lowest RTT. So does data for a path that does not exist yet.

    Observation: a `Box` of float32 with `OF_PATH` for each path, zero for one that is not open, then `OF_CONNECTION`.

    Reward: by default the negative time that passed since the last decision, in seconds. The sum over an episode is
    then minus the completion time. `reward(decision, elapsed)` replaces it; `decision` is None at the end.
    """

    def __init__(
        self,
        scenario: Target,
        key: str | None = None,
        paths: int = 2,
        networks: Iterable[int] | None = None,
        reward: Callable[[SchedulerDecision | None, float], float] | None = None,
    ) -> None:
        super().__init__(scenario, networks)
        self._key = key_of(key, "scheduler")
        self._paths = paths
        self._reward = reward
        self._decision: SchedulerDecision | None = None
        self._last = 0.0
        size = len(OF_PATH) * paths + len(OF_CONNECTION)
        self.observation_space = gymnasium.spaces.Box(0.0, MOST, (size,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(paths + 1)

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        decision = self._decision
        if decision is None:
            raise gymnasium.error.ResetNeeded("the episode is over: call reset first")
        decision.answer(self._choice(decision, int(action)))
        self._go_on()
        elapsed = self._now() - self._last
        self._last = self._now()
        reward = -elapsed if self._reward is None else float(self._reward(self._decision, elapsed))
        terminated, truncated = self._ends()
        return self._observed(), reward, terminated, truncated, self._info()

    def _begin(self, scenario: Scenario, seed: int) -> Run:
        return Run(scenario, seed=seed, decide=[self._key])

    def _first(self) -> Observation:
        self._last = 0.0
        self._go_on()
        return self._observed()

    def _go_on(self) -> None:
        found = self._going().step()
        assert found is None or isinstance(found, Decision)
        self._decision = found if isinstance(found, SchedulerDecision) else None

    def _choice(self, decision: SchedulerDecision, action: int) -> int | None:
        paths = decision.view.paths
        if action < min(len(paths), self._paths) and paths[action].established:
            return action
        if action == self._paths and any(path.in_flight for path in paths):
            return None
        ready = [path for path in paths if path.ready]
        return min(ready, key=lambda path: path.srtt).index if ready else None

    def _observed(self) -> Observation:
        found = np.zeros(self.observation_space.shape or (), np.float32)
        if self._decision is None:
            return found
        view = self._decision.view
        values: list[float] = []
        for path in view.paths[: self._paths]:
            values += (
                path.usable,
                path.ready,
                path.srtt,
                path.min_rtt,
                path.cwnd,
                path.in_flight,
                path.room,
                path.queued / 1000,
            )
        found[: len(values)] = values
        found[-len(OF_CONNECTION) :] = view.unsent / 1000, (view.sent - view.una) / 1000, view.window / 1000
        return found
