"""Plans that the guest can have become commands; others are refused in one line. No kernel is needed here."""

from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_address
from typing import Any

import pytest

from polypath import registry
from polypath.engines import EngineError
from polypath.engines.linux.engine import translate
from polypath.engines.namespaces import iperf3, paths, shaping
from polypath.engines.namespaces.kernel import Kernel
from polypath.engines.namespaces.topology import End, Network
from polypath.plan.routing import Routing
from polypath.scenario import Scenario

Plan = dict[str, Any]


def _choose(field: str, name: str, **parameters: Any) -> Callable[[Plan], None]:
    def change(plan: Plan) -> None:
        plan["nodes"][0]["stack"][field] = {"name": name, "parameters": parameters}

    return change


def _set(field: str, value: Any) -> Callable[[Plan], None]:
    def change(plan: Plan) -> None:
        plan["nodes"][0]["stack"][field] = value

    return change


def _red(plan: Plan) -> None:
    plan["links"][0]["forward"]["queue"] = {"kind": "red"}


def _queue(**queue: Any) -> Callable[[Plan], None]:
    def change(plan: Plan) -> None:
        plan["links"][0]["forward"]["queue"] = queue

    return change


DRR = {"kind": "drr", "limit": 127, "quantum_bytes": 1514, "flows": 1024}
PIE = {
    "kind": "pie",
    "target_ns": 15_000_000,
    "tupdate_ns": 16_000_000,
    "alpha": 0.125,
    "beta": 1.25,
    "limit": 1000,
    "ecn": True,
}
FQ_PIE = PIE | {
    "kind": "fq-pie",
    "limit": 10240,
    "quantum_bytes": 1514,
    "flows": 1024,
    "ecn_prob": 0.1,
}
FQ_CODEL = {
    "kind": "fq-codel",
    "target_ns": 5_000_000,
    "interval_ns": 100_000_000,
    "limit": 10240,
    "quantum_bytes": 1514,
    "flows": 1024,
    "drop_batch": 64,
    "ecn": False,
}


def _traced(plan: Plan) -> None:
    plan["links"][0]["backward"]["trace"] = {"name": "lte.down", "gaps_ms": [[1, 10]]}


def _decided(plan: Plan) -> None:
    plan["record"]["decisions"] = True


def _faded(plan: Plan) -> None:
    plan["links"][0]["forward"]["loss"] = {"kind": "timed-gilbert-elliott"}


def _counted(plan: Plan) -> None:
    plan["links"][0]["forward"]["loss"] = {"kind": "periodic", "every": 100}


def _bypassed(plan: Plan) -> None:
    plan["links"][0]["forward"]["bypass_bytes"] = 200


def _same_port(plan: Plan) -> None:
    plan["applications"].append(plan["applications"][0])


def _many_addresses(plan: Plan) -> None:
    plan["nodes"][0]["interfaces"][0]["addresses"] += [f"10.9.0.{number}" for number in range(1, 9)]


