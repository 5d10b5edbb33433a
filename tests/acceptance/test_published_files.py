"""The tutorial's labs from their original files, against what is published of them (ACM SIGCOMM 2020 tutorial).

The time that each command takes is printed (`pytest -s`), not asserted.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from polypath import measures
from polypath.results import Recording, metrics

from .conftest import Polypath

DATA = Path(__file__).parents[3] / "shared" / "data" / "minitopo"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the tutorial's files are not here (../shared/data/minitopo)")

Recorded = Callable[[str, str], Recording]


@pytest.fixture(scope="module")
def recorded(polypath: Polypath, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """What the command records of a pair of files, run once."""
    kept: dict[tuple[str, str], Recording] = {}

    def record(topo: str, xp: str) -> Recording:
        if (topo, xp) not in kept:
            out = tmp_path_factory.mktemp("published") / "out"
            began = time.monotonic()
            ran = polypath("run", "--topo", DATA / topo, "--xp", DATA / xp, "--out", out)
            print(f"{topo} {xp}: {time.monotonic() - began:.2f} s")
            assert ran.returncode == 0, ran.stderr
            kept[topo, xp] = Recording.load(out)
            shutil.rmtree(out)
        return kept[topo, xp]

    return record


def _goodput(recording: Recording, connection: str, from_s: float | None = None, to_s: float | None = None) -> float:
    found = measures.figure(recording, "goodput", connection=connection, from_s=from_s, to_s=to_s)
    assert found is not None
    return float(found)


def _delays_ms(recording: Recording) -> list[float]:
    """Of the twenty requests, all of which are answered."""
    delays = recording.table("requests")["delay_ns"]
    assert len(delays) == 20
    assert delays.null_count() == 0
    return [delay / 1e6 for delay in delays]


def _states(recording: Recording) -> set[str]:
    return set(recording.table("connection_ends")["state"])


def test_aggregation(recorded: Recorded) -> None:
    tcp, mptcp = (
        _goodput(recorded("01_multipath/topo", f"01_multipath/{xp}"), "iperf") for xp in ("xp_tcp", "xp_mptcp")
    )
    assert 18.5 <= tcp <= 20
    assert 1.85 <= mptcp / tcp <= 2.05


def test_the_lowest_rtt_scheduler_keeps_requests_on_the_short_path(recorded: Recorded) -> None:
    delays = _delays_ms(recorded("02_scheduler/reqres/topo", "02_scheduler/reqres/reqres_rtt"))
    assert 40 <= min(delays) <= max(delays) <= 55


def test_round_robin_makes_requests_wait_for_the_long_path(recorded: Recorded) -> None:
    first, *others = _delays_ms(recorded("02_scheduler/reqres/topo", "02_scheduler/reqres/reqres_rr"))
    assert first <= 60
    assert sum(80 <= delay <= 100 for delay in others) >= 0.8 * len(others)


def test_a_small_window_leaves_little_of_two_paths(recorded: Recorded) -> None:
    topo, folder = "02_scheduler/http/topo", "02_scheduler/http"
    tcp, rtt, rr = (
        measures.figure(recorded(topo, f"{folder}/{xp}"), "completion", connection="http")
        for xp in ("http_tcp", "http_rtt", "http_rr")
    )
    assert tcp is not None
    assert 4.0 <= tcp <= 4.8
    for multipath in (rtt, rr):
        assert multipath is not None
        assert tcp / 2 < multipath < tcp


ONE = (22, 25)
BOTH = (44, 50)


@pytest.mark.parametrize(
    ("topo", "manager", "subflows", "goodput"),
    [
        ("single_path", "default", 1, None),
        ("single_path", "fullmesh", 1, None),
        ("single_path", "ndiffports", 2, None),
        ("two_client_paths", "default", 1, ONE),
        ("two_client_paths", "ndiffports", 2, ONE),
        ("two_client_paths", "fullmesh", 2, BOTH),
        ("two_client_paths_two_server_paths", "default", 1, ONE),
        ("two_client_paths_two_server_paths", "ndiffports", 2, ONE),
        ("two_client_paths_two_server_paths", "fullmesh", 4, BOTH),
    ],
)
def test_path_managers(
    recorded: Recorded, topo: str, manager: str, subflows: int, goodput: tuple[int, int] | None
) -> None:
    recording = recorded(f"03_path_manager/topo_{topo}", f"03_path_manager/iperf_{manager}")
    assert measures.figure(recording, "subflows", connection="iperf") == subflows
    if goodput is not None:
        assert goodput[0] <= _goodput(recording, "iperf") <= goodput[1]


@pytest.mark.parametrize("topo", ["topo", "topo_bk"])
def test_requests_survive_a_path_that_dies_in_silence(recorded: Recorded, topo: str) -> None:
    recording = recorded(f"04_backup/{topo}", "04_backup/reqres_rtt")
    delays = _delays_ms(recording)
    spikes = [delay for delay in delays if delay >= 200]
    assert _states(recording) == {"finished"}
    if topo == "topo":
        assert len(spikes) <= 1
    else:
        assert 1 <= len(spikes) <= 2
        assert max(spikes) <= 1_200
        assert [round(delay) for delay in delays[:5]] == [40] * 5
        assert all(29 <= delay <= 36 for delay in delays[-5:])


def _congestion(recorded: Recorded, name: str) -> Recording:
    return recorded("05_congestion_control/topo_cong", f"05_congestion_control/iperf_scenario_{name}")


@pytest.mark.parametrize("controller", ["reno", "olia"])
def test_a_connection_shares_with_tcp(recorded: Recorded, controller: str) -> None:
    recording = _congestion(recorded, f"{controller}_1sf")
    steps = {0: 40, 10: 30, 20: 20, 30: 30, 40: 40}
    for start, published in steps.items():
        measured = _goodput(recording, "iperf", start + 2, start + 10)
        if (controller, start) == ("olia", 20):
            # The catalogue states why this one is missed; it stays below what both links give.
            assert measured <= 1.25 * published
        else:
            assert 0.75 * published <= measured <= 1.25 * published, (start, measured)


_MISSED = pytest.mark.xfail(raises=AssertionError, strict=True, reason="a known miss of lab congestion")


@pytest.mark.parametrize("name", ["tcp_1", pytest.param("tcp_2", marks=_MISSED)])
def test_four_subflows_take_what_their_controller_lets_them(recorded: Recorded, name: str) -> None:
    reno, olia = _congestion(recorded, "reno_4sf"), _congestion(recorded, "olia_4sf")
    for recording in (reno, olia):
        assert measures.figure(recording, "subflows", connection="iperf") == 8
    link = 20.0
    span = {"tcp_1": (12, 30), "tcp_2": (22, 40)}[name]
    beside_reno, beside_olia = (_goodput(recording, name, *span) / link for recording in (reno, olia))
    assert beside_reno <= 0.32
    assert beside_olia >= 1.3 * beside_reno
    if name == "tcp_1":
        assert beside_olia >= 0.36


QUIC = {"xp_quic": (4.2, 4.7), "xp_mpquic_rtt": (0, 2.6), "xp_mpquic_rr": (0, 2.6)}


@pytest.mark.parametrize("xp", QUIC)
def test_a_file_over_one_path_of_quic_or_two(polypath: Polypath, tmp_path: Path, xp: str) -> None:
    folder = DATA / "06_multipath_quic"
    ran = polypath("run", "--topo", folder / "topo", "--xp", folder / xp, "--out", tmp_path / "out")
    assert ran.returncode == 0, ran.stderr
    recording = Recording.load(tmp_path / "out")
    least, most = QUIC[xp]
    completion = measures.figure(recording, "completion", connection="pquic")
    assert completion is not None
    assert least <= completion <= most


def test_the_outer_of_three_paths_carry_one_direction(polypath: Polypath, tmp_path: Path) -> None:
    folder = DATA / "06_multipath_quic"
    files = ("--topo", folder / "topo_3paths", "--xp", folder / "xp_mpquic_rtt_asym")
    ran = polypath("run", *files, "--out", tmp_path / "out")
    assert ran.returncode == 0, ran.stderr
    recording = Recording.load(tmp_path / "out")
    first, middle, last = metrics.subflows(recording, metrics.connection(recording, "pquic"))
    # The server has the first path alone until the others are open.
    assert first.bytes is not None
    assert first.bytes < 60_000
    assert min(middle.bytes or 0, last.bytes or 0) > 1_500_000
