"""Signals to a run that an os-ken application rules: it ends, is kept, and leaves no process."""

from __future__ import annotations

import signal
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from polypath import Recording

from ..processes import LIMIT_S, as_in_a_terminal, captured, inside, wait
from ..slow import others_slow

COMMAND = (sys.executable, "-m", "polypath")
EXAMPLES = Path(__file__).parents[2] / "examples"
SCENARIO = """
duration = "100000 s"
[controller]
app = "app.py"
delay = "1 ms"
[host.a]
[host.b]
[switch.s]
[link.a]
ends = ["a", "s"]
rate = "10 Mbps"
[link.b]
ends = ["s", "b"]
rate = "10 Mbps"
[[application]]
kind = "bulk"
client = "a"
server = "b"
start = "1 s"
duration = "90000 s"
"""
#: A file says that it is there; it stands where the run was started.
LOOPING = '        open("looping", "w").close()\n        while True:\n            pass\n'


def started(home: Path, source: str) -> subprocess.Popen[str]:
    (home / "app.py").write_text(source)
    (home / "scenario.toml").write_text(SCENARIO)
    command = [*COMMAND, "run", "scenario.toml", "--out", "out", "--pcap", "hosts"]
    return subprocess.Popen(
        command, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=as_in_a_terminal
    )


CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.mark.parametrize(
    ("loops", "number"),
    others_slow(product((False, True), CODES), (False, signal.SIGTERM), (True, signal.SIGINT)),
)
def test_a_run_under_an_application_ends_and_is_kept(tmp_path: Path, loops: bool, number: signal.Signals) -> None:
    source = (EXAMPLES / "learning_switch.py").read_text()
    if loops:
        line = "        message = event.msg\n"
        assert line in source
        source = source.replace(line, LOOPING)
    process = started(tmp_path, source)

    def begun() -> bool:
        assert process.poll() is None, process.communicate()
        return (tmp_path / "looping").exists() if loops else captured(tmp_path / "out") > 1_000_000

    wait(begun)
    assert len(inside(tmp_path)) == 2, "the run and its application"
    process.send_signal(number)
    printed, complaints = process.communicate(timeout=LIMIT_S)
    assert process.returncode == CODES[number], complaints
    assert "Traceback" not in complaints
    assert "interrupted at" in printed
    assert Recording.load(tmp_path / "out").metadata.interrupted
    wait(lambda: not inside(tmp_path))
