"""Programs of the machine, unmodified, on hosts of the guest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.handmade_plans import as_plan

from polypath.engines import Options
from polypath.results import Recording
from polypath.scenario import Scenario

from ..processes import inside, wait

HERE = Path(__file__).parent
COMMAND = (sys.executable, "-m", "polypath")
Run = Callable[..., Recording]


def _kept(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_curl_iperf3_and_a_server_run_over_both_paths_and_the_same_twice(linux: Run, tmp_path: Path) -> None:
    found = []
    for name in ("first", "second"):
        captures = tmp_path / name / "capture"
        captures.mkdir(parents=True)
        options = Options("hosts", captures, programs=tmp_path / name / "programs")
        found.append((linux("programs", options=options), _kept(tmp_path / name)))
    (recording, kept), (again, kept_again) = found
    assert kept == kept_again
    assert recording.metadata.recording_sha256 == again.metadata.recording_sha256
    states = {row["name"]: (row["state"], row["exit_code"]) for row in recording.table("programs").to_dicts()}
    assert states == {
        "http": ("ended", 128 + signal.SIGTERM),
        "iperf-server": ("ended", 1),
        "curl": ("exited", 0),
        "iperf": ("exited", 0),
    }
    assert kept["programs/curl/files/data"] == b"Polypath " * 60_000
    assert kept["programs/curl/files/programs.toml"] == (HERE / "programs.toml").read_bytes()
    assert b'"GET /data HTTP/1.1" 200' in kept["programs/http/stderr"]
    assert json.loads(kept["programs/iperf/stdout"])["end"]["sum_sent"]["bytes"] >= 500 * 1024
    # 540 kB over 20 Mbps take 0.22 s, over either path 0.43 s
    assert 0.22 < float(kept["programs/curl/stdout"].split()[0]) < 0.43
    sent = {(row["name"], row["direction"]): row["sent_bytes"] for row in recording.table("link_ends").to_dicts()}
    assert min(sent["wifi", "backward"], sent["lte", "backward"]) > 100_000
    assert {"capture/client.pcapng", "capture/server.pcapng"} < kept.keys()


SEEN = """
import os, pathlib, socket, time
print(socket.socket().getsockopt(socket.SOL_SOCKET, 38), socket.gethostbyname("server"), os.environ["ANSWER"])
print(sorted(path.name for path in pathlib.Path().iterdir()), time.strftime("%Y", time.gmtime()))
for place in ("/tmp", "/run/job", pathlib.Path(os.environ["TMPDIR"]), "."):
    try:
        pathlib.Path(place, "written").write_text("here")
        print("writes")
    except OSError as error:
        print(error.strerror)
try:
    socket.gethostbyname("example.org")
except OSError as error:
    print("unknown")