def _small_ipv6(plan: Plan) -> None:
    plan["nodes"][0]["stack"]["mtu"] = 576
    plan["nodes"][0]["interfaces"][0]["addresses"] += ["fd00::1"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_choose("scheduler", "redundant"), "one subflow"),
        (_choose("scheduler", "roundrobin", num_segments=2), "num_segments=1 only, not 2"),
        (_choose("scheduler", "kbest", k=9), "not 9"),
        (_choose("scheduler", "ecf", variant="mptcp.org"), "variant=paper only, not mptcp.org"),
        (_choose("scheduler", "ecf", beta=0.5), "beta=0.25 only, not 0.5"),
        (_choose("scheduler", "blest", **{"lambda": 1.5}), "lambda=1.0 only, not 1.5"),
        (_choose("scheduler", "ecf", penalisation=True), "ecf with penalisation=false only, not true"),
        (
            _choose("scheduler", "linux", opportunistic_retransmission=True),
            "opportunistic_retransmission=false only, not true",
        ),
        (_choose("scheduler", "otias"), "no scheduler 'otias'"),
        (
            _choose("congestion", "wvegas"),
            "'wvegas' (--engine sim has); it has reno, cubic, bbr, vegas, scalable, westwood, htcp, illinois, cdg, "
            "dctcp, lia, olia, balia",
        ),
        (_choose("congestion", "olia", variant="mptcp.org"), "variant=draft only"),
        (_choose("path_manager", "binder"), "no path manager 'binder' (--engine sim has)"),
        (_choose("path_manager", "ndiffports", num_subflows=65536), "64 subflows of a connection at most, not 65536"),
        (_many_addresses, "8 addresses"),
        (_set("recovery", "classic"), "recovery 'prr' only, not 'classic': it cannot be switched off"),
        (_set("rto_initial_ns", 3_000_000_000), "rto_initial 1000 ms only"),
        (_set("delayed_ack_ns", 20_000_000), "delayed_ack 40 ms, a constant, or 0 s, the quickack of a route"),
        (
            _set("receive_buffer", [2900, 5000, 5000]),
            "receive buffers from 4096 bytes on (net.ipv4.tcp_rmem), not 2900",
        ),
        (_small_ipv6, "no IPv6 where the MTU is below 1280 bytes, and client has 576"),
        (_set("keepalive", {"time_ns": 1, "interval_ns": 10**9, "probes": 1}), "keepalive_time in whole seconds"),
        (
            _set("keepalive", {"time_ns": 10**9, "interval_ns": 10**15, "probes": 1}),
            "keepalive_interval in whole seconds",
        ),
        (_set("user_timeout_ns", 10**9), "no user_timeout for sockets of Multipath TCP"),
        (_red, "no queue 'red'; it has drop-tail, codel, pie, drr, fq-codel and fq-pie"),
        (_queue(kind="step", mark_above=20, limit=100), "no queue 'step'"),
        (_queue(kind="dualpi2"), "cannot set up queue 'dualpi2' (--engine sim has)"),
        (_queue(**FQ_PIE | {"ecn_prob": 0.105}), "fq-pie's ecn_prob in whole percent"),
        (_queue(**FQ_PIE | {"alpha": 0.1}), "fq-pie's alpha and beta in sixteenths up to 2"),
        (_queue(**DRR | {"limit": 128}), "(sfq) takes a limit of drr up to 127 packets"),
        (_queue(**DRR | {"flows": 1000}), "a power of two of queues"),
        (_queue(**PIE | {"alpha": 0.1}), "pie's alpha and beta in sixteenths up to 2"),
        (_queue(**PIE | {"beta": 2.5}), "pie's alpha and beta in sixteenths up to 2"),
        (_traced, "follows the trace lte.down backward: Linux shapes at a rate"),
        (_decided, "Linux does not tell what its schedulers decide: [record] decisions is for engine sim"),
        (_faded, "netem has no loss 'timed-gilbert-elliott' (--engine sim has): its chain moves per packet"),
        (_counted, "netem has no loss 'periodic' (--engine sim has): its losses are drawn"),
        (_bypassed, "no real link has a 'bypass' (--engine sim has)"),
        (_same_port, "share port"),
        (
            lambda plan: plan["applications"][0].update(work={"kind": "messages"}),
            "Linux has no application 'messages' over TCP",
        ),
        (
            lambda plan: plan["applications"][0].update(transport="udp", work={"kind": "drip"}),
            "Linux has no application 'drip' that sends datagrams",
        ),
        (lambda plan: plan.update(routing="ecmp"), "no routing 'ecmp'"),
        (lambda plan: plan.update(controller={"mode": "reactive"}), "no flow tables that a controller could fill"),
    ],
)
def test_what_the_kernel_lacks_is_refused_with_the_reason(
    refusal: Callable[..., str], change: Callable[[Plan], None], words: str
) -> None:
    said = refusal(change)
    assert words in said
    assert "\n" not in said


