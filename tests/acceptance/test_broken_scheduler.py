"""`polypath check` notices a scheduler that does not do what its name says.

The lab, its settings and its bounds stay as they are; between the plan and the simulator another algorithm takes the
scheduler's place, as a defect in it would. The command then runs as ever.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from polypath import cli, engines
from polypath.cli import errors
from polypath.engines.base import Engine, Options, Progress, no_progress
from polypath.engines.sim import Simulator
from polypath.results import Recording
from polypath.scenario import Plan


class Sabotaged:
    """The simulator, with one scheduler in another's place on every host."""

    name = "sim"

    def __init__(self, victim: str, impostor: str) -> None:
        self.victim, self.impostor = victim, impostor

    def versions(self) -> dict[str, str]:
        return {}

    def run(self, plan: Plan, options: Options = Options(), progress: Progress = no_progress) -> Recording:
        data = plan.data
        stacks = [node["stack"] for node in data["nodes"]]
        stacks += [
            application[f"{side}_stack"] for application in data["applications"] for side in ("client", "server")
        ]
        for stack in filter(None, stacks):
            if stack["scheduler"]["name"] == self.victim:
                stack["scheduler"] = {"name": self.impostor, "parameters": {}}
        return Simulator().run(Plan(data), options, progress)


def _check(lab: str, monkeypatch: pytest.MonkeyPatch, engine: Callable[[], Engine]) -> int:
    monkeypatch.setattr(engines, "REGISTRY", {"sim": engine})
    with pytest.raises(SystemExit) as ended:
        errors.run(lambda: cli.app(["check", lab, "--jobs", "1"], prog_name="polypath", standalone_mode=False))
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize(
    ("lab", "victim", "impostor"),
    [
        ("scheduler-reqres", "default", "roundrobin"),
        ("aggregation", "default", "redundant"),
    ],
)
def test_a_broken_scheduler_is_a_miss(
    lab: str, victim: str, impostor: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _check(lab, monkeypatch, Simulator) == 0
    assert "MISS" not in capsys.readouterr().out
    assert _check(lab, monkeypatch, lambda: Sabotaged(victim, impostor)) == 1
    assert "MISS" in capsys.readouterr().out
