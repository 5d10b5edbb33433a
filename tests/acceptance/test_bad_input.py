"""What a user can get wrong: one line that says what and where, exit code 2.

One of each kind is typed at the installed command; of the others, another interpreter would prove nothing more.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from ..processes import LIMIT_S, captured, wait
from .conftest import COMMAND, Polypath, Ran

GOOD = """\
name = "small"
duration = "2 s"

[host.client]
[host.server]

[link.path0]
ends = ["client", "server"]
rate = "20 Mbps"
delay = "20 ms"
queue = "100 packets"

[[application]]
name = "iperf"
kind = "bulk"
"""


def _refused(ran: Ran, *parts: str) -> None:
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.startswith("polypath: ")
    assert ran.stderr.count("\n") == 1
    assert "Traceback" not in ran.stderr
    assert "internal error" not in ran.stderr
    for part in parts:
        assert part in ran.stderr


def test_the_scenario_itself_is_good(polypath: Polypath, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(GOOD)
    assert polypath("run", "small.toml", cwd=tmp_path).returncode == 0


#: What is replaced by what, and what the message must contain: the place, and what would be right.
MISTAKES = {
    "wrong unit": ('rate = "20 Mbps"', 'rate = "20 parsec"', ["small.toml:9", "parsec"]),
    "no unit": ('rate = "20 Mbps"', "rate = 20", ["small.toml:9"]),
    "a unit of another kind": ('delay = "20 ms"', 'delay = "20 Mbps"', ["small.toml:10", "Mbps"]),
    "unknown key": ('delay = "20 ms"', 'dely = "20 ms"', ["small.toml:10", "dely", "delay"]),
    "zero rate": ('rate = "20 Mbps"', 'rate = "0 Mbps"', ["small.toml:9"]),
    "negative delay": ('delay = "20 ms"', 'delay = "-20 ms"', ["small.toml:10"]),
    "endless delay": ('delay = "20 ms"', 'delay = "inf s"', ["small.toml:10"]),
    "a rate beyond any number": ('rate = "20 Mbps"', f'rate = "{"9" * 400} Mbps"', ["small.toml:9"]),
    "negative queue": ('queue = "100 packets"', 'queue = "-1 packets"', ["small.toml:11"]),
    "more than certain loss": ('queue = "100 packets"', 'loss = "101 %"', ["small.toml:11"]),
    "unknown host": ('ends = ["client", "server"]', 'ends = ["client", "sever"]', ["small.toml:8", "sever", "server"]),
    "a link to itself": ('ends = ["client", "server"]', 'ends = ["client", "client"]', ["small.toml:8"]),
    "unknown application": ('kind = "bulk"', 'kind = "blk"', ["small.toml:15", "blk", "bulk"]),
    "a key twice": ('delay = "20 ms"', 'delay = "20 ms"\ndelay = "30 ms"', ["small.toml"]),
    "a host twice": ("[host.server]", "[host.server]\n[host.server]", ["small.toml"]),
    "no duration": ('duration = "2 s"', 'duration = "0 s"', ["small.toml:2"]),
}


def _mistaken(polypath: Polypath, tmp_path: Path, mistake: str) -> None:
    right, wrong, parts = MISTAKES[mistake]
    assert right in GOOD
    (tmp_path / "small.toml").write_text(GOOD.replace(right, wrong, 1))
    _refused(polypath("run", "small.toml", "--out", "out", cwd=tmp_path), *parts)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_a_scenario(inside: Polypath, tmp_path: Path, mistake: str) -> None:
    _mistaken(inside, tmp_path, mistake)


def test_a_mistake_typed_at_the_installed_command(polypath: Polypath, tmp_path: Path) -> None:
    _mistaken(polypath, tmp_path, "unknown key")


def test_names_that_are_there_twice(inside: Polypath, tmp_path: Path) -> None:
    second = GOOD + '\n[[application]]\nname = "iperf"\nkind = "bulk"\n'
    (tmp_path / "small.toml").write_text(second)
    _refused(inside("run", "small.toml", cwd=tmp_path), "small.toml:18", "iperf")
    (tmp_path / "small.toml").write_text(GOOD + "\n[router.client]\n")
    _refused(inside("run", "small.toml", cwd=tmp_path), "small.toml:17", "client")


def test_a_host_without_a_way_to_its_peer(inside: Polypath, tmp_path: Path) -> None:
    lonely = GOOD.replace("[host.server]", "[host.server]\n[host.lonely]\n[host.alone]")
    lonely += '\n[link.apart]\nends = ["lonely", "alone"]\n'
    (tmp_path / "small.toml").write_text(lonely.replace('kind = "bulk"', 'kind = "bulk"\nclient = "lonely"', 1))
    _refused(inside("run", "small.toml", cwd=tmp_path), "small.toml", "lonely")


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"\x00\x01\x02\xff\xfe" * 100, ["given.toml"]),
        ("[host.client]\n".encode("utf-16"), ["given.toml"]),
        (b"[" * 100_000, ["given.toml"]),
        (b"a = " + b"{b = " * 5_000, ["given.toml"]),
        (b"a" * 1_000_000, ["given.toml"]),
    ],
    ids=["binary", "utf-16", "brackets", "nested", "long line"],
)
def test_junk_instead_of_a_scenario(
    polypath: Polypath, inside: Polypath, tmp_path: Path, content: bytes, parts: list[str]
) -> None:
    (tmp_path / "given.toml").write_bytes(content)
    _refused(polypath("run", "given.toml", cwd=tmp_path), *parts)
    _refused(inside("run", "--topo", "given.toml", "--xp", "given.toml", cwd=tmp_path), *parts)


def test_files_that_cannot_be_read(inside: Polypath, tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    with (tmp_path / "huge.toml").open("wb") as huge:
        huge.truncate(100_000_000)
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    for name in ("folder.toml", "huge.toml", "pipe.toml", "loop.toml", "missing.toml", "no/such/folder.toml"):
        _refused(inside("run", name, cwd=tmp_path), name)
    for name in ("huge.toml", "pipe.toml"):
        _refused(inside("import", name, name, cwd=tmp_path), name)


def test_an_unknown_lab_is_met_with_the_nearest(inside: Polypath) -> None:
    for command in ("run", "show", "check"):
        _refused(inside(command, "agregation"), "'agregation'", "did you mean 'aggregation'?")
    _refused(inside("run", "xyzzy"), "'xyzzy'")


def test_an_output_folder_that_cannot_be_written(inside: Polypath, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    for place in ("file", "file/below", "/proc/nowhere", "/dev/null"):
        _refused(inside("run", "aggregation", "--out", place, cwd=tmp_path), place.split("/below")[0])
    assert (tmp_path / "file").read_text() == "kept"


def test_an_output_folder_without_rights(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o555)
    # root's right to write anywhere
    without = ["setpriv", "--bounding-set", "-dac_override"] if os.geteuid() == 0 else []
    command = [*without, str(COMMAND), "run", "aggregation", "--out", "locked"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=LIMIT_S, check=False)
    _refused(ran, "cannot write to locked", "Permission denied")


def test_a_full_disk_leaves_no_half_file(polypath: Polypath, tmp_path: Path) -> None:
    """A limit on file size stands for the disk: captures and tables stop where it is reached."""
    limited = ["prlimit", "--fsize=4096", str(COMMAND), "run", "aggregation", "--pcap", "hosts", "--out", "out"]
    ran = subprocess.run(limited, capture_output=True, text=True, cwd=tmp_path, timeout=LIMIT_S, check=False)
    assert ran.returncode == 2
    assert ran.stderr.startswith("polypath: ")
    assert "Traceback" not in ran.stderr
    assert not list(tmp_path.rglob("*.pcapng"))


def test_ctrl_c_in_the_second_run_of_a_lab(tmp_path: Path) -> None:
    """The first run's results stay as they are, the second's are kept and marked."""
    # TCP's run is short: it has the first path only. No machine is through with the second run before the signal.
    settings = ["--set", "link.path0.rate=50 kbps", "--set", "link.path1.rate=1 Gbps"]
    settings += ["--set", "application.iperf.duration=1000 s", "--set", "duration=2000 s"]
    command = [str(COMMAND), "run", "aggregation", *settings, "--pcap", "hosts", "--out", "out"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    first, second = tmp_path / "out" / "tcp", tmp_path / "out" / "mptcp"
    wait(lambda: captured(second) > 1_000_000)
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    assert "Traceback" not in complaints
    manifests = [json.loads((folder / "manifest.json").read_text()) for folder in (first, second)]
    assert [manifest["interrupted"] for manifest in manifests] == [False, True]
    assert 0 < manifests[1]["end_ns"] < manifests[0]["end_ns"]
    assert json.loads((second / "summary.json").read_text())["interrupted"] is True
    assert not list((tmp_path / "out").rglob(".*"))
