"""minitopo files of our own: what they mean, and how each mistake is named."""

from pathlib import Path
from typing import Any

import pytest

from polypath.formats import minitopo
from polypath.scenario import Scenario, ScenarioError, describe_topology

TOPO = "topoType:MultiIf\nleftSubnet:10.0.\nrightSubnet:10.1.\npath_c2r_0:10,40,12\npath_c2r_1:30,50,8,1.5,1\n"
CROWD = TOPO.replace("MultiIf", "MultiIfMultiClient")
CHANGES = "changeNetem:yes\nnetemAt_c2r_0:5,delay 20ms loss 100 limit 50000\nnetemAt_c2r_0:9.5,delay 3ms\n"


@pytest.fixture
def load(tmp_path: Path) -> Any:
    def both(topo: str, xp: str) -> tuple[Scenario, list[str]]:
        (tmp_path / "topo").write_text(topo)
        (tmp_path / "xp").write_text(xp)
        return minitopo.load(tmp_path / "topo", tmp_path / "xp")

    return both


@pytest.fixture
def complaint(load: Any, tmp_path: Path) -> Any:
    def message(topo: str, xp: str) -> str:
        with pytest.raises(ScenarioError) as caught:
            load(topo, xp)
        assert "\n" not in str(caught.value)
        return str(caught.value).replace(f"{tmp_path}/", "")

    return message


def test_the_network(load: Any) -> None:
    data = load(TOPO, "xpType:iperf")[0].plan().data
    client, server, router = data["nodes"]
    assert [interface["addresses"] for interface in client["interfaces"]] == [["10.0.0.1"], ["10.0.1.1"]]
    assert [interface["backup"] for interface in client["interfaces"]] == [False, True]
    assert [interface["addresses"] for interface in router["interfaces"]] == [["10.0.0.2"], ["10.0.1.2"], ["10.1.0.2"]]
    assert server["interfaces"][0]["addresses"] == ["10.1.0.1"]
    slow = data["links"][1]["backward"]
    assert (slow["rate_bps"], slow["delay_ns"], slow["burst_bytes"]) == (8_000_000, 30_000_000, 15000)
    assert slow["loss"] == {"kind": "random", "probability": 0.015}
    # 40 packets of a round trip, and 71 ms of queue at 8 Mbps
    assert slow["queue"] == {"kind": "drop-tail", "packets": None, "bytes": 40 * 1500 + 71 * 1000}
    assert data["links"][2]["forward"]["rate_bps"] is None


def test_a_queue_left_out_is_the_bandwidth_delay_product() -> None:
    link = minitopo.parse_topo("topoType:MultiIf\npath_c2r_0:10,12\n", "topo").links[0]
    assert (link.queue_pkts, link.bw_mbps, link.delay_ms) == (20, 12.0, 10.0)


def test_two_server_paths(load: Any) -> None:
    scenario, _ = load(TOPO + "path_r2s_0:5,50,50\npath_r2s_1:5,50,50\n", "xpType:iperf")
    server = scenario.plan().data["nodes"][1]
    assert [interface["addresses"] for interface in server["interfaces"]] == [["10.1.0.1"], ["10.1.1.1"]]
    assert describe_topology(scenario).splitlines()[1].split() == ["client", "r", "server"]


def test_netem_starts_two_seconds_before_the_client(load: Any) -> None:
    scenario, warnings = load(TOPO + CHANGES, "xpType:iperf")
    first, second = scenario.plan().data["events"]
    assert (first["at_ns"], second["at_ns"]) == (3 * 10**9, 7.5 * 10**9)
    assert first["action"]["link"] == 0
    assert first["action"]["direction"] == "both"
    assert first["action"]["delay_ns"] == 20_000_000
    assert first["action"]["loss"] == {"kind": "random", "probability": 1.0}
    assert second["action"]["loss"] == {"kind": "none"}, "a change replaces every parameter"
    assert warnings == ["netemAt_c2r_0: netem's limit 50000 has no effect; a link in flight has none"]


@pytest.mark.parametrize(("kind", "at_s"), [("http", 3.0), ("sendfile", 4.9), ("ping", 5.0)])
def test_netem_starts_as_long_before_the_client_as_its_experiment_sleeps(load: Any, kind: str, at_s: float) -> None:
    changes = "changeNetem:yes\nnetemAt_c2r_0:5,delay 20ms\n"
    (event,) = load(TOPO + changes, f"xpType:{kind}")[0].plan().data["events"]
    assert event["at_ns"] == at_s * 1e9


