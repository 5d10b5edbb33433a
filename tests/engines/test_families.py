"""IPv4 and IPv6 subflows in one connection, and segments as long as each family's packets allow."""

import shutil
import subprocess
from pathlib import Path

import pytest

from polypath.engines import Options, get
from polypath.results import Recording, metrics
from polypath.scenario import Scenario

SCENARIO = Path(__file__).with_name("families.toml")


def run(captures: Path, *settings: str) -> Recording:
    scenario = Scenario.load(SCENARIO).with_settings(list(settings))
    return get("sim").run(scenario.plan(), Options("hosts", captures))


def fields(capture: Path, wanted: str, *names: str) -> list[list[str]]:
    columns = [word for name in names for word in ("-e", name)]
    command = ["tshark", "-r", str(capture), "-Y", wanted, "-T", "fields", *columns]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in ran.stdout.splitlines()]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
@pytest.mark.parametrize("first", ["10.0.2.2", "2001:db8:2::2"])
@pytest.mark.parametrize("mtu", [1280, 1500, 9000])
def test_each_family_has_its_subflow_and_its_mss(tmp_path: Path, first: str, mtu: int) -> None:
    recording = run(tmp_path, f"application.iperf.destination={first}", f"defaults.mtu={mtu}")
    found = metrics.subflows(recording, metrics.connection(recording, "iperf"))
    assert sorted(subflow.destination.rsplit(":", 1)[0] for subflow in found) == ["10.0.2.2", "[2001:db8:2::2]"]
    assert all(subflow.share > 0.3 for subflow in found)
    for family, header in (("ip", 40), ("ipv6", 60)):
        syns = fields(tmp_path / "client.pcapng", f"{family} && tcp.flags.syn == 1", "tcp.options.mss_val")
        assert syns == [[str(mtu - header)]] * 2
        longest = max(int(each[0]) for each in fields(tmp_path / "client.pcapng", f"{family} && tcp", "frame.len"))
        assert longest == mtu + 14