def test_a_setting_that_no_kernel_is_told_is_refused(
    refusal: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = registry.find

    def with_naps(kind: registry.Kind, name: str) -> registry.Entry:
        entry = find(kind, name)
        naps = replace(entry.parameters[0], name="naps", field="naps", default=0, only="tcp")
        return replace(entry, parameters=(*entry.parameters, naps))

    def change(plan: Plan) -> None:
        monkeypatch.setattr(registry, "find", with_naps)
        plan["nodes"][0]["stack"]["naps"] = 4

    assert "no kernel can be told 'naps'; leave it out" in refusal(change)


def test_a_queue_in_packets_is_serialised_packet_by_packet(scenario: Callable[..., Scenario]) -> None:
    channel = scenario("pair").plan(None).data["links"][0]["forward"]
    root, child = shaping.commands("b0", channel)
    assert "delay 20000.000us" in root
    # the packet in transmission is not one that waits
    assert child.endswith("netem limit 101 rate 20000000bit")


def test_what_a_distribution_spreads_is_a_microsecond_at_least(scenario: Callable[..., Scenario]) -> None:
    """tc refuses less."""

    def delay(delay_ns: int, jitter_ns: int) -> str:
        data = scenario("pair").plan(None).data
        data["links"][0]["forward"] |= {"delay_ns": delay_ns, "jitter_ns": jitter_ns}
        netem = next(line for line in translate(data)[1]["shape.batch"].splitlines() if " netem " in line)
        return netem.split(" delay ")[1].split(" rate ")[0]

    assert delay(584_152, 727) == "584.152us 1.000us distribution normal"
    assert delay(400, 727) == "1.000us 1.000us distribution normal"
    assert delay(2_000, 1_500) == "2.000us 1.500us distribution normal"
    assert delay(400, 0).startswith("0.400us")


def test_a_bucket_holds_no_more_than_the_longest_packet_that_is_sent(scenario: Callable[..., Scenario]) -> None:
    """What it holds leaves at once: of TCP the most that both ends take, though one of them could send more."""

    def burst(mtus: tuple[int, int], **application: Any) -> str:
        data = scenario("pair", "link.path0.queue=30 kB").plan(None).data
        ends = data["applications"][0]["client"], data["applications"][0]["server"]
        for node, mtu in zip(ends, mtus, strict=True):
            data["nodes"][node]["stack"]["mtu"] = mtu
        data["applications"] = [data["applications"][0] | application]
        bucket = next(line for line in translate(data)[1]["shape.batch"].splitlines() if "tbf" in line)
        return bucket.split(" burst ")[1].split()[0]

    assert burst((1500, 9000)) == "1514b"
    assert burst((9000, 9000)) == "9014b"
    datagrams = {"kind": "cbr", "rate_bps": 1_000_000, "duration_ns": 1_000_000_000}
    assert burst((1500, 9000), transport="udp", work=datagrams | {"packet_bytes": 1000}) == "1514b"
    assert burst((1500, 9000), transport="udp", work=datagrams | {"packet_bytes": 4000}) == "4062b"


@pytest.mark.parametrize("size", [7, 8, 65_507, 65_508])
def test_a_datagram_has_its_time_and_no_more_than_udp_takes(scenario: Callable[..., Scenario], size: int) -> None:
    data = scenario("pair").plan(None).data
    work = {"kind": "cbr", "rate_bps": 1_000_000, "packet_bytes": size, "duration_ns": 1_000_000_000}
    data["applications"] = [data["applications"][0] | {"transport": "udp", "work": work}]
    if size in (8, 65_507):
        assert f"packet={size} " in translate(data)[1]["job"]
        return
    with pytest.raises(EngineError, match=rf"sends datagrams of {size} bytes: Linux's UDP takes 65507, and each here"):
        translate(data)


def test_a_queue_in_bytes_is_a_token_bucket(scenario: Callable[..., Scenario]) -> None:
    changed = scenario("pair", "link.path0.queue=30 kB", "link.path0.burst=15 kB")
    _, child = shaping.commands("b0", changed.plan(None).data["links"][0]["forward"])
    assert child.endswith("tbf rate 20000000bit burst 15000b limit 30000b")


def test_a_queue_without_a_limit_has_the_longest_that_tc_takes(scenario: Callable[..., Scenario]) -> None:
    channel = scenario("pair", "link.path0.burst=15 kB").plan(None).data["links"][0]["forward"]
    channel |= {"queue": {"kind": "drop-tail", "packets": None, "bytes": None}}
    _, child = shaping.commands("b0", channel, packet=9014)
    assert child.endswith(f"limit {2**32 - 1}b")


def test_an_interface_that_is_down_does_not_go_down_again(scenario: Callable[..., Scenario]) -> None:
    plan = scenario("pair").plan(None).data
    plan["events"] = [
        {"at_ns": at, "action": {"kind": "interface", "node": 0, "interface": 1, "up": up}}
        for at, up in ((1, True), (2, False), (3, False), (5, True), (4, True))
    ]
    _, files = translate(plan)
    assert [line for line in files["job"].splitlines() if line.startswith("event")] == [
        "event 2 ip -n n0 -force -batch event-1.batch",
        "event 4 ip -n n0 -force -batch event-4.batch && sh event-4.sh n0",
    ]
    assert "link set eth1 down" in files["event-1.batch"]
    assert "link set eth1 up" in files["event-4.batch"]


def test_a_priority_of_an_interface_that_is_down_counts_once_it_is_up(scenario: Callable[..., Scenario]) -> None:
    plan = scenario("pair").plan(None).data
    priority = {"kind": "priority", "node": 0, "interface": 1}
    interface = {"kind": "interface", "node": 0, "interface": 1}
    plan["events"] = [
        {"at_ns": 1, "action": interface | {"up": False}},
        {"at_ns": 2, "action": priority | {"backup": True}},
        {"at_ns": 3, "action": interface | {"up": True}},
        {"at_ns": 4, "action": priority | {"backup": False}},
        {"at_ns": 5, "action": interface | {"up": False}},
        {"at_ns": 6, "action": interface | {"up": True}},
    ]
    _, files = translate(plan)
    events = [line.split()[1] for line in files["job"].splitlines() if line.startswith("event")]
    assert events == ["1", "3", "4", "5", "6"]
    assert "mptcp endpoint add 10.0.1.1 id 2 dev eth1 subflow fullmesh backup 2>/dev/null ||" in files["event-2.sh"]
    assert "nobackup" in files["event-3.sh"]
    assert "mptcp endpoint add 10.0.1.1 id 2 dev eth1 subflow fullmesh 2>/dev/null ||" in files["event-5.sh"]


def test_a_host_whose_last_interface_goes_down_keeps_its_endpoints(scenario: Callable[..., Scenario]) -> None:
    """Those of fullmesh, as in the simulator: its subflows go on trying."""
    plan = scenario("pair").plan(None).data
    plan["events"] = [
        {"at_ns": at, "action": {"kind": "interface", "node": 0, "interface": interface, "up": up}}
        for at, interface, up in ((1, 0, False), (2, 1, False), (3, 1, True), (4, 0, True), (5, 1, False))
    ]
    _, files = translate(plan)
    events = [files[f"event-{number}.batch"] for number in range(5)]
    assert "endpoint delete id 1" in events[0]
    assert "endpoint" not in events[1]
    assert "link set eth1 down" in events[1]
    assert "endpoint" not in events[2]
    assert "endpoint add 10.0.0.1" in files["event-3.sh"]
    assert "endpoint delete id 2" in events[4]


def test_endpoints_leave_with_their_interface(scenario: Callable[..., Scenario]) -> None:
    """Also those of the last one; and none of path managers that do not look after them."""
    for parameters, deleted in (({"flags": "subflow"}, True), ({"flags": "none"}, False)):
        plan = scenario("pair").plan(None).data
        _managed(plan, 0, "endpoints", **parameters)
        priority = {"kind": "priority", "node": 0, "interface": 0, "backup": True}
        plan["events"] = [
            {"at_ns": at, "action": {"kind": "interface", "node": 0, "interface": interface, "up": False}}
            for at, interface in ((1, 0), (2, 1))
        ] + [{"at_ns": 3, "action": priority}]
        _, files = translate(plan)
        for number in range(2):
            assert (f"endpoint delete id {number + 1}" in files[f"event-{number}.batch"]) == deleted
            assert f"link set eth{number} down" in files[f"event-{number}.batch"]
        assert ("event-2.batch" in files) != deleted


def test_endpoints_of_an_interface_leave_in_the_order_of_its_addresses(scenario: Callable[..., Scenario]) -> None:
    """As the simulator tells its connections of them, in whatever order they are listed."""
    plan = scenario("pair").plan(None).data
    addresses = plan["nodes"][0]["interfaces"][0]["addresses"]
    addresses.append("fd00:77::1")
    first, second = addresses
    _managed(plan, 0, "endpoints", endpoints=[f"{second} signal", f"{first} subflow"])
    down = {"kind": "interface", "node": 0, "interface": 0, "up": False}
    plan["events"] = [{"at_ns": 1, "action": down}]
    deleted, *rest = translate(plan)[1]["event-0.batch"].splitlines()
    assert deleted == "mptcp endpoint delete id 1"
    assert rest[0] == "mptcp endpoint delete id 2"


def _managed(plan: Plan, host: int, name: str, **parameters: Any) -> None:
    plan["nodes"][host]["stack"]["path_manager"] = {"name": name, "parameters": parameters}


@pytest.mark.parametrize(
    ("host", "manager", "parameters"),
    [("client", "default", {}), ("client", "endpoints", {"flags": "none"}), ("server", "fullmesh", {})],
)
def test_where_nothing_is_opened_events_find_endpoints_without_a_task(
    scenario: Callable[..., Scenario], host: str, manager: str, parameters: dict[str, Any]
) -> None:
    plan = scenario("pair").plan(None).data
    node = next(index for index, each in enumerate(plan["nodes"]) if each["name"] == host)
    _managed(plan, node, manager, **parameters)
    assert "endpoint" not in translate(plan)[1][f"mptcp-n{node}.batch"]
    plan["events"] = [{"at_ns": 1, "action": {"kind": "priority", "node": node, "interface": 0, "backup": True}}]
    _, files = translate(plan)
    _, first, *_ = files[f"mptcp-n{node}.batch"].splitlines()
    address = plan["nodes"][node]["interfaces"][0]["addresses"][0]
    assert first == f"mptcp endpoint add {address} id 1 dev eth0"
    assert files["event-0.batch"] == "mptcp endpoint change id 1 backup nofullmesh\n"


def test_endpoints_are_added_in_their_order_with_flags_and_port(scenario: Callable[..., Scenario]) -> None:
    plan = scenario("pair").plan(None).data
    first, second = (interface["addresses"][0] for interface in plan["nodes"][0]["interfaces"][:2])
    _managed(plan, 0, "endpoints", endpoints=[f"{second} signal port 10100", f"{first} subflow fullmesh"])
    _, *endpoints = translate(plan)[1]["mptcp-n0.batch"].splitlines()
    assert endpoints == [
        f"mptcp endpoint add {second} id 2 dev eth1 signal port 10100",
        f"mptcp endpoint add {first} id 1 dev eth0 subflow fullmesh",
    ]


@pytest.mark.parametrize("names", [["10.9.9.9 subflow"], ["{0} subflow", "{0} signal"]])
def test_an_endpoint_is_an_address_of_its_host_named_once(refusal: Callable[..., str], names: list[str]) -> None:
    def change(plan: Plan) -> None:
        own = plan["nodes"][0]["interfaces"][0]["addresses"][0]
        _managed(plan, 0, "endpoints", endpoints=[name.format(own) for name in names])

    assert "which is no address of its host, or twice" in refusal(change)


def test_settings_that_a_plan_seldom_names_become_files(scenario: Callable[..., Scenario]) -> None:
    settings = (
        "allow_join_initial_addr_port=false",
        "add_addr_timeout=1 s",
        "close_timeout=3 s",
        "stale_loss_cnt=9",
        "blackhole_timeout=0 s",
        "syn_retrans_before_tcp_fallback=0",
    )
    plan = scenario("pair", *(f"host.client.{setting}" for setting in settings)).plan(None).data
    written = translate(plan)[1]["sysctl-n0.sh"]
    for name, value in (
        ("allow_join_initial_addr_port", 0),
        ("add_addr_timeout", 1),
        ("close_timeout", 3),
        ("stale_loss_cnt", 9),
        ("blackhole_timeout", 0),
        ("syn_retrans_before_tcp_fallback", 0),
    ):
        assert f"echo '{value}' > /proc/sys/net/mptcp/{name}" in written
    assert "stale_loss_cnt" not in translate(plan)[1]["sysctl-n1.sh"]


@pytest.mark.parametrize(
    ("settings", "value"), [((), 0), (("ecn",), 1), (("accurate_ecn",), 3), (("ecn", "accurate_ecn"), 3)]
)
def test_accurate_feedback_falls_back_to_classic_ecn(
    scenario: Callable[..., Scenario], settings: tuple[str, ...], value: int
) -> None:
    """The values of net.ipv4.tcp_ecn (`enum tcp_ecn_mode` of include/net/tcp_ecn.h)."""
    plan = scenario("pair", *(f"defaults.{setting}=true" for setting in settings)).plan(None).data
    assert Kernel().settings(plan["nodes"][0]["stack"])["ipv4/tcp_ecn"] == value


def test_a_timeout_of_part_of_a_second_is_refused(refusal: Callable[..., str]) -> None:
    def change(plan: Plan) -> None:
        plan["nodes"][0]["stack"]["add_addr_timeout_ns"] = 1_500_000_000

    assert "Linux takes whole seconds, not 1.5 s" in refusal(change)


@pytest.mark.parametrize("manager", ["default", "fullmesh", "ndiffports"])
def test_a_server_whose_interface_is_a_backup_says_so(scenario: Callable[..., Scenario], manager: str) -> None:
    """In its answer to MP_JOIN, for which the kernel looks among the endpoints."""
    plan = scenario("pair").plan(None).data
    node = next(index for index, each in enumerate(plan["nodes"]) if each["name"] == "server")
    _managed(plan, node, manager)
    plan["nodes"][node]["interfaces"][0]["backup"] = True
    address = plan["nodes"][node]["interfaces"][0]["addresses"][0]
    _, *endpoints = translate(plan)[1][f"mptcp-n{node}.batch"].splitlines()
    assert endpoints[0] == f"mptcp endpoint add {address} id 1 dev eth0 backup"


@pytest.mark.parametrize("manager", ["fullmesh", "ndiffports"])
@pytest.mark.parametrize("action", [{"kind": "priority", "backup": True}, {"kind": "interface", "up": False}])
def test_a_path_manager_in_user_space_follows_no_events(
    refusal: Callable[..., str], scenario: Callable[..., Scenario], manager: str, action: dict[str, Any]
) -> None:
    def change(plan: Plan) -> None:
        _managed(plan, 0, manager, num_subflows=2)
        plan["events"] = [{"at_ns": 1, "action": action | {"node": 0, "interface": 1}}]

    assert f"{manager} of host client is a path manager in user space here" in refusal(change)
    plan = scenario("pair").plan(None).data
    change(plan)
    plan["applications"][0]["transport"] = "tcp"
    assert translate(plan)


def test_an_application_has_the_first_address_of_its_hosts_as_in_the_simulator(
    scenario: Callable[..., Scenario],
) -> None:
    """Though the way by the second interface is the shorter one."""
    plan = scenario("pair", 'link.path1.delay="1 ms"').plan(None).data
    _, files = translate(plan)
    (client,) = [line for line in files["job"].splitlines() if "side=client" in line]
    assert "source=10.0.0.1 " in client
    assert "destination=10.0.2.2 " in client


def test_a_queue_of_a_host_needs_a_rate(scenario: Callable[..., Scenario]) -> None:
    channel = scenario("pair").plan(None).data["links"][0]["forward"]
    assert shaping.host_commands("eth0", channel)
    assert shaping.host_commands("eth0", channel | {"rate_bps": None}) == []


def test_an_mtu_that_ipv6_cannot_have_is_none_of_ipv4s_concern(scenario: Callable[..., Scenario]) -> None:
    plan = scenario("pair", "defaults.mtu=576").plan(None).data
    _, files = translate(plan)
    assert "addrgenmode" not in files["ip-n0.batch"]
    assert "link set eth0 up" in files["ip-n0.batch"]


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        (DRR, "sfq limit 127 quantum 1514b divisor 1024"),
        (PIE, "pie limit 1000 target 15000.0us tupdate 16000.0us alpha 2 beta 20 ecn"),
        (
            FQ_PIE,
            "fq_pie limit 10240 flows 1024 quantum 1514 ecn_prob 10 "
            "target 15000.0us tupdate 16000.0us alpha 2 beta 20 ecn",
        ),
        (
            FQ_CODEL,
            "fq_codel limit 10240 quantum 1514 flows 1024 drop_batch 64 target 5000.0us interval 100000.0us noecn",
        ),
    ],
    ids=lambda each: each["kind"] if isinstance(each, dict) else "",
)
def test_a_discipline_is_below_a_token_bucket(
    scenario: Callable[..., Scenario], queue: dict[str, Any], words: str
) -> None:
    channel = scenario("pair").plan(None).data["links"][0]["forward"] | {"queue": queue}
    _, bucket, inner = shaping.commands("b0", channel)
    assert bucket.endswith("tbf rate 20000000bit burst 1514b limit 1514000000b")
    assert inner.endswith(f"parent 10:1 handle 11: {words}")


