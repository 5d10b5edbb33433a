"""The tutorial's thirty files, where they lie beside the checkout, against what minitopo's own parser makes of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from polypath.formats import minitopo
from polypath.scenario import Scenario

DATA = Path(__file__).parents[3] / "shared" / "data"
ORACLE = DATA / "minitopo-parsed.json"

pytestmark = pytest.mark.skipif(not ORACLE.is_file(), reason="the tutorial's files are not here (../shared/data)")


def parsed(kind: str) -> dict[str, Any]:
    if not ORACLE.is_file():
        return {}
    return {name: value for name, value in json.loads(ORACLE.read_text()).items() if value["kind"] == kind}


def path(name: str) -> Path:
    return DATA / "minitopo" / name.split("/", 1)[1]


def test_all_thirty_files_are_there() -> None:
    assert len(parsed("topo")) + len(parsed("xp")) == 30


@pytest.mark.parametrize("name", parsed("topo"))
def test_topologies_are_read_as_minitopo_reads_them(name: str) -> None:
    wanted = parsed("topo")[name]
    topology = minitopo.parse_topo(path(name).read_text(), name)
    assert topology.topo_type == wanted["topoType"]
    assert len(topology.links) == len(wanted["links"])
    for link, oracle in zip(topology.links, wanted["links"], strict=True):
        changes = [{"at": change.at, "cmd": change.cmd} for change in link.netem_at]
        assert {**{key: getattr(link, key) for key in oracle}, "netem_at": changes} == oracle


@pytest.mark.parametrize("name", parsed("xp"))
def test_experiments_are_read_as_minitopo_reads_them(name: str) -> None:
    wanted = parsed("xp")[name]
    experiment = minitopo.parse_xp(path(name).read_text(), name)
    assert experiment.raw == wanted["raw"]
    ours = {key: experiment.values[key] for key in wanted["effective_common"]}
    assert ours.pop("snaplen_pcap") == wanted["raw"]["snaplenPcap"], "the alias that minitopo passes over"
    wanted["effective_common"].pop("snaplen_pcap")
    assert ours == wanted["effective_common"]


def pairs(kind: str) -> list[tuple[str, str]]:
    topologies, experiments = parsed("topo"), parsed("xp")
    return [
        (topo, xp)
        for topo in topologies
        for xp, value in experiments.items()
        if topo.rsplit("/", 1)[0] == xp.rsplit("/", 1)[0] and (value["raw"]["xpType"] == "pquic") == (kind == "quic")
    ]


@pytest.mark.parametrize(("topo", "xp"), pairs("mptcp"))
def test_every_mptcp_pair_gives_a_plan(topo: str, xp: str) -> None:
    scenario, _ = minitopo.load(path(topo), path(xp))
    assert Scenario.parse(scenario.to_toml(), "x") == scenario
    links = {link["name"]: link for link in scenario.plan().data["links"]}
    for oracle in parsed("topo")[topo]["links"]:
        link = links[f"path_{oracle['type']}_{oracle['id']}"]
        for direction in ("forward", "backward"):
            assert link[direction]["queue"]["bytes"] == oracle["tbf_limit_bytes"]
            assert link[direction]["rate_bps"] == oracle["bw_mbps"] * 1e6
            assert link[direction]["delay_ns"] == oracle["delay_ms"] * 1e6


@pytest.mark.parametrize(("topo", "xp"), pairs("quic"))
def test_every_quic_pair_gives_a_plan(topo: str, xp: str) -> None:
    scenario, _ = minitopo.load(path(topo), path(xp))
    assert Scenario.parse(scenario.to_toml(), "x") == scenario
    (application,) = scenario.plan().data["applications"]
    assert application["transport"] == ("quic" if xp.endswith("xp_quic") else "mpquic")
    assert application["work"]["size_bytes"] == 5_120_000
    three = topo.endswith("topo_3paths")
    sends = {side: application[f"{side}_stack"]["send_paths"] for side in ("client", "server")}
    if three and xp.endswith("asym"):
        assert sends == {"client": [0, 1], "server": [1, 2]}
    elif three and "mpquic" in xp:
        assert sends == {"client": [0, 1], "server": [0, 1]}
    else:
        assert sends == {"client": [], "server": []}
