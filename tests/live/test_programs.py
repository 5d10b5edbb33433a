"""Programs of the machine on hosts in real time, and a prompt."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from polypath.results import Recording

HERE = Path(__file__).parent
COMMAND = (sys.executable, "-c", "from polypath.cli import main; main()")
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