def test_a_link_that_is_down_loses_everything(scenario: Callable[..., Scenario]) -> None:
    channel = scenario("pair").plan(None).data["links"][0]["forward"]
    root, child = shaping.commands("b0", channel | {"up": False})
    assert "loss 100%" in root
    assert child.endswith("blackhole")
    assert "loss" not in shaping.commands("b0", channel)[0]


def test_a_link_without_a_rate_passes_everything_once_it_is_up_again(scenario: Callable[..., Scenario]) -> None:
    channel = scenario("pair").plan(None).data["links"][0]["forward"] | {"rate_bps": None}
    assert len(shaping.commands("b0", channel)) == 1
    assert shaping.commands("b0", channel, "replace")[-1].endswith("handle 10: pfifo limit 1000000")


def _endpoints(scenario: Callable[..., Scenario], **parameters: Any) -> list[str]:
    data = scenario("pair").plan(None).data
    _choose("path_manager", "endpoints", **parameters)(data)
    network = Network(data)
    client = next(index for index, node in enumerate(network.nodes) if node["name"] == "client")
    return paths.of_host(network, Kernel(), client).commands()


def test_endpoints_have_the_flags_and_limits_that_were_chosen(scenario: Callable[..., Scenario]) -> None:
    limits, *endpoints = _endpoints(scenario)
    assert limits == "mptcp limits set subflows 2 add_addr_accepted 0"
    assert [line.split()[3] for line in endpoints] == ["10.0.0.1", "10.0.1.1"]
    assert all(line.endswith(" subflow") for line in endpoints)
    limits, *endpoints = _endpoints(scenario, flags="fullmesh", subflows=5, add_addr_accepted=3)
    assert limits == "mptcp limits set subflows 5 add_addr_accepted 3"
    assert all(line.endswith(" subflow fullmesh") for line in endpoints)
    assert len(_endpoints(scenario, flags="none")) == 1


