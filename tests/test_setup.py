"""`make test` installs what tests need, so no test is skipped for lack of it."""

import re
import shutil
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: A test that skips itself where a package or a program is missing.
SKIPS = re.compile(r"importorskip|skipif\(\s*shutil\.which|which\([^\n]*is None:\n\s+pytest\.skip")

#: Extras for what no test machine has: a batch system.
ELSEWHERE = {"dask-jobqueue>=0.9"}


def test_the_set_up_installs_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = {package for extra in project["project"]["optional-dependencies"].values() for package in extra}
    assert extras - ELSEWHERE <= set(project["dependency-groups"]["dev"])


PROGRAMS = ["cargo", "cc", "chromium", "groff", "ip", "iperf3", "node", "prlimit", "setpriv", "tshark", "unshare"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_set_up_installs_every_program(program: str) -> None:
    assert shutil.which(program), f"{program} is missing; make test-python installs it"


def test_no_test_is_skipped_for_what_the_set_up_installs() -> None:
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    assert [path.name for path in tests if SKIPS.search(path.read_text(encoding="utf-8"))] == []
