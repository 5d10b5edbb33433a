"""The command as a user types it, and its captures as Wireshark reads them."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from ..commands import called
from ..processes import LIMIT_S

COMMAND = Path(sysconfig.get_path("scripts")) / "polypath"

Ran = subprocess.CompletedProcess[str]
Polypath = Callable[..., Ran]


@pytest.fixture(scope="session")
def polypath() -> Polypath:
    """Runs the installed command; `environment` is added to this process's."""

    def call(*arguments: str | Path, environment: dict[str, str] | None = None, cwd: Path | None = None) -> Ran:
        return subprocess.run(
            [str(COMMAND), *map(str, arguments)],
            capture_output=True,
            text=True,
            errors="replace",
            env=os.environ | (environment or {}),
            cwd=cwd,
            timeout=LIMIT_S,
            check=False,
        )

    return call


@pytest.fixture
def inside(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Polypath:
    """Runs a command as `polypath` does, without another interpreter."""

    def call(*arguments: str | Path, cwd: Path | None = None) -> Ran:
        if cwd is not None:
            monkeypatch.chdir(cwd)
        return called(capsys, *arguments)

    return call
