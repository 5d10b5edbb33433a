"""The prompt of `polypath shell`, typed at on a pseudo-terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from polypath.results import Recording

from ..processes import inside, running, wait
from ..terminal import Dialog, dialog

SCENARIO = Path(__file__).with_name("programs.toml")
STUBBORN = "trap 'echo stopped; exit 5' INT; echo begun; while :; do sleep 0.2; done"
Run = Callable[..., Recording]


def _folder(shell: Dialog) -> Path:
    return wait(lambda: list(Path(tempfile.gettempdir()).glob(f"polypath-linux-{shell.process.pid}-*")))[0]


def _time(shell: Dialog) -> float:
    return float(shell.says("time").split()[0])


def test_a_session(linux: Run, tmp_path: Path) -> None:
    captures = tmp_path / "capture"
    with dialog("shell", SCENARIO) as shell:
        shell.until("polypath> $")
        folder = _folder(shell)
        assert "pcap" in shell.says("help")
        assert shell.says("dump").splitlines() == [
            "host client: eth0 10.0.0.1, eth1 10.0.1.1",
            "host server: eth0 10.0.0.2, eth1 10.0.1.2",
            "link wifi: client:eth0 - server:eth0, up",
            "link lte: client:eth1 - server:eth1, up",
        ]
        before = _time(shell)
        # at the prompt time stands still, however long a person waits: the guest's process is stopped
        wait(lambda: "T" in {_state(process) for process in inside(folder)})
        assert _time(shell) - before < 0.001
        assert shell.says("ping client server 2").splitlines()[-1].startswith("2 of 2 answered, 20.1")
        assert 1 < _time(shell) - before < 3
        assert shell.says("client sh -c 'echo mine; exit 3'") == "mine\nsh: exit code 3\n"
        assert "0.00-1." in shell.says("iperf client server 1")
        assert shell.says("link wifi down") == ""
        assert shell.says("ping client server 1") == "1: no answer\n0 of 1 answered\n"
        assert shell.says("link wifi up rate 5Mbps delay 50ms") == ""
        assert shell.says("ping client server 1").startswith("1: 100.")
        assert "link wifi: client:eth0 - server:eth0, up, rate 5Mbps, delay 50ms" in shell.says("dump")
        assert shell.says(f"pcap start {captures}") == ""
        assert shell.says("server python3 -m http.server 8000 &") == "[1] python3 -m http.server 8000\n"
        assert shell.says("client curl -s http://server:8000/ -o page -w '%{http_code}\\n'") == "200\n"
        assert "Directory listing" in shell.says("client cat page")
        assert '"GET / HTTP/1.1" 200' in shell.says("jobs")
        assert shell.says("stop 1") == ""
        assert shell.says("pcap stop") == f"{captures}/client.pcapng\n{captures}/server.pcapng\n"
        assert min(path.stat().st_size for path in captures.iterdir()) > 1000
        shell.type(f'client sh -c "{STUBBORN}"\n')
        shell.until("\nbegun\n")
        shell.type("\x03")
        assert shell.until("polypath> $").endswith("stopped\nsh: exit code 5\npolypath> ")
        shell.type("half a li\x03")
        shell.until("polypath> $")
        shell.type("\x04")
        assert shell.process.wait() == 0
        assert not folder.exists()
        assert not inside(folder)


def _state(process: str) -> str:
    try:
        return Path("/proc", process, "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return ""


def test_what_makes_no_sense_is_one_line_and_the_shell_goes_on(linux: Run) -> None:
    lines = {
        "lnk wifi down": "unknown command or host 'lnk'; did you mean 'link'?",
        "clent true": "unknown command or host 'clent'; did you mean 'client'?",
        "client culr x": "host 'client': no program 'culr' on this machine; did you mean 'curl'?",
        "client": "client: name a program, such as client ip address",
        "client 'true": "client 'true: No closing quotation",
        "link wfi down": "unknown link 'wfi'; did you mean 'wifi'?",
        "link wifi dwn": "link: unknown change 'dwn'; did you mean 'down'?",
        "link wifi rate": "link: 'rate' needs a value, such as rate 5Mbps",
        "ping client servr": "unknown host 'servr'; did you mean 'server'?",
        "pcap stop": "no captures are running",
        "stop 4": "stop: no program in the background has number 4; jobs lists them",
        "client xterm": "no window opens from engine linux, which is cut off; --engine live",
        "interface client:eth0 down": None,
        "ping client server 1": "connect: Network is unreachable",
        "interface client:eth0 up": None,
    }
    done = subprocess.run(
        [sys.executable, "-m", "polypath", "shell", str(SCENARIO)],
        input="\n".join(lines) + "\nclient echo still here\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines() == [said for said in lines.values() if said is not None]
    assert (done.returncode, done.stdout) == (0, "still here\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_however_it_ends(linux: Run, number: int) -> None:
    with dialog("shell", SCENARIO) as shell:
        shell.until("polypath> $")
        folder = _folder(shell)
        shell.says("server python3 -m http.server 8000 &")
        processes = wait(lambda: inside(folder))
        os.kill(shell.process.pid, number)
        shell.process.wait()
        wait(lambda: not any(map(running, processes)))
        wait(lambda: not folder.exists())
