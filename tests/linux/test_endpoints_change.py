"""Endpoints that the host changes, flushes or cannot announce, on both engines."""

from collections.abc import Mapping

import pytest

from polypath import Scenario, ScenarioError, run
from polypath.engines import EngineError
from polypath.formats.plan import scenario_of

#: Addresses 1 and 2 of the client, 3 and 4 of the server.
NETWORK = """
duration = "5 s"
[defaults]
profile = "linux"
[host.client]
interface.eth0.address = ["fd00:1::1"]
interface.eth1.address = ["fd00:2::1"]
[host.server]
interface.eth0.address = ["fd00:3::2"]
interface.eth1.address = ["fd00:4::2"]
[router.r]
[link.a]
ends = ["client:eth0", "r"]
delay = "5 ms"
[link.b]
ends = ["client:eth1", "r"]
delay = "5 ms"
[link.c]
ends = ["server:eth0", "r"]
delay = "5 ms"
[link.d]
ends = ["server:eth1", "r"]
delay = "5 ms"
[[application]]
kind = "stream"
rate = "1 Mbps"
block = "10 kB"
duration = "3 s"
start = "100 ms"
"""
MANAGER = 'path_manager = {{ kind = "endpoints", {}, subflows = 8, add_addr_accepted = 8 }}'


def scenario(client: str, server: str, *events: str) -> Scenario:
    hosts = {"client": client, "server": server}
    text = NETWORK
    for host, stack in hosts.items():
        text = text.replace(f"[host.{host}]", f"[host.{host}]\n{stack}")
    return Scenario.parse(text + "".join(f"[[event]]\n{event}\n" for event in events), "changes.toml")


def counted(ran: Scenario, engine: str) -> Mapping[str, int]:
    counters = run(ran, engine=engine).table("counters").select("host", "name", "value")
    names = ((host, str(name).removeprefix("MPTcpExt"), value) for host, name, value in counters.iter_rows())
    return {f"{host} {name}": value for host, name, value in names if value}


@pytest.fixture(params=["sim", "linux"])
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "linux":
        request.getfixturevalue("linux")  # skips where there is no kernel
    return str(request.param)


def seen(counters: Mapping[str, int], *names: str) -> list[int]:
    return [counters.get(name, 0) for name in names]


def test_an_endpoint_that_is_for_all_addresses_from_now_on_opens_to_all(engine: str) -> None:
    change = 'at = "{}"\ninterface = "client:eth1"\nfullmesh = {}'
    events = [change.format("1 s", "true"), change.format("2 s", "false")]
    ran = scenario(MANAGER.format('flags = "subflow"'), MANAGER.format('flags = "signal"'), *events)
    counters = counted(ran, engine)
    # 2-3, and 1-4 once it is announced; then 2-3 ends, and 2-3 and 2-4 begin; then these two end, and 2-3 begins.
    assert seen(counters, "client MPJoinSynTx", "server MPJoinAckRx", "client RmSubflow") == [5, 5, 3]
    assert seen(counters, "client RmAddrTx") == [0]


def test_an_endpoint_is_taken_away_and_added_while_its_address_stays(engine: str) -> None:
    change = 'at = "{}"\ninterface = "{}"\nendpoint = {}'
    events = [change.format("1 s", "client:eth1", "false"), change.format("2 s", "client:eth1", "true")]
    ran = scenario(MANAGER.format('endpoints = ["fd00:2::1 subflow"]'), MANAGER.format('flags = "none"'), *events)
    counters = counted(ran, engine)
    assert seen(counters, "client MPJoinSynTx", "client RmSubflow", "client RmAddrTx") == [2, 1, 1]
    assert seen(counters, "server RmAddr", "server MPRstTx", "client MPRstTx") == [1, 0, 0]


def test_the_first_address_stays_where_its_endpoint_is_taken_away(engine: str) -> None:
    """The FIN of the first subflow is acknowledged, so that the server need not reset it at the connection's end."""
    event = 'at = "1 s"\ninterface = "client:eth0"\nendpoint = false'
    client = MANAGER.format('endpoints = ["fd00:1::1 subflow", "fd00:2::1 subflow"]')
    counters = counted(scenario(client, MANAGER.format('flags = "none"'), event), engine)
    names = ("client RmSubflow", "server RmAddr", "client MPRstTx", "server MPRstTx")
    assert seen(counters, *names) == [1, 1, 0, 0]