def test_netem_before_the_client_is_from_the_start(load: Any) -> None:
    changes = "changeNetem:yes\nnetemAt_c2r_1:1,loss 3%\n"
    assert load(TOPO + changes, "xpType:iperf")[0].plan().data["events"][0]["at_ns"] == 0


@pytest.mark.parametrize("value", ["no", "Yes"])
def test_netem_switched_off_changes_nothing(load: Any, value: str) -> None:
    scenario, warnings = load(TOPO + CHANGES.replace("yes", value), "xpType:iperf")
    assert scenario.event == []
    assert warnings == ["netemAt_c2r_0 has no effect without changeNetem:yes"]


def test_the_stack(load: Any) -> None:
    xp = "xpType:iperf\nsched:roundrobin\ncongctrl:lia\nkpm:ndiffports\nrmem:1 2 3\nwmem:4 5 6\nbufferAutotuning:0\n"
    stack = load(TOPO, xp)[0].plan().data["nodes"][0]["stack"]
    assert (stack["profile"], stack["scheduler"]["name"]) == ("mptcp.org", "roundrobin")
    assert (stack["congestion"]["name"], stack["path_manager"]["name"]) == ("lia", "ndiffports")
    assert (stack["receive_buffer"], stack["send_buffer"], stack["autotuning"]) == ([1, 2, 3], [4, 5, 6], False)


def test_defaults_are_minitopos(load: Any) -> None:
    data = load(TOPO, "xpType:iperf")[0].plan().data
    stack = data["nodes"][0]["stack"]
    assert (stack["scheduler"]["name"], stack["congestion"]["name"]) == ("default", "olia")
    assert stack["path_manager"] == {"name": "fullmesh", "parameters": {"num_subflows": 1}}
    assert (stack["receive_buffer"], stack["autotuning"]) == ([10240, 87380, 16777216], True)
    assert data["applications"][0]["work"]["duration_ns"] == 10 * 10**9


def test_path_managers_of_the_two_sides(load: Any) -> None:
    client, server, _ = load(TOPO, "xpType:iperf\nkpmc:ndiffports\nkpms:default\n")[0].plan().data["nodes"]
    assert client["stack"]["path_manager"]["name"] == "ndiffports"
    assert server["stack"]["path_manager"]["name"] == "default"


def test_backup_can_be_said_by_the_experiment(load: Any) -> None:
    client = load(TOPO, "xpType:iperf\nbackup_path_0:1\n")[0].plan().data["nodes"][0]
    assert [interface["backup"] for interface in client["interfaces"]] == [True, True]


@pytest.mark.parametrize(
    ("xp", "names", "transport", "work"),
    [
        ("xpType:iperf\niperfTime:3", ["iperf"], "mptcp", {"kind": "bulk", "duration_ns": 3 * 10**9}),
        ("xpType:iperf\niperfParallel:2\nmptcpEnabled:0", ["iperf-1", "iperf-2"], "tcp", {"kind": "bulk"}),
        ("xpType:http", ["http"], "mptcp", {"kind": "fetch", "size_bytes": 1024 * 1024, "count": 1}),
        ("xpType:https\nfile_size:10", ["https"], "mptcp", {"kind": "fetch", "size_bytes": 10240, "tls": "1.2"}),
        ("xpType:sendfile\nfile_size:1", ["sendfile"], "mptcp", {"kind": "fetch", "size_bytes": 1024}),
        (
            "xpType:msg\nmsgClientSleep:0.25\nmsgServerSleep:0.1\nmsgNbRequests:7\nmsgBytes:900",
            ["msg"],
            "mptcp",
            {
                "kind": "request-response",
                "count": 7,
                "interval_ns": 250_000_000,
                "think_ns": 100_000_000,
                "request_bytes": 900,
                "response_bytes": 900,
            },
        ),
        ("xpType:pquic", ["pquic"], "quic", {"kind": "fetch", "size_bytes": 10_240_000}),
        ("xpType:ping\npingCount:2", ["ping-0", "ping-1"], "icmp", {"kind": "ping", "count": 2}),
        ("xpType:none", [], None, None),
        ("", [], None, None),
    ],
)
def test_applications(load: Any, xp: str, names: list[str], transport: str | None, work: dict[str, Any] | None) -> None:
    applications = load(TOPO, xp)[0].plan().data["applications"]
    assert [application["name"] for application in applications] == names
    for application in applications:
        assert application["transport"] == transport
        assert work is not None
        assert application["work"].items() >= work.items()