"""


def test_what_a_program_sees_and_how_it_may_end(linux: Run, tmp_path: Path) -> None:
    def replaced(data: dict[str, Any]) -> None:
        common = data["programs"][0] | {"background": False, "host": 0, "files": {}, "environment": {"ANSWER": "42"}}
        words = {
            "tcp": ["python3", "-c", SEEN],
            "mptcp": ["python3", "-c", SEEN],
            "fails": ["sh", "-c", "echo lost >&2; exit 3"],
            "dies": ["sh", "-c", "kill -KILL $$"],
            "absent": ["./absent"],
        }
        data["programs"] = [
            common | {"name": name, "command": command, "transport": "tcp" if name == "tcp" else "mptcp"}
            for name, command in words.items()
        ]
        waits = {"command": ["sleep", "1000"], "name": "waits", "start_ns": 1_000_000_000, "transport": "mptcp"}
        data["programs"].append(common | waits)
        data["duration_ns"] = 2_000_000_000

    recording = linux("programs", change=replaced, options=Options(programs=tmp_path / "programs"))
    rows = {row["name"]: row for row in recording.table("programs").to_dicts()}
    codes = {name: (row["state"], row["exit_code"]) for name, row in rows.items()}
    assert codes == {
        "tcp": ("exited", 0),
        "mptcp": ("exited", 0),
        "fails": ("exited", 3),
        "dies": ("killed", 137),
        "absent": ("exited", 127),
        "waits": ("ended", 143),
    }
    assert rows["waits"]["end_ns"] >= 2_000_000_000
    for name, protocol in (("tcp", 6), ("mptcp", 262)):
        said = (tmp_path / "programs" / name / "stdout").read_text().splitlines()
        assert said == [
            f"{protocol} 10.0.0.2 42",
            "[] 2023",
            "Read-only file system",
            "Read-only file system",
            "writes",
            "writes",
            "unknown",
        ]
        assert (tmp_path / "programs" / name / "files" / "written").read_text() == "here"
    assert (tmp_path / "programs" / "fails" / "stderr").read_text() == "lost\n"


def test_a_program_that_the_machine_lacks_is_named_with_the_nearest(refusal: Callable[..., str]) -> None:
    def missing(data: dict[str, Any]) -> None:
        program = Scenario.load(HERE / "programs.toml").plan(None).data["programs"][2]
        data["programs"] = [program | {"command": ["culr"]}]

    assert refusal(missing) == "application 'curl': no program 'culr' on this machine; did you mean 'curl'?"


def test_a_file_that_is_no_program_is_named(refusal: Callable[..., str]) -> None:
    def plain(data: dict[str, Any]) -> None:
        program = Scenario.load(HERE / "programs.toml").plan(None).data["programs"][2]
        data["programs"] = [program | {"command": [str(HERE / "programs.toml")]}]

    assert refusal(plain) == f"application 'curl': {HERE / 'programs.toml'} is no program that can be run"


def test_exec_passes_output_and_exit_code_on(linux: Run, tmp_path: Path) -> None:
    scenario = tmp_path / "net.toml"
    scenario.write_text((HERE / "programs.toml").read_text().partition("[[application]]")[0])
    script = "echo out; echo err >&2; curl -s --retry 3 http://server:8000/ -o page && exit 7"
    words = ["exec", str(scenario), "--server", "server: python3 -m http.server 8000", "--out", str(tmp_path / "out")]
    done = subprocess.run([*COMMAND, *words, "--", "sh", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "out\n")
    first, second = done.stderr.splitlines()
    assert first == "err"
    assert second.startswith("sh on client ended with exit code 7 after 0.0")
    assert "wifi " in second
    assert "lte " in second
    recording = Recording.load(tmp_path / "out")
    assert recording.table("programs")["name"].to_list() == ["sh", "python3"]
    assert b"Directory listing" in (tmp_path / "out" / "programs" / "sh" / "files" / "page").read_bytes()
    again = subprocess.run([*COMMAND, *words, "--limit", "1 s", "--", "sleep", "5"], capture_output=True, check=False)
    assert again.returncode == 124
    assert not (tmp_path / "out" / "programs" / "sh").exists()
    assert (tmp_path / "out" / "programs" / "sleep" / "stdout").is_file()


def test_nothing_is_left_of_an_exec_that_was_killed(linux: Run) -> None:
    busy: list[str] = ["exec", str(HERE / "programs.toml"), "--", "sh", "-c", "while :; do :; done"]
    with subprocess.Popen([*COMMAND, *busy]) as runner:
        folder = wait(lambda: list(Path(tempfile.gettempdir()).glob(f"polypath-linux-{runner.pid}-*")))[0]
        wait(lambda: bool(inside(folder)) and any(folder.glob("programs/*/stdout")))
        os.kill(runner.pid, signal.SIGKILL)
    wait(lambda: not inside(folder))
    wait(lambda: not folder.exists())


def test_a_link_among_what_was_written_is_not_followed(tmp_path: Path) -> None:
    from polypath.engines.namespaces import commands

    place = tmp_path / "run" / "programs" / "0"
    (place / "files").mkdir(parents=True)
    (place / "files" / "link").symlink_to("/etc/hostname")
    (place / "files" / "plain").write_text("mine")
    (place / "stdout").symlink_to("/etc/hostname")
    os.mkfifo(place / "stderr")
    plan = as_plan({"programs": [{"name": "sly", "host": 0, "start_ns": 0}], "nodes": [{"name": "client"}]})
    commands.take(plan, tmp_path / "run", tmp_path / "out")
    assert _kept(tmp_path / "out") == {"sly/files/plain": b"mine"}
    (row,) = commands.rows(plan, tmp_path / "run")
    assert (row["stdout_bytes"], row["stderr_bytes"]) == (0, 0)
