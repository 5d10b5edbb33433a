"""What the machine lacks is said in one line; any machine can be told of, so none of this needs one."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from polypath.engines import EngineError, get
from polypath.engines.live import engine
from polypath.engines.live.machine import Machine, MachineKernel, read
from polypath.engines.live.simulated import Simulated
from polypath.engines.namespaces import run, translation
from polypath.engines.namespaces.topology import Network
from polypath.engines.namespaces.wires import Netem
from polypath.engines.namespaces.wires import Wires as Laid
from polypath.scenario import Plan

Plans = Callable[..., Plan]
Wires = Callable[[Network], Laid]

STOCK = Machine(
    release="6.18.0",
    congestion=("reno", "cubic"),
    schedulers=("default",),
    settings=frozenset(
        f"ipv4/tcp_{name}"
        for name in (
            *("rmem", "wmem", "moderate_rcvbuf", "sack", "timestamps", "window_scaling", "ecn", "rto_min_us"),
            "no_metrics_save",
        )
    )
    | {"mptcp/scheduler", "mptcp/checksum_enabled", "mptcp/path_manager"},
    netem=False,
    tap=True,
)
SAID = """inside
mptcp 1
congestion reno cubic
schedulers default
settings ipv4/tcp_rmem mptcp/scheduler
subflows 64
tap
"""


def test_a_probe_is_read() -> None:
    found = read(SAID, "")
    assert (found.congestion, found.schedulers, found.subflows) == (("reno", "cubic"), ("default",), 64)
    assert (found.tap, found.netem) == (True, False)
    assert read(SAID + "netem\n", "").netem
    assert read(SAID.replace("subflows 64\n", ""), "").subflows == 8


@pytest.mark.parametrize(
    ("said", "complaint", "words"),
    [
        ("", "unshare: unshare failed: Operation not permitted\n", "refuses (unshare: unshare failed: Operation not"),
        (SAID.replace("mptcp 1\n", ""), "", "has no Multipath TCP"),
        (SAID.replace("mptcp 1", "mptcp 0"), "", "net.mptcp.enabled=1"),
        (SAID.replace("tap\n", ""), "", "has no netem, and no TAP"),
    ],
)
def test_a_machine_that_cannot_is_refused(said: str, complaint: str, words: str) -> None:
    with pytest.raises(EngineError) as caught:
        read(said, complaint)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "engine linux" in str(caught.value)


def _refusal(plan: Plan, machine: Machine) -> str:
    with pytest.raises(EngineError) as caught:
        translation.translate(plan.data, "none", Simulated, MachineKernel(machine))
    return str(caught.value)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("defaults.congestion=olia", "no congestion control 'olia', only reno, cubic"),
        ("defaults.scheduler=roundrobin", "no MPTCP scheduler 'roundrobin', only default"),
        ("defaults.scheduler=redundant", "one subflow"),
    ],
)
def test_what_the_kernel_lacks_is_refused(plans: Plans, setting: str, words: str) -> None:
    said = _refusal(plans("two_paths", setting), STOCK)
    assert words in said
    assert "\n" not in said


def test_subflows_beyond_the_kernels_are_refused(plans: Plans) -> None:
    data = plans("two_paths").data
    data["nodes"][0]["stack"]["path_manager"] = {"name": "ndiffports", "parameters": {"num_subflows": 9}}
    plan = Plan(data)
    assert "8 subflows of a connection at most, not 9" in _refusal(plan, STOCK)
    translation.translate(plan.data, "none", Simulated, MachineKernel(replace(STOCK, subflows=64)))


def test_subflows_beyond_the_kernels_own_path_manager_are_refused(plans: Plans) -> None:
    data = plans("four_by_four").data
    plan = Plan(data)
    said = "Linux opens 8 further subflows of a connection at most here, and fullmesh of client has 15 to server"
    assert _refusal(plan, STOCK) == said
    translation.translate(plan.data, "none", Simulated, MachineKernel(replace(STOCK, subflows=64)))
    data["nodes"][1]["stack"]["path_manager"] = {"name": "default", "parameters": {}}
    translation.translate(data, "none", Simulated, MachineKernel(STOCK))
    data["nodes"][0]["stack"]["path_manager"]["parameters"] = {"num_subflows": 3}
    assert _refusal(Plan(data), STOCK).endswith("and fullmesh of client has 11 to server")
    data["nodes"][0]["stack"]["path_manager"] = {"name": "endpoints", "parameters": {"subflows": 20}}
    assert _refusal(Plan(data), STOCK).endswith("and endpoints of client has subflows = 20")


def test_a_switch_that_an_older_kernel_lacks_matters_only_where_it_is_moved(plans: Plans) -> None:
    older = replace(STOCK, settings=STOCK.settings - {"ipv4/tcp_rto_min_us"})
    translation.translate(plans("two_paths").data, "none", Simulated, MachineKernel(older))
    assert "no net.ipv4.tcp_rto_min_us" in _refusal(plans("two_paths", "defaults.rto_min=10 ms"), older)
    # A second is what the profile rfc brings by itself.
    translation.translate(plans("two_paths", "defaults.profile=rfc").data, "none", Simulated, MachineKernel(older))


def _files(plan: Plan, **machine: Any) -> dict[str, str]:
    return translation.translate(plan.data, "none", Simulated, MachineKernel(replace(STOCK, **machine)))[1]


def test_an_application_asks_for_its_congestion_control_itself(plans: Plans) -> None:
    files = _files(plans("two_paths"))
    assert "congestion=cubic" in files["job"]
    assert "tcp_congestion_control" not in "".join(files.values())


def test_hosts_alone_are_namespaces(plans: Plans) -> None:
    files = _files(plans("two_paths"))
    added = files["ip-all.batch"].splitlines()
    assert added == ["netns add n0", "netns add n1"]


@pytest.mark.parametrize(("wires", "refused"), [(Simulated, False), (Netem, True)])
def test_delivery_opportunities_are_the_simulated_networks(
    plans: Plans, tmp_path: Path, wires: Wires, refused: bool
) -> None:
    (tmp_path / "trace").write_text("6\n")
    data = plans("two_paths", f'link.path0.rate={{ trace = "{tmp_path}/trace" }}').data
    said = pytest.raises(EngineError, match="Linux shapes at a rate") if refused else nullcontext()
    with said:
        translation.translate(data, "none", wires, MachineKernel(STOCK))


def test_links_cannot_be_captured_at_simulated_routers(plans: Plans) -> None:
    with pytest.raises(EngineError, match=r"^path0\.pcapng would be captured at a router"):
        translation.translate(plans("two_paths").data, "links", Simulated, MachineKernel(STOCK))


def test_a_run_that_would_take_too_long_is_refused_at_once(plans: Plans, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match="would take 3600 s of real time, more than 600 s: POLYPATH_LIVE_LIMIT=3600"):
        get("live").run(plans("two_paths", "duration=3600 s"))
    monkeypatch.setenv(engine.LIMIT.variable, "soon")
    with pytest.raises(EngineError, match="POLYPATH_LIVE_LIMIT is a number of seconds"):
        get("live").run(plans("two_paths"))


def test_a_run_that_does_not_end_is_ended_and_the_variable_gives_it_longer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(engine, "_MORE_S", 0.1)
    with pytest.raises(EngineError, match=r"after 0\.3 s on the wall \(POLYPATH_LIVE_LIMIT changes that\)"):
        run.follow(["sleep", "60"], tmp_path, engine._wall(0.2), lambda now: None)
    monkeypatch.setenv("POLYPATH_LIVE_LIMIT", "0.1")
    assert engine._wall(0.2).seconds() == pytest.approx(0.3)
    monkeypatch.setenv("POLYPATH_LIVE_LIMIT", "50")
    assert engine._wall(0.2).seconds() == 50


def test_how_late_the_network_was_is_said_where_it_told(tmp_path: Path) -> None:
    tally = tmp_path / "tally"
    assert engine._simulated(tally) == "simulated, interrupted before it told how late it was"
    tally.write_text("[9, 0, 0, 1500000]")
    assert engine._simulated(tally) == "simulated, up to 1.500 ms late"


def test_receive_buffers_have_the_least_of_the_release() -> None:
    assert MachineKernel(STOCK).least_receive_buffer == 1
    assert MachineKernel(replace(STOCK, release="7.2.12")).least_receive_buffer == 4096
