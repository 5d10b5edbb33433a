"""The environments: what gymnasium asks of them, what they do to a run, and an agent that learns."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import polypath
from polypath import EngineError
from polypath.gym import CongestionEnv, JointEnv, SchedulingEnv
from polypath.gym.congestion import OF_INTERVAL, changed

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
UPLOADS = EXAMPLES / "short-uploads.toml"
KEY = "host.client.scheduler"


def trainer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("train_scheduler", EXAMPLES / "train_scheduler.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("name", ["Scheduling", "Congestion", "Joint"])
def test_gymnasium_finds_no_fault(name: str) -> None:
    env = gymnasium.make(f"polypath/{name}-v0", scenario=UPLOADS)
    check_env(env.unwrapped, skip_render_check=True)


@pytest.mark.parametrize(("made", "action"), [(SchedulingEnv, 0), (CongestionEnv, [0.2]), (JointEnv, [0.1, 0, 1, -1])])
def test_a_seed_gives_the_same_episode_and_another_one_another(made: Any, action: Any) -> None:
    def episode(seed: int) -> list[Any]:
        env = made(UPLOADS)
        observation, info = env.reset(seed=seed)
        told: list[Any] = [observation.tolist(), info]
        for _ in range(15):
            observation, reward, *over, info = env.step(np.asarray(action, np.float32))
            told.append((observation.tolist(), reward, over, info))
        return told

    assert episode(3) == episode(3)
    assert episode(3) != episode(4)


def test_the_return_is_the_time_of_the_run() -> None:
    env = SchedulingEnv(UPLOADS, key=KEY)
    _, info = env.reset(options={"network": 5, "seed": 9})
    assert info["network"] == {"network": "n6"}
    total, over = 0.0, False
    while not over:
        _, reward, terminated, truncated, info = env.step(np.int64(0))
        total += reward
        over = terminated or truncated
    assert terminated
    assert not truncated
    assert -total == pytest.approx(info["time"])
    recording = env.recording()
    assert recording.metadata.end_ns == round(info["time"] * 1e9)
    assert recording.metadata.seed == 9
    assert recording["upload"].subflows.to_polars()["bytes"][0] > 0


def test_an_agent_that_only_waits_cannot_stall_a_run() -> None:
    env = SchedulingEnv(UPLOADS, key=KEY)
    env.reset(seed=1)
    over = False
    while not over:
        *_, terminated, truncated, _ = env.step(np.int64(2))
        over = terminated or truncated
    assert terminated


def test_time_that_is_up_truncates(tmp_path: Path) -> None:
    short = polypath.Scenario.load(UPLOADS).with_({"duration": "300 ms"})
    env = CongestionEnv(short)
    env.reset(seed=1)
    over = False
    while not over:
        *_, terminated, truncated, info = env.step(np.zeros(1, np.float32))
        over = terminated or truncated
    assert (terminated, truncated, info["time"]) == (False, True, 0.3)


def test_a_window_doubles_and_halves() -> None:
    scenario = polypath.Scenario.load(UPLOADS).with_({"application.upload.transport": "tcp"})
    env = CongestionEnv(scenario, history=1)
    observation, _ = env.reset(options={"network": 0, "seed": 1})
    at = OF_INTERVAL.index("cwnd")
    before = observation[at]
    observation, *_ = env.step(np.asarray([1.0], np.float32))
    assert observation[at] == 2 * before
    observation, *_ = env.step(np.asarray([-1.0], np.float32))
    assert observation[at] == before
    assert [changed(10, 0.0), changed(2, -1.0), changed(2, 0.15), changed(1 << 16, 1.0)] == [10, 2, 3, 1 << 16]


def test_shares_go_where_the_weights_are() -> None:
    def bytes_of(weights: list[float]) -> list[int]:
        env = JointEnv(UPLOADS)
        env.reset(options={"network": 0, "seed": 1})
        for _ in range(40):
            _, _, terminated, truncated, _ = env.step(np.asarray([0.0, 0.0, *weights], np.float32))
            if terminated or truncated:
                break
        return [int(each) for each in env.recording()["upload"].subflows.to_polars()["bytes"]]

    first, second = bytes_of([1, -1]), bytes_of([-1, 1])
    assert first[0] / sum(first) > second[0] / sum(second) + 0.1


def test_what_cannot_be_is_said_in_one_line() -> None:
    with pytest.raises(EngineError, match="there is no network 60; the scenario has 0 to 59"):
        SchedulingEnv(UPLOADS, networks=[60])
    with pytest.raises(EngineError, match=r"'host\.client\.congestion' is no scheduler"):
        SchedulingEnv(UPLOADS, key="host.client.congestion")
    env = SchedulingEnv(UPLOADS)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.int64(0))
    with pytest.raises(EngineError, match="reset takes the options network and seed, not 'point'"):
        env.reset(options={"point": 1})


@pytest.mark.slow
def test_environments_run_in_processes_of_their_own() -> None:
    made = [lambda: gymnasium.make("polypath.gym:polypath/Scheduling-v0", scenario=str(UPLOADS)) for _ in range(2)]
    envs = gymnasium.vector.AsyncVectorEnv(made, context="spawn")
    try:
        observations, _ = envs.reset(seed=[1, 2])
        assert observations.shape == (2, 19)
        for _ in range(20):
            observations, rewards, *_ = envs.step(np.zeros(2, np.int64))
        assert rewards.shape == (2,)
    finally:
        envs.close()


def test_an_agent_beats_lowest_rtt_on_networks_that_it_never_saw() -> None:
    made = trainer()
    ratios = made.judged(made.trained(40))
    assert len(ratios) == 20
    assert float(np.exp(np.mean(np.log(ratios)))) < 0.95
    assert sum(ratio < 0.99 for ratio in ratios) > 3 * sum(ratio > 1.01 for ratio in ratios)
