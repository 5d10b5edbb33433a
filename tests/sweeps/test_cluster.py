"""A sweep on a Dask cluster of this machine: what comes out is what comes out locally, whoever dies meanwhile."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from distributed import Client

from polypath.cli import run
from polypath.cli.errors import InputError
from polypath.engines import EngineError
from polypath.results import layout
from polypath.sweeps import cluster
from polypath.sweeps.cluster import Identity

from ..clusters import BIN, Cluster
from ..processes import LIMIT_S, wait
from ..slow import slow
from ..swept import contents

SCHEDULER = """
class Alternate:
    last = 0
    def select(self, view):
        ready = [number for number, path in enumerate(view.paths) if path.ready]
        self.last += 1
        return ready[self.last % len(ready)] if ready else None
"""
OTHER = """
import dataclasses
from polypath.sweeps import cluster
own = cluster.identity()
cluster.identity = lambda: dataclasses.replace(own, native="0")
"""
#: Dies when it is asked what it is for the first time.
DYING = """
import os, pathlib
from polypath.sweeps import cluster
own = cluster.identity

def identity():
    if not pathlib.Path({marker!r}).exists():
        pathlib.Path({marker!r}).touch()
        os._exit(1)
    return own()

cluster.identity = identity
"""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path / "dask")
    yield cluster
    cluster.end()


@pytest.fixture
def file(plain: str, tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(plain.replace('"1 s"', '"20 s"') + "[vary]\nseeds = 30\n")
    return path


def done(out: Path) -> int:
    return len(list(out.glob(f"*/{layout.MANIFEST}")))


def local(file: Path, out: Path) -> dict[str, bytes]:
    subprocess.run([BIN / "polypath", "run", file, "--out", out], check=True, capture_output=True)
    return contents(out)


@pytest.mark.parametrize("deaths", [1, slow(4)])
def test_workers_that_die_cost_nothing_but_time(made: Cluster, file: Path, tmp_path: Path, deaths: int) -> None:
    draw = random.Random(1)
    made.add()
    made.add()
    out = tmp_path / "out"
    process = made.run(file, "--out", out)
    for count in sorted(draw.sample(range(2, 20), deaths)):
        wait(lambda count=count: done(out) >= count or process.poll() is not None)  # type: ignore[misc]
        assert process.poll() is None, process.communicate()
        made.kill(draw.randrange(2))
        made.add()
    _, error = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, "Traceback" in error) == (0, False)
    assert contents(out) == local(file, tmp_path / "local")


@pytest.mark.slow
def test_a_client_that_is_killed_goes_on(made: Cluster, file: Path, plain: str, tmp_path: Path) -> None:
    made.add()
    (tmp_path / "alternate.py").write_text(SCHEDULER)
    file.write_text(file.read_text() + '[defaults]\nscheduler = "alternate.py:Alternate"\n')
    out = tmp_path / "out"
    process = made.run(file, "--out", out)
    wait(lambda: done(out) >= 5)
    process.kill()
    process.communicate()
    before = {path: path.stat().st_mtime_ns for path in out.glob(f"*/{layout.MANIFEST}")}
    assert 5 <= len(before) < 30
    process = made.run(file, "--out", out)
    wait(lambda: done(out) >= len(before) + 5)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    assert "points are done; the same command goes on from there" in error
    _, error = made.run(file, "--out", out).communicate(timeout=LIMIT_S)
    assert error.endswith(f"results in {out}\n")
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert contents(out) == local(file, tmp_path / "local")


def test_a_lost_scheduler_is_one_line(made: Cluster, file: Path, tmp_path: Path) -> None:
    made.add()
    out = tmp_path / "out"
    process = made.run(file, "--out", out)
    wait(lambda: done(out) >= 3)
    made.scheduler.kill()
    _, error = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 2
    assert error.splitlines()[-1] == f"polypath: the scheduler at {made.address} is gone"
    assert "Traceback" not in error


def test_a_worker_of_another_build_is_refused(made: Cluster, file: Path, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(OTHER)
    made.add(PYTHONPATH=str(tmp_path / "site"))
    process = made.run(file, "--out", tmp_path / "out")
    _, error = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 2
    assert "another build of the native module; install the same on all machines" in error.splitlines()[-1]
    assert done(tmp_path / "out") == 0


@pytest.mark.slow
def test_a_worker_that_dies_when_asked_is_left_out(made: Cluster, file: Path, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    marker = tmp_path / "died"
    (tmp_path / "site" / "sitecustomize.py").write_text(DYING.format(marker=str(marker)))
    made.add()
    made.add(PYTHONPATH=str(tmp_path / "site"))
    with Client(made.address) as client:  # type: ignore[no-untyped-call]
        client.wait_for_workers(2, timeout=LIMIT_S)
    process = made.run(file, "--out", tmp_path / "out")
    _, error = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, marker.exists()) == (0, True), error
    assert contents(tmp_path / "out") == local(file, tmp_path / "local")


def test_what_has_to_be_the_same() -> None:
    one = Identity("3.11.7", "1.0", "a", "b")
    assert one.differs(one) is None
    assert one.differs(replace(one, polypath="2.0")) == "Polypath 2.0, and this is 1.0"
    assert one.differs(replace(one, python="3.12.0")) == "Python 3.12.0, and this is 3.11.7"
    assert one.differs(replace(one, package="c")) == "Polypath 1.0 with other Python files"


def test_what_is_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        EngineError, match=r"^--cluster here: expected a scheduler such as tcp://10\.0\.0\.1:8786, or s"
    ):
        cluster.require_known("here")
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(EngineError, match=r"^--cluster needs dask_jobqueue, which is not installed; pip install 'poly"):
        cluster.require_known("slurm")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(EngineError, match=r"^--cluster needs distributed, which is not installed; pip install 'poly"):
        cluster.require_known("tcp://127.0.0.1:1")


def test_a_cluster_is_for_sweeps_in_the_simulator(file: Path, plain: str) -> None:
    with pytest.raises(InputError, match=r"^--cluster computes points in the simulator, not on engine 'live'$"):
        run.run(str(file), cluster="tcp://127.0.0.1:1", engine="live")
    file.write_text(plain)
    with pytest.raises(InputError, match=r"^--cluster computes the points of sweeps, and small varies nothing; see"):
        run.run(str(file), cluster="tcp://127.0.0.1:1")