def test_messages_are_not_held_back_by_nagle(load: Any) -> None:
    application = load(TOPO, "xpType:msg")[0].plan().data["applications"][0]
    assert application["client_stack"]["nagle"] is False
    assert application["server_stack"]["nagle"] is False


def test_pings_go_over_one_path_after_the_other_to_the_first_address_of_the_server(load: Any) -> None:
    topo = TOPO + "path_r2s_0:5,50,50\npath_r2s_1:5,50,50\n"
    applications = load(topo, "xpType:ping\npingCount:2")[0].plan().data["applications"]
    assert [application["destination"] for application in applications] == ["10.1.0.1"] * 2
    assert [application["source"] for application in applications] == ["10.0.0.1", "10.0.1.1"]
    assert [application["start_ns"] for application in applications] == [0, 2 * 10**9]


def test_the_scenario_of_three_connections(load: Any) -> None:
    scenario, _ = load(CROWD, "xpType:iperfScenario\ncongctrl:lia\niperfScenarioFMSublows:4\n")
    data = scenario.plan().data
    names = [node["name"] for node in data["nodes"]]
    assert names == ["client", "server", "client_1", "client_2", "server_1", "server_2", "r", "switch_0", "switch_1"]
    assert data["nodes"][2]["interfaces"][0]["addresses"] == ["10.0.0.10"]
    assert data["nodes"][5]["interfaces"][0]["addresses"] == ["10.1.2.1"]
    assert data["nodes"][0]["stack"]["path_manager"]["parameters"] == {"num_subflows": 4}
    rows = [
        (
            one["name"],
            names[one["client"]],
            one["transport"],
            one["start_ns"] // 10**9,
            one["work"]["duration_ns"] // 10**9,
        )
        for one in data["applications"]
    ]
    assert rows == [
        ("iperf", "client", "mptcp", 0, 50),
        ("tcp_1", "client_1", "tcp", 10, 20),
        ("tcp_2", "client_2", "tcp", 20, 20),
    ]
    assert data["nodes"][0]["stack"]["congestion"]["name"] == "lia"
    assert data["applications"][1]["client_stack"]["congestion"]["name"] == "reno"
    ends = {link["name"]: (names[link["a"]["node"]], names[link["b"]["node"]]) for link in data["links"]}
    assert ends["path_c2r_0"] == ("switch_0", "r")
    assert ends["access_client_1"] == ("client_1", "switch_0")


def test_what_has_no_effect_is_said(load: Any) -> None:
    xp = "xpType:iperf\nautocork:0\nclientPcap:yes\nserverPcap:yes\nsnaplenPcap:100\npingCount:3\nmsgBytes:4\nupmc:x\n"
    assert load(TOPO, xp)[1] == [
        "snaplenPcap is read as snaplen_pcap; minitopo itself ignores it",
        "msgBytes has no effect with xpType:iperf",
        "autocork has no effect: corking by itself is not modelled",
        "upmc has no effect: user-space path managers are not there yet",
        "clientPcap, serverPcap have no effect: captures are asked for with --pcap",
        "snaplenPcap has no effect: captures hold whole packets",
        "pingCount has no effect: paths need no warming up before the experiment",
    ]


@pytest.mark.parametrize(("name", "warned"), [("random", []), ("index.html", ["file has no effect"])])
def test_a_file_of_unknown_length_is_said(load: Any, name: str, warned: list[str]) -> None:
    scenario, warnings = load(TOPO, f"xpType:http\nfile:{name}\nfile_size:10\n")
    assert scenario.plan().data["applications"][0]["work"]["size_bytes"] == 10240
    assert [warning.partition(":")[0] for warning in warnings] == warned


def test_comments_blank_lines_and_a_missing_newline(load: Any) -> None:
    scenario, warnings = load("# a topology\n\n" + TOPO.replace("\n", "\r\n"), "#x\nxpType:iperf\niperfTime:1")
    assert len(scenario.link) == 3
    assert warnings == []