@pytest.mark.parametrize("name", ["default", "ndiffports"])
def test_a_path_manager_that_leaves_announcements_alone_accepts_none(
    scenario: Callable[..., Scenario], name: str
) -> None:
    data = scenario("pair").plan(None).data
    for node in data["nodes"]:
        if node["stack"]:
            node["stack"]["path_manager"] = {"name": name, "parameters": {}}
    network = Network(data)
    hosts = {node["name"]: index for index, node in enumerate(network.nodes)}
    limits, *endpoints = paths.of_host(network, Kernel(), hosts["server"]).commands()
    assert limits.endswith("add_addr_accepted 0")
    assert endpoints == []


def test_next_hops_go_through_switches_and_never_through_hosts(scenario: Callable[..., Scenario]) -> None:
    network = Network(scenario("everything").plan(None).data)
    names = {node["name"]: index for index, node in enumerate(network.nodes)}
    address = {str(known): known for known in network.owner}
    hop = network.next_hop(names["client"], address["10.1.0.1"], out=0)
    assert hop is not None
    assert hop.to.node == names["r"]
    back = network.next_hop(names["r"], address["10.0.0.1"])
    assert back is not None
    assert back.to == End(names["client"], 0)
    assert network.next_hop(names["server"], address["10.0.1.1"]) is not None