#: While the server's endpoint is away, its address on link b gets a subflow without being one.
TAKEN = """
duration = "5 s"
[defaults]
profile = "linux"
[host.client]
path_manager = { kind = "endpoints", endpoints = ["10.0.1.1 signal"], subflows = 8, add_addr_accepted = 8 }
interface.eth0.address = "10.0.0.1"
interface.eth1.address = "10.0.1.1"
interface.eth2.address = "10.0.2.1"
[host.server]
path_manager = { kind = "endpoints", endpoints = ["10.0.2.2 signal"], subflows = 8, add_addr_accepted = 8 }
interface.eth0.address = "10.0.0.2"
interface.eth1.address = "10.0.1.2"
interface.eth2.address = "10.0.2.2"
[link.a]
ends = ["client:eth0", "server:eth0"]
delay = "5 ms"
[link.b]
ends = ["client:eth1", "server:eth1"]
delay = "5 ms"
[link.c]
ends = ["client:eth2", "server:eth2"]
delay = "5 ms"
[[application]]
kind = "stream"
rate = "1 Mbps"
block = "10 kB"
duration = "3 s"
start = "100 ms"
[[event]]
at = "0 s"
interface = "client:eth1"
up = false
[[event]]
at = "500 ms"
interface = "server:eth2"
up = false
[[event]]
at = "1 s"
interface = "client:eth1"
up = true
[[event]]
at = "1500 ms"
interface = "server:eth2"
up = true
[[event]]
at = "2 s"
interface = "server:eth2"
backup = true
[[event]]
at = "2500 ms"
interface = "server:eth2"
up = false
"""


def test_an_endpoint_returns_although_the_kernel_gave_its_number_away(engine: str) -> None:
    counters = counted(Scenario.parse(TAKEN, "taken.toml"), engine)
    names = ("server AddAddrTx", "client AddAddr", "client MPJoinSynTx", "server MPJoinSynTx", "server RmAddrTx")
    assert seen(counters, *names) == [2, 2, 2, 1, 2]
    assert seen(counters, "server MPPrioTx", "client MPPrioRx") == [1, 1]


#: The listener at the port of an endpoint ends with a flush, and the subflow that it accepted does not.
PORT_IN_USE = """
duration = "5 s"
[defaults]
profile = "linux"
[host.client]
path_manager = { kind = "endpoints", endpoints = ["10.0.0.1 signal port 20007"], subflows = 8, add_addr_accepted = 2 }
[host.server]
path_manager = { kind = "endpoints", flags = "signal", subflows = 1, add_addr_accepted = 8 }
[link.a]
ends = ["client:eth0", "server:eth0"]
delay = "5 ms"
[link.b]
ends = ["client:eth1", "server:eth1"]
delay = "5 ms"
[[application]]
kind = "stream"
rate = "1 Mbps"
block = "10 kB"
duration = "4 s"
start = "100 ms"
[[event]]
at = "1800 ms"
host = "client"
flush_endpoints = true
[[event]]
at = "2500 ms"
interface = "client:eth0"
up = false
[[event]]
at = "3200 ms"
interface = "client:eth0"
up = true
"""


def test_an_event_that_the_kernel_refuses_is_one_line_with_its_reason(linux: object) -> None:
    with pytest.raises(EngineError) as refused:
        run(Scenario.parse(PORT_IN_USE, "port.toml"), engine="linux")
    assert str(refused.value) == (
        "the kernel refused event 3 of the run: create listen socket error: -98 (engine sim takes it)"
    )


def test_an_endpoint_that_was_flushed_can_be_added(engine: str) -> None:
    flush = 'at = "1 s"\nhost = "client"\nflush_endpoints = true'
    events = [flush, 'at = "2 s"\ninterface = "client:eth1"\nendpoint = true']
    ran = scenario(MANAGER.format('endpoints = ["fd00:2::1 subflow"]'), MANAGER.format('flags = "none"'), *events)
    counters = counted(ran, engine)
    assert seen(counters, "client MPJoinSynTx", "client RmSubflow", "server MPJoinAckRx") == [2, 1, 2]


def test_a_connection_that_begins_later_has_no_endpoint_that_was_taken_away(engine: str) -> None:
    event = 'at = "50 ms"\ninterface = "client:eth1"\nendpoint = false'
    back = 'at = "2 s"\ninterface = "client:eth1"\nendpoint = true'
    stacks = (MANAGER.format('endpoints = ["fd00:2::1 subflow"]'), MANAGER.format('flags = "none"'))
    assert seen(counted(scenario(*stacks, event), engine), "client MPJoinSynTx") == [0]
    assert seen(counted(scenario(*stacks, event, back), engine), "client MPJoinSynTx") == [1]


