"""Trains the scheduler of learned.py on the networks of train.toml, and writes its table.

    python train.py [EPISODES] [FILE]

The agent is a table of means (Monte Carlo control, Sutton and Barto 2018, section 5.4). An episode is a run with one
file. Each of its decisions gains what the file took less than with lowest RTT, as a share of that.
"""

from __future__ import annotations

import json
import random
import sys
from collections import defaultdict
from pathlib import Path

from learned import FAST, SLOW, WAIT, situation

import polypath

HERE = Path(__file__).parent
ORDER = (FAST, SLOW, WAIT)
#: How often each action of a state was tried before the table has the state.
TRIED = 50


class Table:
    """The mean gain of each action in each state, and how often it was tried."""

    def __init__(self) -> None:
        self.mean: dict[str, dict[str, float]] = defaultdict(dict)
        self.count: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.random = random.Random(1)

    def choose(self, state: str, possible: list[str], exploring: float) -> str:
        tried = [action for action in possible if action in self.mean[state]]
        if not tried or self.random.random() < exploring:
            return self.random.choice(possible)
        return max(tried, key=lambda action: (self.mean[state][action], -ORDER.index(action)))

    def learn(self, state: str, action: str, gained: float) -> None:
        self.count[state][action] += 1
        before = self.mean[state].get(action, 0.0)
        self.mean[state][action] = before + (gained - before) / self.count[state][action]

    def policy(self) -> dict[str, str]:
        """The best action of each state that leaves a choice."""
        return {
            state: max(means, key=lambda action: (means[action], -ORDER.index(action)))
            for state, means in sorted(self.mean.items())
            if len(means) > 1 and min(self.count[state].values()) >= TRIED
        }


def episode(scenario: polypath.Scenario, seed: int, table: Table, exploring: float) -> None:
    usual = polypath.run(scenario, seed=seed)["file"].completion_s
    steps: list[tuple[str, str]] = []
    with polypath.Run(scenario, seed=seed, decide=["host.server.scheduler"]) as run:
        while (decision := run.step()) is not None:
            known = situation(decision.view)
            if known is None or not known[1]:
                decision.answer(next((path.index for path in decision.view.paths if path.ready), None))
                continue
            state, possible, paths = known
            action = table.choose(state, possible, exploring) if len(possible) > 1 else possible[0]
            if len(possible) > 1:
                steps.append((state, action))
            decision.answer(paths[action])
        taken = run.recording()["file"].completion_s
    if usual is None or taken is None:
        return
    for state, action in steps:
        table.learn(state, action, (usual - taken) / usual)


def main(episodes: int, file: Path) -> None:
    scenario = polypath.Scenario.load(HERE / "train.toml")
    networks = scenario.axes[0].values
    table = Table()
    for number in range(episodes):
        at = scenario.at([table.random.choice(networks)])
        episode(at, number + 1, table, max(0.5 * (1 - number / episodes), 0.05))
    file.write_text(json.dumps(table.policy(), indent=1) + "\n", encoding="utf-8")
    print(f"{file}: {len(table.policy())} states, from {episodes} episodes")


if __name__ == "__main__":
    given = sys.argv[1:]
    main(int(given[0]) if given else 3000, Path(given[1]) if len(given) > 1 else HERE / "policy.json")
