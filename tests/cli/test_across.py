"""polypath compare --networks: one table over many networks."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from .conftest import Polypath

SCENARIO = """
name = "nets"
[host.client]
[host.server]
[link.a]
ends = ["client:eth0", "server:eth0"]
rate = "10 Mbps"
delay = "10 ms"
loss = "0.5 %"
[link.b]
ends = ["client:eth1", "server:eth1"]
rate = "5 Mbps"
delay = "30 ms"
[[application]]
name = "file"
kind = "bulk"
client = "client"
server = "server"
transport = "mptcp"
size = "100 kB"
[vary]
"link.a.rate" = ["5 Mbps", "20 Mbps"]
"link.b.delay" = ["10 ms", "50 ms"]
"""
BY = ("--by", "defaults.scheduler=default,redundant")
NETWORKS = ("--networks", "link.a.rate", "--networks", "link.b.delay")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "nets.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def test_one_table_over_all_networks(polypath: Polypath, file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = polypath("compare", file, *BY, *NETWORKS, "--seeds", "2", "--out", out)
    assert done.code == 0
    assert "nets: defaults.scheduler over 4 networks, each against default" in done.out
    assert done.out.count("redundant") == 1
    assert "warning: 2 seeds can show no win or loss in a network; take --seeds 6 or more" in done.err
    found = pl.read_parquet(out / "networks.parquet")
    assert found["networks"].to_list() == [4, 4]
    assert (out / "plots" / "profile-file-completion.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--networks", "link.a.rat"), "--networks: nets has no axis 'link.a.rat'; did you mean 'link.a.rate'?"),
        (
            ("--networks", "link.a.rate"),
            "axis 'link.b.delay' is neither compared nor a network: add it to the networks, or fix it",
        ),
    ],
)
def test_what_is_no_network_is_one_line(polypath: Polypath, file: Path, given: tuple[str, ...], message: str) -> None:
    done = polypath("compare", file, *BY, *given, "--seeds", "2")
    assert (done.code, message in done.err) == (2, True)
    assert "Traceback" not in done.err


def test_networks_go_with_by(polypath: Polypath, file: Path) -> None:
    done = polypath("compare", file, "--networks", "link.a.rate")
    assert (done.code, "--networks goes with --by" in done.err) == (2, True)
