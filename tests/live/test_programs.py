"""Programs of the machine on hosts in real time, and a prompt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from polypath.results import Recording

from ..processes import running, wait
from ..terminal import dialog

HERE = Path(__file__).parent
COMMAND = (sys.executable, "-m", "polypath")
WAITS = "trap 'echo stopped; exit 5' INT; echo begun; while :; do sleep 0.01; done"
#: Of a server that takes its time.
FETCH = ("curl", "-s", "--retry", "60", "--retry-connrefused", "--retry-delay", "1")
Run = Callable[..., Recording]


def _scenario(folder: Path) -> Path:
    path = folder / "net.toml"
    path.write_text((HERE / "two_paths.toml").read_text().partition("[[application]]")[0])
    return path


def test_exec_runs_curl_over_two_paths(live: Run, tmp_path: Path) -> None:
    words = ["exec", _scenario(tmp_path), "--engine", "live", "--limit", "120 s", "--out", tmp_path / "out"]
    server = "server: sh -c 'head -c 400000 /dev/zero > zeros; exec python3 -m http.server 8000'"
    words += ["--server", server, "--", *FETCH, "http://server:8000/zeros", "-O", "-w", "%{http_code}\\n"]
    done = subprocess.run([*COMMAND, *map(str, words)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "200\n")
    assert "curl on client ended with exit code 0 after " in done.stderr
    recording = Recording.load(tmp_path / "out")
    rows = {row["name"]: row["state"] for row in recording.table("programs").to_dicts()}
    assert rows == {"curl": "exited", "sh": "ended"}
    assert (tmp_path / "out" / "programs" / "curl" / "files" / "zeros").read_bytes() == bytes(400_000)
    sent = {(row["name"], row["direction"]): row["sent_bytes"] for row in recording.table("link_ends").to_dicts()}
    assert sent["path0", "backward"] + sent["path1", "backward"] > 400_000
    assert min(sent["path0", "backward"], sent["path1", "backward"]) > 0


def test_a_session_and_nothing_is_left_when_it_is_killed(live: Run, tmp_path: Path) -> None:
    with dialog("shell", _scenario(tmp_path), "--engine", "live") as shell:
        shell.until("polypath> $")
        folder = wait(lambda: list(Path(tempfile.gettempdir()).glob(f"polypath-live-{shell.process.pid}-*")))[0]
        assert "2 of 2 answered" in shell.says("ping client server 2")
        assert shell.says("server python3 -m http.server 8000 &") == "[1] python3 -m http.server 8000\n"
        assert shell.says(f"client {' '.join(FETCH)} http://server:8000/ -o page") == ""
        assert "Directory listing" in shell.says("client cat page")
        assert shell.says("client touch /etc/hosts").startswith("touch: ")
        shell.type(f'client sh -c "{WAITS}"\n')
        shell.until("\nbegun\n")
        shell.type("\x03")
        assert shell.until("polypath> $").endswith("stopped\nsh: exit code 5\npolypath> ")
        processes = wait(lambda: _inside(folder))
        os.kill(shell.process.pid, signal.SIGKILL)
        shell.process.wait()
        wait(lambda: not any(map(running, processes)))
        wait(lambda: not folder.exists())


def test_a_window_needs_a_display(live: Run, tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "shell", str(_scenario(tmp_path)), "--engine", "live"],
        input="client xterm\n",
        env={name: value for name, value in os.environ.items() if name != "DISPLAY"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "xterm needs an X server, and DISPLAY is not set\n"


def _inside(folder: Path) -> list[str]:
    """Processes in whose mount namespace the folder is /run/job, seen from outside."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{folder.name} /run/job" in (process / "mountinfo").read_text(encoding="utf-8"):
                found.append(process.name)
        except OSError:
            continue
    return found