def test_packets_without_a_source_leave_where_the_host_has_an_address_for_them() -> None:
    """By an interface without one, the kernel gives them an address of another (`inet_select_addr`)."""
    described = """
[host.a]
interface.near.address = "fd00:1::1"
interface.far.address = "10.0.0.1"
[host.b]
interface.eth0.address = ["fd00:2::1", "10.0.1.1"]
[router.r]
[link.near]
ends = ["a:near", "r"]
delay = "1 ms"
[link.far]
ends = ["a:far", "r"]
delay = "20 ms"
[link.b]
ends = ["b", "r"]
[[application]]
kind = "bulk"
client = "a"
server = "b"
size = "1 kB"
"""
    network = Network(Scenario.parse(described, "families").plan().data)
    hops = {str(address): network.next_hop(0, address) for address in network.owner}
    assert {
        address: hop and hop.out for address, hop in hops.items() if network.owner[ip_address(address)].node == 1
    } == {
        "10.0.1.1": End(0, 1),
        "fd00:2::1": End(0, 0),
    }


def test_a_host_is_reached_over_any_of_its_interfaces() -> None:
    described = """
[host.client]
[host.server]
[switch.s0]
[switch.s1]
[link.c0]
ends = ["client:eth0", "s0"]
[link.c1]
ends = ["client:eth1", "s1"]
[link.v0]
ends = ["s0", "server:eth0"]
[link.v1]
ends = ["s1", "server:eth1"]
"""
    network = Network(Scenario.parse(described, "apart").plan(None).data)
    for address, owner in network.owner.items():
        other = 1 - owner.node
        for out in (0, 1):
            hop = network.next_hop(other, address, out=out)
            assert hop is not None
            assert hop.to == End(owner.node, out)


