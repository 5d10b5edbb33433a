"""Engine live where the kernel has netem: the guest of engine linux stands for such a machine."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from polypath.engines import EngineError
from polypath.engines.linux import guest
from polypath.engines.linux.kernel import find
from polypath.engines.linux.kernel.make import supported
from polypath.engines.live import engine, machine
from polypath.engines.namespaces import programs, run, translation
from polypath.engines.namespaces.tables import Tables
from polypath.engines.namespaces.wires import Netem
from polypath.scenario import Plan

#: Virtual time has room for more packets.
FAST = [f"link.path{path}.{key}" for path in (0, 1) for key in ("rate=20 Mbps", "queue=60 packets")]

Plans = Callable[..., Plan]
Say = Callable[[str, dict[str, str], Path | None], tuple[list[str], Path]]


@pytest.fixture
def inside(tmp_path: Path) -> Say:
    """Runs a script in the guest, with files in the folder `live` beside it; gives what it said and that folder."""
    try:
        supported()
        kernel = find()
    except EngineError as error:
        pytest.skip(str(error))

    def boot(script: str, files: dict[str, str], init: Path | None) -> tuple[list[str], Path]:
        outer = {"setup.sh": f"{script}\nexit 1\n", "job": "", "collect.sh": ""}
        with guest.folder(kernel, outer, {}) as folder:
            inner = folder / "live"
            (inner / "out").mkdir(parents=True)
            for name, text in files.items():
                (inner / name).write_text(text)
            shutil.copy(folder / programs.NAME, inner / programs.NAME)
            if init:
                shutil.copy(init, inner / "init")
                (inner / "init").chmod(0o755)
            for path in (inner, *inner.rglob("*")):
                shutil.chown(path, (folder / "out").stat().st_uid, (folder / "out").stat().st_gid)
            # the script is all there is to run: it ends as a set-up that failed
            ended = run.follow(guest.command(1, 1024), folder, guest.LIMIT, lambda now: None)
            shutil.copytree(inner, tmp_path / "live")
        return ended.log, tmp_path / "live"

    return boot


def test_the_probe_sees_netem(inside: Say) -> None:
    said, _ = inside("unshare -n sh ./live/probe", {"probe": machine._PROBE}, None)
    found = machine.read("\n".join(said), "")
    assert found.netem
    assert not found.tap
    assert {"default", "roundrobin"} <= set(found.schedulers)
    assert {"reno", "cubic", "olia"} <= set(found.congestion)
    assert {"ipv4/tcp_rmem", "mptcp/scheduler", "mptcp/path_manager"} <= found.settings
    assert found.subflows == 64


def test_both_paths_carry_their_share_over_netem(inside: Say, plans: Plans) -> None:
    there = machine.Machine(
        "7.2.12",
        ("cubic",),
        ("default",),
        frozenset({"ipv4/tcp_rmem", "ipv4/tcp_wmem", "ipv4/tcp_rto_min_us", "mptcp/scheduler", "mptcp/path_manager"})
        | {f"ipv4/tcp_{name}" for name in ("sack", "ecn", "timestamps", "window_scaling", "moderate_rcvbuf")}
        | {"ipv4/tcp_no_metrics_save", "mptcp/checksum_enabled"},
        netem=True,
        tap=False,
        subflows=64,
    )
    kernel = machine.MachineKernel(there)
    job, files = translation.translate(plans("two_paths", *FAST).data, "none", Netem, kernel)
    _, folder = inside("cd live && unshare -n -m ./init", files, engine._INIT)
    frames = Tables(job, folder / "out").frames()
    (bulk,) = frames["connection_ends"].iter_rows(named=True)
    assert (bulk["state"], bulk["transport"]) == ("finished", "mptcp")
    assert 28 < bulk["server_received_bytes"] * 8 / (bulk["last_byte_ns"] / 1e9) / 1e6 < 40
    sent = frames["link_ends"].filter(frames["link_ends"]["direction"] == "forward")
    packets = dict(zip(sent["name"], sent["sent_packets"], strict=True))
    assert packets["path0"] + packets["path1"] == pytest.approx(packets["server"], rel=0.02)
    assert min(packets["path0"], packets["path1"]) > 0.4 * packets["server"]
