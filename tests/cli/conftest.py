"""The command line in this process, with an engine that hands out a Recording made by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from polypath import engines
from polypath.engines import EngineError, Options, Progress
from polypath.results import Recording
from polypath.scenario import Plan
from polypath.sweeps import executor

from ..commands import called


@dataclass
class StandIn:
    """Notes what it is asked to run; `interrupted` and `failure` say how the runs go."""

    recording: Recording
    plans: list[Plan] = field(default_factory=list)
    options: list[Options] = field(default_factory=list)
    interrupted: bool = False
    failure: str | None = None
    name: str = "sim"

    def versions(self) -> dict[str, str]:
        return {}

    def run(self, plan: Plan, options: Options, progress: Progress) -> Recording:
        self.plans.append(plan)
        self.options.append(options)
        if options.directory is not None:
            (options.directory / "client.pcapng").write_bytes(b"\n\r\r\n")
        if self.failure is not None:
            raise EngineError(self.failure)
        progress(1, 2)
        made = replace(
            self.recording.metadata,
            scenario=plan.data["name"],
            plan_sha256=plan.sha256(),
            interrupted=self.interrupted,
        )
        return replace(self.recording, metadata=made)


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


Polypath = Callable[..., Outcome]


@pytest.fixture
def engine(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    stand_in = StandIn(recording)
    monkeypatch.setattr(engines, "REGISTRY", {"sim": lambda: stand_in})
    monkeypatch.setattr(executor, "cores", lambda: 1)
    return stand_in


@pytest.fixture
def polypath(capsys: pytest.CaptureFixture[str]) -> Polypath:
    """Runs a command and gives its exit code and what it printed."""

    def call(*arguments: str | Path) -> Outcome:
        ran = called(capsys, *arguments)
        return Outcome(ran.returncode, ran.stdout, ran.stderr)

    return call


SCENARIO = """
name = "small"
duration = "4 s"

[host.client]
[host.server]

[link.path0]
ends = ["client", "server"]
rate = "20 Mbps"
delay = "20 ms"

[[application]]
name = "iperf"
kind = "bulk"
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    return path