def test_keys_that_nobody_reads_are_warnings(load: Any) -> None:
    """minitopo ignores them, as files of later versions of it have more."""
    xp = "xpType:http\nsched:roundrobin\n"
    scenario, warnings = load(TOPO + "leftSubnt:10.\npathc2r_2:1,2,3\n", xp + "file_siz:3\nzzz:1\n")
    assert scenario == load(TOPO, xp)[0]
    assert [warning.rpartition("/")[2] for warning in warnings] == [
        "topo:6: unknown key 'leftSubnt'; did you mean 'leftSubnet'? (it has no effect)",
        "topo:7: unknown key 'pathc2r_2'; did you mean 'path_c2r_0'? (it has no effect)",
        "xp:3: unknown key 'file_siz'; did you mean 'file_size'? (it has no effect)",
        "xp:4: unknown key 'zzz' (it has no effect)",
    ]


def test_blanks_around_a_line_do_not_count(load: Any) -> None:
    xp = "xpType:http\nsched:roundrobin\n"
    assert load(TOPO.replace("\n", " \n\t"), xp.replace("\n", "\t\n "))[0] == load(TOPO, xp)[0]


@pytest.mark.parametrize(
    ("topo", "message"),
    [
        ("path_c2r_0:1,2,3\n", "topo: 'topoType' is missing"),
        ("topoType:MultIf\npath_c2r_0:1,2,3\n", "topo:1: unknown topoType 'MultIf'; did you mean 'MultiIf'?"),
        ("topoType:MultiIf\n", "topo: there is no path_c2r_0: the client has no link"),
        (TOPO + "desc:a:b\n", "topo:6: expected key:value with one colon, not 'desc:a:b'"),
        (TOPO + "desc\n", "topo:6: expected key:value with one colon, not 'desc'"),
        (TOPO + "desc :x\n", "topo:6: blanks around the key 'desc '; did you mean 'desc'?"),
        (TOPO + "path_c2r_1:1,2,3\n", "topo:6: 'path_c2r_1' is given twice"),
        (TOPO + "topoType:MultiIf\n", "topo:6: 'topoType' is given twice"),
        (TOPO + "path_c2r_3:1,2,3\n", "topo: the paths c2r must be numbered from 0 without gaps, not [0, 1, 3]"),
        (
            TOPO + "path_c2r_2:1\n",
            "topo:6: path_c2r_2: expected delay,queue,rate[,loss[,backup]] or delay,rate, not '1'",
        ),
        (TOPO + "path_c2r_2:1,2,0\n", "topo:6: path_c2r_2: '0' is not a rate in Mbps greater than zero"),
        (TOPO + "path_c2r_2:1,2,1e-300\n", "topo:6: path_c2r_2: '1e-300' is not a rate in Mbps greater than zero"),
        (TOPO + "path_c2r_2:-1,2,3\n", "topo:6: path_c2r_2: '-1' is not a delay in milliseconds"),
        (TOPO + "path_c2r_2:1,2.5,3\n", "topo:6: path_c2r_2: '2.5' is not a queue length in packets"),
        (TOPO + "path_c2r_2:1,2,nan\n", "topo:6: path_c2r_2: 'nan' is not a rate in Mbps greater than zero"),
        (TOPO + "path_c2r_2:1,2,3,101\n", "topo:6: path_c2r_2: '101' is not a loss in percent"),
        (TOPO + "path_c2r_2:1,2,3,0,2\n", "topo:6: path_c2r_2: '2' is not 0 or 1 for backup"),
        (
            TOPO.replace("10.0.", "ten"),
            "topo:2: leftSubnet: 'ten' is not the first two bytes of an address, as in '10.0.'",
        ),
        (
            TOPO + "netemAt_c2r_7:1,loss 3\n",
            "topo:6: netemAt_c2r_7: there is no path_c2r_7; did you mean 'netemAt_c2r_1'?",
        ),
        (
            TOPO + "changeNetem:yes\nnetemAt_c2r_0:1\n",
            "topo:7: netemAt_c2r_0: expected seconds,netem arguments, not '1'",
        ),
        (TOPO + CHANGES + "netemAt_c2r_0:4,loss 1\n", "topo:9: netemAt_c2r_0: 4 s is not after the change before it"),
        (
            TOPO + "changeNetem:yes\nnetemAt_c2r_0:1,los 3\n",
            "topo:7: netemAt_c2r_0: unknown netem argument 'los'; did you mean 'loss'?",
        ),
        (TOPO + "changeNetem:yes\nnetemAt_c2r_0:1,loss\n", "topo:7: netemAt_c2r_0: netem's 'loss' needs a value"),
        (TOPO + "changeNetem:yes\nnetemAt_c2r_0:1,delay x\n", "topo:7: netemAt_c2r_0: 'x' is no time such as '20ms'"),
        (
            TOPO + "changeNetem:yes\nnetemAt_c2r_0:1,rate 1mbit\n",
            "topo:7: netemAt_c2r_0: netem's 'rate' is not there yet",
        ),
    ],
)
def test_bad_topologies(complaint: Any, topo: str, message: str) -> None:
    assert complaint(topo, "xpType:iperf") == message