def test_a_flush_ends_the_subflows_of_endpoints_and_withdraws_what_was_announced(engine: str) -> None:
    flush = 'at = "1 s"\nhost = "{}"\nflush_endpoints = true'
    back = ('at = "{}"\ninterface = "server:eth1"\nup = ' + value for value in ("false", "true"))
    times = (event.format(at) for event, at in zip(back, ("1500 ms", "2 s"), strict=True))
    stacks = (MANAGER.format('flags = "none"'), MANAGER.format('endpoints = ["fd00:4::2 signal"]'))
    counters = counted(scenario(*stacks, flush.format("server"), *times), engine)
    assert seen(counters, "server RmAddrTx", "client RmAddr", "server RmSubflow") == [1, 1, 1]
    # It comes back with its interface.
    assert seen(counters, "server AddAddrTx", "client MPJoinSynTx", "server MPJoinAckRx") == [2, 2, 2]


def test_a_flush_ends_the_first_subflow_where_its_address_is_an_endpoint(engine: str) -> None:
    flush = 'at = "1 s"\nhost = "server"\nflush_endpoints = true'
    stacks = (MANAGER.format('flags = "none"'), MANAGER.format('flags = "signal"'))
    counters = counted(scenario(*stacks, flush), engine)
    assert seen(counters, "server RmAddrTx", "client RmAddr", "server RmSubflow") == [1, 1, 2]


def test_a_flush_on_a_client_tells_nothing_of_what_was_not_announced(engine: str) -> None:
    flush = 'at = "1 s"\nhost = "client"\nflush_endpoints = true'
    stacks = (MANAGER.format('endpoints = ["fd00:2::1 subflow"]'), MANAGER.format('flags = "none"'))
    counters = counted(scenario(*stacks, flush), engine)
    assert seen(counters, "client MPJoinSynTx", "client RmSubflow", "client RmAddrTx") == [1, 1, 0]


@pytest.mark.parametrize(("drops", "announced"), [("true", [1, 0, 1, 1]), ("false", [0, 1, 0, 0])])
def test_an_address_of_ipv6_with_a_port_takes_the_place_of_timestamps(
    engine: str, drops: str, announced: list[int]
) -> None:
    server = MANAGER.format('endpoints = ["fd00:4::2 signal port 20000"]')
    stack = f"{server}\nadd_addr_v6_port_drop_ts = {drops}"
    counters = counted(scenario(MANAGER.format('flags = "none"'), stack), engine)
    names = ("server AddAddrTx", "server AddAddrTxDrop", "client AddAddr", "client MPJoinSynTx")
    assert seen(counters, *names) == announced


def test_fullmesh_tells_of_a_first_address_that_is_a_backup(engine: str) -> None:
    stack = 'path_manager = "fullmesh"\ninterface.eth0.backup = true'
    counters = counted(scenario(stack, stack), engine)
    assert seen(counters, "client MPPrioTx", "server MPPrioTx", "client MPPrioRx") == [1, 1, 1]


@pytest.mark.parametrize(
    ("stack", "event", "message"),
    [
        ('path_manager = "fullmesh"', 'interface = "client:eth0"\nfullmesh = true', "'client' has another"),
        ('path_manager = "default"', 'interface = "client:eth0"\nendpoint = false', "'client' has another"),
        (MANAGER.format('flags = "none"'), 'host = "client"\nflush_endpoints = true', "have no task"),
        (MANAGER.format('flags = "signal"'), 'host = "klient"\nflush_endpoints = true', "unknown host 'klient' client"),
        (MANAGER.format('flags = "signal"'), 'host = "client"\nup = true', "nothing that changes of a host"),
    ],
)
def test_what_has_no_endpoints_refuses_their_events(stack: str, event: str, message: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        scenario(stack, MANAGER.format('flags = "none"'), f'at = "1 s"\n{event}').plan()
    assert message in f"{refused.value.message} {refused.value.hint}"


def test_a_plan_becomes_a_scenario_with_the_same_events() -> None:
    endpoint = 'interface = "client:eth1"\nendpoint = false'
    changes = ('interface = "client:eth1"\nfullmesh = true', endpoint, 'host = "client"\nflush_endpoints = true')
    events = (f'at = "{at} s"\n{change}' for at, change in enumerate(changes, 1))
    plan = scenario(MANAGER.format('flags = "subflow"'), MANAGER.format('flags = "none"'), *events).plan()
    assert [event["action"] for event in plan.data["events"]] == [
        {"kind": "fullmesh", "node": 0, "interface": 1, "fullmesh": True},
        {"kind": "endpoint", "node": 0, "interface": 1, "endpoint": False},
        {"kind": "flush", "node": 0},
    ]
    assert scenario_of(plan, "again.toml").plan().data["events"] == plan.data["events"]
