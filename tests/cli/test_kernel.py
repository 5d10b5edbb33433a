"""What is said where there is no kernel to run on, or none to be had."""

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from polypath.engines.linux import kernel
from polypath.engines.linux.kernel import Installed
from polypath.engines.linux.kernel.make import Progress

RUN = ("run", "aggregation", "--run", "tcp", "--engine", "linux")


@pytest.mark.parametrize("command", [("kernel", "status"), ("kernel", "wheel"), RUN])
def test_a_kernel_that_is_missing_is_to_be_built(
    polypath: Any, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    outcome = polypath(*command)
    assert outcome.code == 2
    said = outcome.out + outcome.err
    assert said.removeprefix("polypath: ") == (
        "the kernel of engine linux is not built yet; run `polypath kernel build`\n"
    )


@pytest.mark.parametrize("command", [("kernel", "status"), ("kernel", "build"), RUN])
def test_a_machine_that_cannot_run_it_is_told_what_can(
    polypath: Any, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    outcome = polypath(*command)
    assert outcome.code == 2
    said = outcome.out + outcome.err
    assert "needs Linux on x86-64 (User Mode Linux), and this is Linux on aarch64; --engine live" in said
    assert said.count("\n") == 1


def test_a_group_without_a_command_shows_its_help(polypath: Any) -> None:
    outcome = polypath("kernel")
    assert outcome.code == 2
    assert "wheel" in outcome.out + outcome.err
    assert "polypath: " not in outcome.err


def test_a_build_that_nobody_watches_says_each_stage_once(
    polypath: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = Installed(tmp_path, "7.2", "source", "recipe", "", "gcc", "00")

    def build(
        source: object, variant: str, jobs: int, trial: object, progress: Progress, warn: Callable[[str], None]
    ) -> tuple[Installed, bool]:
        progress("preparing the source", 0, 0)
        for step in range(3):
            progress("compiling the kernel", step, 3)
        warn("another source takes its place")
        return built, True

    monkeypatch.setattr(kernel, "build", build)
    outcome = polypath("kernel", "build")
    assert (outcome.code, outcome.err) == (
        0,
        "preparing the source\ncompiling the kernel\nwarning: another source takes its place\n",
    )
    assert outcome.out.startswith("Linux 7.2 built in ")