@pytest.mark.parametrize(
    ("xp", "message"),
    [
        ("xpType:pquic\npquicSize:0\n", "xp:2: pquicSize: '0' is not a size in bytes"),
        (
            "xpType:pquic\npquicPlugins:multipath_rt_cond.plugin\n",
            "xp:2: pquicPlugins: unknown plugin 'multipath_rt_cond.plugin'; did you mean 'multipath_rtt_cond.plugin'?",
        ),
        ("xpType:quic\nquicMultipath:2\n", "xp:2: quicMultipath: '2' is not 0 or 1"),
        ("iperfTime:1\nxpType:netperf\n", "xp:2: xpType 'netperf' is not there yet"),
        ("xpType:vlc\n", "xp:1: xpType 'vlc' does not run in minitopo itself"),
        ("xpType:iperff\n", "xp:1: unknown xpType 'iperff'; did you mean 'iperf'?"),
        ("xpType:iperf\niperfTime:0\n", "xp:2: iperfTime: '0' is not a time in seconds"),
        ("xpType:iperf\niperfTime:1\niperfTime:2\n", "xp:3: 'iperfTime' is given twice"),
        ("xpType:iperf\nsched:rondrobin\n", "xp:2: sched: unknown scheduler 'rondrobin'; did you mean 'roundrobin'?"),
        (
            "xpType:iperf\ncongctrl:wvegas\n",
            "xp:2: congctrl: unknown congestion control 'wvegas'; there is reno, cubic, lia, olia",
        ),
        ("xpType:iperf\nkpm:fulmesh\n", "xp:2: kpm: unknown path manager 'fulmesh'; did you mean 'fullmesh'?"),
        ("xpType:iperf\nrmem:1 2\n", "xp:2: rmem: '1 2' is not minimum, default and maximum in bytes"),
        ("xpType:iperf\nrmem:3 2 1\n", "xp:2: rmem: '3 2 1' is not minimum, default and maximum in bytes"),
        ("xpType:iperf\nmptcpEnabled:yes\n", "xp:2: mptcpEnabled: 'yes' is not 0 or 1"),
        ("xpType:msg\nmsgNbRequests:0\n", "xp:2: msgNbRequests: '0' is not a number of requests"),
        (
            "xpType:iperfScenario\n",
            "xp:1: xpType 'iperfScenario' needs topoType:MultiIfMultiClient with two paths c2r or more",
        ),
    ],
)
def test_bad_experiments(complaint: Any, xp: str, message: str) -> None:
    assert complaint(TOPO, xp) == message


def test_every_error_of_a_file_is_collected(load: Any) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(TOPO + "path_c2r_0:1\npath_c2r_2:x,y\nunknown:1\ntopoType:x\n", "xpType:iperf")
    assert [error.line for error in caught.value.errors] == [6, 7, 9]


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "xp").write_bytes(b"\x7fELF\0\0")
    (tmp_path / "topo").write_text(TOPO)
    with pytest.raises(ScenarioError, match=r"xp:1: this is binary data, not a minitopo experiment"):
        minitopo.load(tmp_path / "topo", tmp_path / "xp")
    with pytest.raises(ScenarioError, match=r"nowhere: no such file"):
        minitopo.load(tmp_path / "nowhere", tmp_path / "xp")
