"""What the environments share: an episode is a run of a network that is drawn from the scenario's axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, Final, Generic, TypeVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from polypath.engines import EngineError
from polypath.interface import Target, found
from polypath.results import Recording
from polypath.scenario import Scenario
from polypath.scenario.vary import SEED
from polypath.stepping import Run

Observation = NDArray[np.float32]
Action = TypeVar("Action")

#: Bound of every observation; no figure in these units comes near it.
MOST: Final = 1e9
#: Seeds of runs are drawn below this.
_SEEDS: Final = 2**31


class Episodes(gymnasium.Env[Observation, Action], Generic[Action]):
    """An environment whose episodes are runs.

    `scenario` is a scenario, its file, or the run of a lab. Where it has axes besides the seed, each reset draws one
    of their combinations, and a seed for the run. `networks` keeps only these combinations, counted from 0: a range to
    train on, another one to judge by. `reset(options={"network": 3, "seed": 7})` chooses instead of drawing.

    `info` has the simulated `time` in seconds, and after a reset `network` with the labels of the axes, and `seed`.

    An episode is terminated when all applications have ended, and truncated when the duration of the scenario is up.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012, as gymnasium has it

    def __init__(self, scenario: Target, networks: Iterable[int] | None = None) -> None:
        self.render_mode = None
        _, base, _ = found(scenario)
        self._end = base.duration / 1e9
        axes = [axis for axis in base.axes if axis.name != SEED]
        self._networks = [
            ({axis.name: value.label for axis, value in zip(axes, values, strict=True)}, base, values)
            for values in product(*(axis.values for axis in axes))
        ]
        count = len(self._networks)
        self._chosen = list(range(count)) if networks is None else list(networks)
        for number in self._chosen:
            self._require_network(number)
        if not self._chosen:
            raise EngineError("the environment has no network to draw from: 'networks' is empty")
        self._run: Run | None = None

    def scenario(self, network: int = 0) -> Scenario:
        """The scenario of a network, for instance to run it with another algorithm."""
        self._require_network(network)
        _, base, values = self._networks[network]
        return base.at(list(values)) if base.axes else base

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins the run of another network or seed."""
        super().reset(seed=seed)
        chosen = dict(options or {})
        network = chosen.pop("network", None)
        if network is None:
            network = self._chosen[int(self.np_random.integers(len(self._chosen)))]
        own = chosen.pop("seed", None)
        if own is None:
            own = int(self.np_random.integers(_SEEDS))
        if chosen:
            raise EngineError(f"reset takes the options network and seed, not {', '.join(map(repr, chosen))}")
        self.close()
        scenario = self.scenario(network)
        self._run = self._begin(scenario, own)
        observation = self._first()
        return observation, {**self._info(), "network": dict(self._networks[network][0]), "seed": own}

    def recording(self) -> Recording:
        """What the episode's run recorded, to its end or to where it stands; the episode is over then."""
        run = self._run
        if run is None:
            raise EngineError("there is no episode yet: call reset first")
        return run.recording()

    def close(self) -> None:
        """Ends the run."""
        if self._run is not None:
            self._run.close()
            self._run = None

    def _begin(self, scenario: Scenario, seed: int) -> Run:
        raise NotImplementedError

    def _first(self) -> Observation:
        raise NotImplementedError

    def _info(self) -> dict[str, Any]:
        return {"time": self._now()}

    def _now(self) -> float:
        return 0.0 if self._run is None else self._run.now

    def _going(self) -> Run:
        if self._run is None:
            raise EngineError("there is no episode yet: call reset first")
        return self._run

    def _ends(self) -> tuple[bool, bool]:
        """Whether the episode is terminated, and whether it is truncated."""
        run = self._going()
        if not run.finished:
            return False, False
        return run.now < self._end, run.now >= self._end

    def _require_network(self, number: int) -> None:
        count = len(self._networks)
        if not 0 <= number < count:
            raise EngineError(f"there is no network {number}; the scenario has 0 to {count - 1}")


def key_of(wanted: str | None, last: str) -> str:
    """The key that an environment decides: the one that was given, or that of the defaults."""
    key = f"defaults.{last}" if wanted is None else wanted
    if key.rpartition(".")[2] != last:
        raise EngineError(f"'{key}' is no {last}; give a key that ends in .{last}")
    return key
