"""Environments for reinforcement learning over runs of the simulator, the extra `polypath[gym]`.

    import gymnasium, polypath.gym
    env = gymnasium.make("polypath/Scheduling-v0", scenario="scenario.toml")
    observation, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step(0)

An episode is a run. Each `reset` draws a network from the axes of the scenario (docs/sweeps.md) and a seed for the run.
"""

from __future__ import annotations

try:
    import gymnasium
except ImportError as error:
    raise ImportError("polypath.gym needs gymnasium, which is not installed: pip install 'polypath[gym]'") from error

from polypath.gym.congestion import CongestionEnv
from polypath.gym.episodes import Episodes
from polypath.gym.joint import JointEnv
from polypath.gym.scheduling import SchedulingEnv

for _name in ("Scheduling", "Congestion", "Joint"):
    gymnasium.register(f"polypath/{_name}-v0", entry_point=f"polypath.gym:{_name}Env")

__all__ = ["CongestionEnv", "Episodes", "JointEnv", "SchedulingEnv"]
