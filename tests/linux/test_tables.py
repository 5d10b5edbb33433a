"""What the guest's programs wrote becomes tables. No kernel is needed here."""

from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl
import pytest

from polypath.engines.linux.engine import translate
from polypath.engines.namespaces.tables import Tables
from polypath.scenario import Scenario

Read = Callable[..., dict[str, pl.DataFrame]]

CREATED, ESTABLISHED, CLOSED, ANNOUNCED, REMOVED, JOINED, ENDED, PRIORITY = 1, 2, 3, 6, 7, 10, 11, 13


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """The tables of a scenario whose programs wrote these files."""

    def tables(scenario: Scenario, files: Mapping[str, list[str]]) -> dict[str, pl.DataFrame]:
        job, _ = translate(scenario.plan(None).data)
        for name, lines in files.items():
            (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return Tables(job, tmp_path).frames()

    return tables


def path_event(
    time: int, kind: int, local: str, remote: str, *, server: bool = False, backup: bool = False, number: int = 0
) -> str:
    ends = " ".join(end.replace(":", " ") for end in (local, remote))
    return f"N {time} {kind} 7 {server:d} {backup:d} {ends} 0 {number}"


def hosts(scenario: Scenario) -> dict[str, int]:
    return {node["name"]: index for index, node in enumerate(scenario.plan(None).data["nodes"])}


TWO_SERVERS = """
duration = "3 s"
[defaults]
path_manager = "fullmesh"
[host.client]
[host.one]
[host.two]
[router.r]
[link.w]
ends = ["client", "r"]
[link.s1]
ends = ["r", "one"]
[link.s2]
ends = ["r", "two"]
[[application]]
kind = "fetch"
name = "first"
server = "one"
port = 80
size = "1 kB"
[[application]]
kind = "fetch"
name = "second"
server = "two"
port = 80
size = "1 kB"
"""

TWO_LINKS = """
duration = "3 s"
[defaults]
path_manager = "fullmesh"
[host.{}]
[host.{}]
[host.client.interface.eth1]
backup = true
[link.one]
ends = ["client:eth0", "server:eth0"]
[link.two]
ends = ["client:eth1", "server:eth1"]
[[application]]
kind = "bulk"
client = "client"
server = "server"
"""


def test_two_servers_may_have_the_same_port(read: Read) -> None:
    scenario = Scenario.parse(TWO_SERVERS, "two")
    nodes = scenario.plan(None).data["nodes"]
    place = hosts(scenario)
    client, server = (nodes[place[name]]["interfaces"][0]["addresses"][0] for name in ("client", "two"))
    ends = f"{client}:1025", f"{server}:80"
    found = read(
        scenario,
        {
            "end": ["3000000000"],
            f"paths-{place['client']}": [path_event(1, CREATED, *ends), path_event(2, CLOSED, *ends)],
            f"paths-{place['two']}": [
                path_event(1, CREATED, *ends[::-1], server=True),
                path_event(3, CLOSED, *ends[::-1], server=True),
            ],
        },
    )
    assert found["events"].select("host", "connection").rows() == [("client", 1), ("two", 1)]


@pytest.mark.parametrize("order", [("client", "server"), ("server", "client")])
def test_a_subflow_is_a_backup_where_either_side_was_told(read: Read, order: tuple[str, str]) -> None:
    described = TWO_LINKS.format(*order)
    scenario = Scenario.parse(described, "backup")
    place = hosts(scenario)
    first, second, third = (
        ("10.0.0.1:1025", "10.0.0.2:5001"),
        ("10.0.1.1:1026", "10.0.1.2:5001"),
        ("10.0.1.1:1027", "10.0.0.2:5001"),
    )
    log = [
        f"S 1 {number} {local.replace(':', ' ')} {remote.replace(':', ' ')}" + " 2" + 10 * " 0"
        for number, (local, remote) in enumerate((first, second, third))
    ]
    told = {
        "client": [path_event(1, CREATED, *first), path_event(2, JOINED, *second)],
        "server": [
            path_event(1, CREATED, *first[::-1], server=True),
            path_event(3, JOINED, *second[::-1], server=True, backup=True),
        ],
    }
    files = {f"paths-{place[name]}": lines for name, lines in told.items()} | {"app-0-client": log, "end": ["9"]}
    assert read(scenario, files)["subflow_ends"]["backup"].to_list() == [False, True, True]
    told["server"] += [
        path_event(4, PRIORITY, *second[::-1], server=True),
        path_event(4, PRIORITY, *first[::-1], server=True, backup=True),
    ]
    assert read(scenario, files)["subflow_ends"]["backup"].to_list() == [True, False, True]


def test_what_comes_after_the_end_of_the_run_is_left_out(read: Read) -> None:
    scenario = Scenario.parse(TWO_LINKS.format("client", "server"), "late")
    ends = "10.0.0.1:1025", "10.0.0.2:5001"
    files = {
        "end": ["3000"],
        "app-0-client": ["S 1 0 10.0.0.1 1025 10.0.0.2 5001 1" + 10 * " 0", "O 10 mptcp", "X 3005 open"],
        "paths-0": [
            path_event(10, CREATED, *ends),
            path_event(2000, PRIORITY, *ends),
            path_event(3004, ENDED, *ends),
            path_event(3006, CLOSED, *ends),
        ],
    }
    found = read(scenario, files)
    assert found["events"].select("time_ns", "kind").rows() == [
        (10, "connection-established"),
        (10, "subflow-established"),
        (2000, "priority-changed"),
    ]
    assert found["subflow_ends"]["closed_ns"].to_list() == [None]
    ended = read(scenario, files | {"app-0-client": [*files["app-0-client"][:2], "X 2500 finished"]})
    assert ended["subflow_ends"]["closed_ns"].to_list() == [2500]


@pytest.mark.parametrize(("state", "received"), [(1, 1001), (5, 1001), (6, 1000), (8, 1000), (9, 1000), (11, 1000)])
def test_a_fin_is_no_byte_that_was_received(read: Read, state: int, received: int) -> None:
    scenario = Scenario.parse(TWO_LINKS.format("client", "server"), "fin")
    sample = f"S 1 0 10.0.0.1 1025 10.0.0.2 5001 {state} 0 0 0 0 0 0 0 1001 0 0"
    found = read(scenario, {"end": ["3000"], "app-0-client": [sample]})
    assert found["subflows"]["received_bytes"].to_list() == [received]
    assert found["subflow_ends"]["client_received_bytes"].to_list() == [received]


def test_a_link_sends_its_overhead_with_each_packet(read: Read) -> None:
    described = TWO_LINKS.replace('"server:eth0"]', '"server:eth0"]\nrate = "10 Mbps"\noverhead = 38')
    # 10 frames of 1514 bytes sent, 2 waiting
    lines = [f"Q 20000000 {device} 15140 10 0 0 2 3028" for device in ("b0", "a0", "b1")]
    files = {"end": ["20000000"], "links": lines}
    found = read(Scenario.parse(described.format("client", "server"), "overhead"), files)
    assert found["links"].select("sent_bytes", "queue_bytes").rows() == [(15380, 3076), (15380, 3076), (15140, 3028)]
    assert found["link_ends"]["busy_ns"].to_list() == [12_304_000, 12_304_000, 0]


def test_a_link_is_busy_no_longer_than_time_goes_on(read: Read) -> None:
    described = TWO_LINKS.replace('"server:eth0"]', '"server:eth0"]\nrate = "10 Mbps"\nburst = "20 kB"')
    # 10,000 bytes, which the rate takes 8 ms for, out of the bucket at once
    lines = [f"Q {time}000000 b0 {sent} 10 0 0 0 0" for time, sent in ((1, 0), (3, 10_000), (5, 10_000))]
    ended = {"end": ["40000000"], "links": lines}
    found = read(Scenario.parse(described.format("client", "server"), "burst"), ended)
    assert found["link_ends"]["busy_ns"].to_list() == [4_000_000]
    ended["links"].append("Q 40000000 b0 10000 10 0 0 0 0")
    found = read(Scenario.parse(described.format("client", "server"), "burst"), ended)
    assert found["link_ends"]["busy_ns"].to_list() == [8_000_000]


def test_links_end_with_the_run(read: Read) -> None:
    scenario = Scenario.parse(TWO_LINKS.format("client", "server"), "links")
    lines = [f"Q {time} b0 {time} 1 0 0 0 0" for time in (500, 900, 1500, 1600)]
    found = read(scenario, {"end": ["1000"], "links": lines})
    assert found["links"].select("time_ns", "sent_bytes").rows() == [(500, 500), (900, 900), (1000, 1500)]
    assert found["link_ends"]["sent_bytes"].to_list() == [1500]


@pytest.mark.parametrize(("at", "sent", "busy_ms"), [("100 ms", 12_500, 200), ("150 ms", 34_375, 150)])
def test_a_link_is_busy_at_the_rate_that_it_had(read: Read, at: str, sent: int, busy_ms: int) -> None:
    described = TWO_LINKS.replace('"server:eth0"]', '"server:eth0"]\nrate = "10 Mbps"').format("client", "server")
    described += f'[[event]]\nat = "{at}"\nlink = "one"\nrate = "1 Mbps"\n'
    lines = [
        f"Q {time} b0 {total} 1 0 0 0 0" for time, total in ((100_000_000, 125_000), (200_000_000, 125_000 + sent))
    ]
    found = read(Scenario.parse(described, "rate"), {"end": ["200000000"], "links": lines})
    assert found["link_ends"]["busy_ns"].to_list() == [busy_ms * 1_000_000]


def test_a_link_is_never_busy_for_longer_than_the_run(read: Read) -> None:
    described = TWO_LINKS.replace('"server:eth0"]', '"server:eth0"]\nrate = "1 Mbps"').format("client", "server")
    files = {"end": ["1000000"], "links": ["Q 1000000 b0 1514 1 0 0 0 0"]}
    assert read(Scenario.parse(described, "burst"), files)["link_ends"]["busy_ns"].to_list() == [1_000_000]


def test_what_a_link_says_itself_of_its_time_is_taken(read: Read) -> None:
    described = TWO_LINKS.replace('"server:eth0"]', '"server:eth0"]\nrate = "1 Mbps"').format("client", "server")
    files = {"end": ["90000000"], "links": ["Q 90000000 b0 1514 1 0 0 0 0 12112001"]}
    assert read(Scenario.parse(described, "told"), files)["link_ends"]["busy_ns"].to_list() == [12_112_001]


def test_a_subflow_that_never_came_up_is_closed_as_the_one_that_it_is(read: Read) -> None:
    scenario = Scenario.parse(TWO_LINKS.format("client", "server"), "joining")
    first, joining = ("10.0.0.1:1025", "10.0.0.2:5001"), ("10.0.1.1:1026", "10.0.0.2:5001")
    log = [
        f"S 5 {number} {local.replace(':', ' ')} {remote.replace(':', ' ')} {state}" + 10 * " 0"
        for number, (local, remote, state) in enumerate(((*first, 1), (*joining, 2)))
    ]
    told = [path_event(1, CREATED, *first), path_event(9, ENDED, joining[0], "10.0.0.2:0")]
    found = read(scenario, {"paths-0": told, "app-0-client": log, "end": ["20"]})
    assert found["subflow_ends"].select("destination_port", "closed_ns").rows() == [(5001, None), (5001, 9)]
    assert found["events"].select("kind", "subflow").rows() == [("subflow-closed", 1)]


def test_events_say_what_the_simulators_say(read: Read) -> None:
    scenario = Scenario.parse(TWO_LINKS.format("client", "server"), "events")
    first, second = ("10.0.0.1:1025", "10.0.0.2:5001"), ("10.0.1.1:1026", "10.0.1.2:5001")
    client = [path_event(3, CREATED, *first), path_event(5, ANNOUNCED, "-:0", "10.0.1.2:0", number=2)]
    client += [path_event(6, JOINED, *second), path_event(7, PRIORITY, *second, backup=True)]
    client += [path_event(8, PRIORITY, *second), path_event(9, REMOVED, "-:0", "-:0", number=2)]
    files = {
        "end": ["99"],
        "paths-0": [*client, path_event(30, CLOSED, *first)],
        "app-0-client": ["S 5 0 10.0.0.1 1025 10.0.0.2 5001 1" + 10 * " 0", "O 3 mptcp", "X 20 timed-out"],
        "app-0-server": ["O 4 mptcp", "X 25 open"],
    }
    told = read(scenario, files)["events"].select("time_ns", "kind", "host", "subflow", "value", "detail").rows()
    assert told == [
        (3, "connection-established", "client", None, None, ""),
        (3, "subflow-established", "client", 0, None, ""),
        (4, "connection-established", "server", None, None, ""),
        (4, "subflow-established", "server", 0, None, ""),
        (5, "address-added", "client", None, None, "10.0.1.2 as 2"),
        (6, "subflow-established", "client", 1, None, ""),
        (7, "priority-changed", "client", 1, None, "backup"),
        (8, "priority-changed", "client", 1, None, "normal"),
        (9, "address-removed", "client", None, 2.0, ""),
        (20, "connection-closed", "client", None, None, "timed-out"),
    ]


@pytest.mark.parametrize(("ended", "counted"), [(9, (2900, 2900, 100)), (99, (1000, 900, 0))])
def test_a_subflow_closed_during_the_run_counts_to_its_end(read: Read, ended: int, counted: tuple[int, ...]) -> None:
    scenario = Scenario.parse(TWO_LINKS.format("client", "server"), "closed")
    first, second = ("10.0.0.1:1025", "10.0.0.2:5001"), ("10.0.1.1:1026", "10.0.1.2:5001")
    files = {"end": ["20"]}
    for node, side, sent, received in ((0, "client", 3000, 0), (1, "server", 0, 2901)):
        pairs = [" ".join(pair if side == "client" else pair[::-1]).replace(":", " ") for pair in (first, second)]
        counts = "1000 1000 0" if side == "client" else "0 0 900"
        files[f"app-0-{side}"] = [
            f"S 1 0 {pairs[0]} 1" + 10 * " 0",
            f"S 1 1 {pairs[1]} 1 0 0 0 0 0 {counts} 0 0",
        ]
        ends, joined = ((pair if side == "client" else pair[::-1]) for pair in (first, second))
        files[f"paths-{node}"] = [
            path_event(1, CREATED, *ends, server=side == "server"),
            path_event(2, JOINED, *joined, server=side == "server"),
            path_event(ended, ENDED, *joined, server=side == "server"),
            f"T 15 {pairs[1]} 7 {sent} {received} {100 if side == 'client' else 0}",
        ]
    columns = ("client_sent_bytes", "server_received_bytes", "client_retransmitted_bytes")
    assert read(scenario, files)["subflow_ends"].select(columns).row(1) == counted
