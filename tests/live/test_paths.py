"""The path manager in user space on the machine's own kernel."""

import os
import subprocess
import sys
from pathlib import Path

from polypath.engines.live.machine import NAMESPACES, Machine
from polypath.engines.namespaces import programs

from ..processes import LIMIT_S

SCRIPT = Path(__file__).with_name("late_paths.py")


def test_a_connection_that_is_over_takes_no_subflow_and_nobody_minds(machine: Machine, tmp_path: Path) -> None:
    command = [*NAMESPACES, sys.executable, str(SCRIPT), os.fspath(programs.build()), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")
