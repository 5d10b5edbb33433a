"""Programs of the page, run by node."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"
Node = Callable[..., None]


@pytest.fixture
def node() -> Node:
    """Runs a file of tests in web/test, with names of what it reads in the environment."""

    def run(file: str, **environment: str | Path) -> None:
        given = {name: str(value) for name, value in environment.items()}
        done = subprocess.run(
            ["node", "--test", f"test/{file}"],
            cwd=WEB,
            capture_output=True,
            text=True,
            timeout=600,
            env={**os.environ, **given},
        )
        assert done.returncode == 0, done.stdout + done.stderr

    return run