def test_of_equal_paths_routers_take_the_simulator_s() -> None:
    described = """
[host.client]
[host.server]
[router.a]
[router.b]
[link.access]
ends = ["client", "a:access"]
[link.one]
ends = ["a", "b"]
[link.two]
ends = ["a", "b"]
[link.last]
ends = ["b:last", "server"]
"""
    plan = Scenario.parse(described, "equal").plan(None).data
    plan["links"][1:3] = plan["links"][2:0:-1]
    (client, server), (a, _) = (
        [each for each in range(4) if plan["nodes"][each]["kind"] == k] for k in ("host", "router")
    )
    source, destination = (plan["nodes"][each]["interfaces"][0]["addresses"][0] for each in (client, server))
    hop = Network(plan).next_hop(a, ip_address(destination))
    way = Routing(plan).between(source, destination)
    assert hop is not None
    assert way is not None
    taken = plan["links"][way.hops[1].link]
    assert (hop.out, hop.to) == tuple(End(**taken[end]) for end in "ab")


@pytest.mark.parametrize(
    ("tls", "words"),
    [
        ("1.2", "hello1=134 answer1=1229 hello2=93 answer2=51"),
        ("1.3", "hello1=194 answer1=1274 parting=64"),
    ],
)
def test_a_fetch_over_tls_has_its_handshake(scenario: Callable[..., Scenario], tls: str, words: str) -> None:
    data = scenario("pair").plan(None).data
    data["applications"][0]["work"] = {"kind": "fetch", "size_bytes": 0, "count": 1, "tls": tls}
    assert words in translate(data)[1]["job"]


