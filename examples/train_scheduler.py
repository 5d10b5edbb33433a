"""Trains a packet scheduler on drawn networks, and compares it with lowest RTT on networks that it never saw.

    python examples/train_scheduler.py [EPISODES]

The agent is a table of means (Monte Carlo control, Sutton and Barto 2018, section 5.4). It chooses among the path of
lower RTT, the other path, and waiting. It sees which path is ready, and how much is left to send for what the faster
path carries in one of its RTTs. Needs the extra `polypath[gym]`.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

import polypath
from polypath.gym import SchedulingEnv

SCENARIO = Path(__file__).with_name("short-uploads.toml")
TRAINING, HELD_BACK = range(40), range(40, 60)
FAST, SLOW, WAIT = range(3)
State = tuple[bool, bool, int, int]


def seen(observation: np.ndarray) -> tuple[State, tuple[int, int]]:
    """The state of the table, and the indices of the faster and the slower path."""
    paths = observation[:16].reshape(2, 8)
    usable, ready, srtt, cwnd = paths[:, 0] > 0, paths[:, 1] > 0, paths[:, 2], paths[:, 4]
    fast = int(np.argmin(np.where(usable, srtt, np.inf)))
    slow = 1 - fast
    unsent = observation[16]
    rounds = unsent / max(cwnd[fast] * 1.4, 1.0)
    ratio = srtt[slow] / max(srtt[fast], 1e-3)
    left = int(np.digitize(rounds, (0.5, 1, 2, 4, 8)))
    return (bool(ready[fast]), bool(ready[slow]), left, int(np.digitize(ratio, (2, 4, 8)))), (fast, slow)


class Table:
    """The mean return of each action in each state."""

    def __init__(self, seed: int = 0) -> None:
        self.mean: dict[State, np.ndarray] = defaultdict(lambda: np.zeros(3))
        self.count: dict[State, np.ndarray] = defaultdict(lambda: np.zeros(3))
        self.random = np.random.default_rng(seed)

    def choose(self, state: State, exploring: float = 0.0) -> int:
        possible = [FAST] if state[0] and not state[1] else [FAST, SLOW] if state[0] else [SLOW, WAIT]
        if self.random.random() < exploring:
            return int(self.random.choice(possible))
        tried = [action for action in possible if self.count[state][action]]
        return max(tried or possible, key=lambda action: (self.mean[state][action], -action))

    def learn(self, state: State, action: int, gained: float) -> None:
        self.count[state][action] += 1
        self.mean[state][action] += (gained - self.mean[state][action]) / self.count[state][action]


def episode(env: SchedulingEnv, table: Table, network: int, exploring: float = 0.0, usual: float = 1.0) -> float:
    """Runs all requests of a network, and gives the seconds that they took. The agent learns while it explores: from
    an action to the end of its request, as a share of the `usual` time."""
    observation, _ = env.reset(options={"network": network, "seed": 1})
    steps: list[tuple[State, int, float, bool]] = []
    over, total = False, 0.0
    while not over:
        state, paths = seen(observation)
        action = table.choose(state, exploring)
        first = observation[17] == 0
        observation, reward, terminated, truncated, _ = env.step(np.int64((*paths, 2)[action]))
        steps.append((state, action, reward, first))
        total += reward
        over = terminated or truncated
    if exploring:
        gained = 0.0
        for state, action, reward, first in reversed(steps):
            gained += reward / usual
            table.learn(state, action, gained)
            gained = 0.0 if first else gained
    return -total


def lowest_rtt(env: SchedulingEnv, network: int) -> float:
    """The seconds that the built-in scheduler takes for the same."""
    return polypath.run(env.scenario(network), seed=1).metadata.end_ns / 1e9


def trained(episodes: int) -> Table:
    """An agent that saw only the networks to train on."""
    env = SchedulingEnv(SCENARIO, key="host.client.scheduler", networks=TRAINING)
    usual = {network: lowest_rtt(env, network) for network in TRAINING}
    table = Table()
    for number in range(episodes):
        network = int(table.random.choice(TRAINING))
        exploring = max(0.5 * (1 - number / episodes), 0.05)
        episode(env, table, network, exploring, usual[network])
    return table


def judged(table: Table) -> list[float]:
    """The agent's time over that of lowest RTT, for each network that was held back."""
    env = SchedulingEnv(SCENARIO, key="host.client.scheduler", networks=HELD_BACK)
    return [episode(env, table, network) / lowest_rtt(env, network) for network in HELD_BACK]


def main(episodes: int) -> None:
    ratios = judged(trained(episodes))
    mean = float(np.exp(np.mean(np.log(ratios))))
    better, worse = sum(ratio < 0.99 for ratio in ratios), sum(ratio > 1.01 for ratio in ratios)
    print(f"time over that of lowest RTT, {len(ratios)} networks held back: {mean:.2f} (geometric mean)")
    print(f"better in {better}, worse in {worse}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
