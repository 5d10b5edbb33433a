"""The process of a run: nothing of it outlives who started it."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ..processes import inside, wait

FOLLOW = """
import sys
from pathlib import Path
from polypath.engines.namespaces import run
run.follow(["sh", "-c", sys.argv[1]], Path(sys.argv[2]), run.Limit("POLYPATH_TEST_LIMIT", 60), lambda now: None)
"""

#: A process that waits, one that has left it, and one that was stopped as a kernel's traced children are.
WAITING = "{ sleep 60 & } ; { kill -STOP $$ & } ; sleep 60"


@pytest.mark.parametrize("early", [True, False])
def test_a_killed_run_leaves_no_process_and_no_folder(tmp_path: Path, early: bool) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "linux").touch()
    with subprocess.Popen([sys.executable, "-c", FOLLOW, WAITING, str(folder)]) as runner:
        wait(lambda: len(inside(folder)) > (0 if early else 2))
        runner.send_signal(signal.SIGKILL)
    wait(lambda: not inside(folder))
    assert list(tmp_path.iterdir()) == []