def test_a_fetch_has_heads_of_http(scenario: Callable[..., Scenario]) -> None:
    data = scenario("pair").plan(None).data
    data["applications"][0]["work"] = {"kind": "fetch", "size_bytes": 1000, "count": 1}
    words = dict(word.split("=", 1) for word in translate(data)[1]["job"].split() if "=" in word)
    head = bytes.fromhex(words["response_head"])
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert head.endswith(b"\r\nContent-Length: 1000\r\n\r\n")
    assert int(words["response"]) == len(head) + 1000
    assert int(words["request"]) == len(bytes.fromhex(words["request_head"]))


def test_a_two_way_transfer_has_two_sizes(scenario: Callable[..., Scenario]) -> None:
    data = scenario("pair").plan(None).data
    sizes = {"size_bytes": 2000, "reverse_bytes": 1000}
    data["applications"][0]["work"] = {"kind": "bulk", "duration_ns": None, "reverse": False, **sizes}
    assert {"size=2000", "back=1000"} <= {*translate(data)[1]["job"].split()}


def test_a_pause_is_told_only_where_there_is_one(scenario: Callable[..., Scenario]) -> None:
    data = scenario("pair").plan(None).data
    work: dict[str, Any] = {"kind": "bulk", "duration_ns": None, "reverse": False, "size_bytes": 2000}
    data["applications"][0]["work"] = work
    assert "first=" not in translate(data)[1]["job"]
    data["applications"][0]["work"] = work | {"first_bytes": 100, "pause_ns": 200}
    assert {"first=100", "pause=200"} <= {*translate(data)[1]["job"].split()}


def test_the_same_plan_gives_the_same_files(scenario: Callable[..., Scenario]) -> None:
    plan = scenario("everything").plan(None)
    assert translate(plan.data)[1] == translate(plan.data)[1]


def _iperf3(plan: Plan, **work: Any) -> None:
    plan["applications"][0] |= {"program": "iperf3"}
    plan["applications"][0]["work"] |= work


@pytest.mark.parametrize(
    ("work", "words"),
    [
        ({"duration_ns": 1_500_000_000}, "whole seconds, and application 'blocks' has 1.5 s"),
        ({"duration_ns": None, "size_bytes": 150_000}, "has arrived; give application 'blocks' a duration"),
    ],
)
def test_what_iperf3_cannot_do_is_refused(
    refusal: Callable[..., str], monkeypatch: pytest.MonkeyPatch, work: dict[str, int], words: str
) -> None:
    monkeypatch.setattr(iperf3, "flag", lambda: None)
    assert words in refusal(lambda plan: _iperf3(plan, **work))


@pytest.mark.parametrize(("setting", "value"), [("cork", True), ("user_timeout_ns", 10**9)])
def test_what_iperf3_does_not_ask_of_its_sockets(refusal: Callable[..., str], setting: str, value: Any) -> None:
    def change(plan: Plan) -> None:
        _iperf3(plan)
        _set(setting, value)(plan)

    assert f"iperf3 does not ask its sockets for {setting.removesuffix('_ns')}" in refusal(change)


def test_iperf3_that_is_not_there_is_one_line(refusal: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    iperf3.flag.cache_clear()
    monkeypatch.setattr("polypath.engines.namespaces.programs.PATH", "/nowhere")
    said = refusal(_iperf3)
    iperf3.flag.cache_clear()
    assert said == "an application is to be played by iperf3, which is not here (apt-get install iperf3)"


@pytest.mark.parametrize("flag", [None, "--mptcp"])
def test_iperf3_is_told_what_the_application_does(
    scenario: Callable[..., Scenario], monkeypatch: pytest.MonkeyPatch, flag: str | None
) -> None:
    monkeypatch.setattr(iperf3, "flag", lambda: flag)
    data = scenario("pair").plan(None).data
    _iperf3(data)
    job = translate(data)[1]["job"].splitlines()
    (client,) = (line for line in job if "iperf3 side=client" in line)
    for word in ("rate=4000000", "block=1000", "duration=10000000000", "reverse=0", "nodelay=1", "transport=mptcp"):
        assert word in client.split()
    assert ("mptcp=--mptcp" in client.split()) == (flag is not None)
