"""What connections of QUIC cannot have is refused with its place."""

import pytest

from polypath.scenario import Scenario, ScenarioError

APPLICATION = """
[[application]]
name = "get"
kind = "fetch"
size = "1 MB"
transport = "mpquic"
"""


def complaint(two_paths: str, application: str, defaults: str = "") -> str:
    text = two_paths.replace("[host.client]", f"[defaults]\n{defaults}\n[host.client]", 1) if defaults else two_paths
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(text + application, "x.toml").plan()
    return str(caught.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('tls = "1.3"', "QUIC has a TLS 1.3 handshake of its own (RFC 9001); leave 'tls' out"),
        (
            'stack = { scheduler = "linux" }',
            "scheduler 'linux' of 'client' does not run over QUIC: it hands data to the queues of subflows, and a path"
            " of QUIC has none; choose another one; did you mean 'default'?",
        ),
        (
            "client_stack = { mtu = 1200 }",
            "QUIC needs packets of 1228 bytes over IPv4, and 'mtu' of 'client' is 1200",
        ),
        ("stack = { nagle = false }", "'nagle' changes nothing for an application over mpquic; leave it out"),
        ("parallel = 0", "application 2.parallel: must be at least 1, not 0"),
    ],
)
def test_refused_over_quic(two_paths: str, more: str, message: str) -> None:
    said = complaint(two_paths, f"{APPLICATION}{more}\n")
    assert said.endswith(message)
    assert said.startswith("x.toml:")


@pytest.mark.parametrize(("key", "value"), [("parallel", "2"), ("streams", '"one"'), ("streams", '"ordered"')])
def test_streams_are_quics(two_paths: str, key: str, value: str) -> None:
    tcp = APPLICATION.replace("mpquic", "tcp")
    said = complaint(two_paths, f"{tcp}{key} = {value}\n")
    assert said.endswith(f"'{key}' is about streams of QUIC, and the transport is 'tcp'")


@pytest.mark.parametrize("transport", ["tcp", "quic"])
@pytest.mark.parametrize("key", ["ack_path", "control_path"])
def test_only_multipath_quic_chooses_the_path_of_packets_without_data(two_paths: str, transport: str, key: str) -> None:
    text = APPLICATION.replace("mpquic", transport)
    said = complaint(two_paths, f'{text}client_stack = {{ {key} = "scheduler" }}\n')
    assert said.endswith(f"'{key}' changes nothing for an application over {transport}; leave it out")


def test_a_plan_says_where_control_packets_go_if_that_is_not_usual(two_paths: str) -> None:
    plan = Scenario.parse(f'{two_paths}{APPLICATION}client_stack = {{ control_path = "scheduler" }}\n', "x.toml").plan()
    application = plan.data["applications"][-1]
    assert application["client_stack"]["control_path"] == "scheduler"
    assert "control_path" not in plan.data["nodes"][0]["stack"]
    said = complaint(two_paths, f'{APPLICATION}client_stack = {{ control_path = "schedule" }}\n')
    assert "control_path" in said
    assert "scheduler" in said


def test_only_quic_has_clients_return_a_token(two_paths: str) -> None:
    tcp = APPLICATION.replace("mpquic", "tcp")
    said = complaint(two_paths, f"{tcp}server_stack = {{ retry = true }}\n")
    assert said.endswith("'retry' changes nothing for an application over tcp; leave it out")
    plan = Scenario.parse(two_paths + APPLICATION + "server_stack = { retry = true }\n", "x.toml").plan().data
    application = plan["applications"][-1]
    assert application["server_stack"]["retry"]
    assert "retry" not in plan["nodes"][0]["stack"]


def test_only_quic_asks_for_fewer_acknowledgements(two_paths: str) -> None:
    tcp = APPLICATION.replace("mpquic", "tcp")
    said = complaint(two_paths, f"{tcp}server_stack = {{ ack_frequency = 10 }}\n")
    assert said.endswith("'ack_frequency' changes nothing for an application over tcp; leave it out")


@pytest.mark.parametrize(("kind", "over"), [("cbr", "udp"), ("ping", "icmp")])
def test_datagrams_have_no_use_of_a_transports_settings(two_paths: str, kind: str, over: str) -> None:
    rate = 'rate = "1 Mbps"\n' if kind == "cbr" else ""
    one = f'\n[[application]]\nname = "x"\nkind = "{kind}"\n{rate}'
    said = complaint(two_paths, f'{one}stack = {{ congestion = "reno" }}\n')
    assert said.endswith(f"'congestion' changes nothing for an application over {over}; leave it out")


@pytest.mark.parametrize(
    ("written", "planned"),
    [
        ("10", {"packets": 10, "max_delay_ns": None, "reordering": 3}),
        ("{ packets = 10 }", {"packets": 10, "max_delay_ns": None, "reordering": 3}),
        (
            '{ packets = 1, max_delay = "1 ms", reordering = 0 }',
            {"packets": 1, "max_delay_ns": 1_000_000, "reordering": 0},
        ),
    ],
)
def test_a_plan_says_how_often_a_host_wants_to_be_acknowledged(two_paths: str, written: str, planned: object) -> None:
    text = f"{two_paths}{APPLICATION}server_stack = {{ ack_frequency = {written} }}\n"
    plan = Scenario.parse(text, "x.toml").plan().data
    assert plan["applications"][-1]["server_stack"]["ack_frequency"] == planned
    assert "ack_frequency" not in plan["nodes"][0]["stack"]


def test_an_application_asks_for_nothing_where_its_host_asks(two_paths: str) -> None:
    text = two_paths.replace("[defaults]\n", "[defaults]\nack_frequency = 5\n", 1)
    text += f"{APPLICATION}server_stack = {{ ack_frequency = 0 }}\n"
    plan = Scenario.parse(text, "x.toml").plan().data
    assert "ack_frequency" not in plan["applications"][-1]["server_stack"]
    assert plan["nodes"][0]["stack"]["ack_frequency"]["packets"] == 5


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ('"often"', "ack_frequency"),
        ("true", "ack_frequency"),
        ("-1", "must be at least 0, not -1"),
        ("{ }", "'packets' is missing"),
        ('{ packets = 10, max_delay = "500 us" }', "must be at least 1 ms and below 16.384 s, not 500 us"),
        ('{ packets = 10, max_delay = "16.384 s" }', "must be at least 1 ms and below 16.384 s, not 16.384 s"),
        ("{ packets = 10, delay = 1 }", "delay"),
    ],
)
def test_a_frequency_that_cannot_be_asked_for(two_paths: str, written: str, message: str) -> None:
    said = complaint(two_paths, f"{APPLICATION}client_stack = {{ ack_frequency = {written} }}\n")
    assert message in said
    assert "\n" not in said


def test_iperf3_does_not_speak_quic(two_paths: str) -> None:
    bulk = APPLICATION.replace('kind = "fetch"', 'kind = "bulk"')
    said = complaint(two_paths, f'{bulk}program = "iperf3"\n')
    assert said.endswith("'iperf3' does not speak QUIC; leave 'program' out")


def test_quic_and_udp_share_ports(two_paths: str) -> None:
    udp = '[[application]]\nkind = "cbr"\nrate = "1 Mbps"\nport = 443\n'
    said = complaint(two_paths, f"{APPLICATION}port = 443\n{udp}")
    assert "port 443 of 'server' belongs to application 'get' already" in said


@pytest.mark.parametrize("transport", ["quic", "mpquic"])
def test_a_plan_says_what_quic_needs(two_paths: str, transport: str) -> None:
    text = two_paths.replace("[host.client]", '[host.client]\nack_path = "fastest"', 1)
    text += APPLICATION.replace("mpquic", transport) + "parallel = 3\nstack = { initial_window = 20 }\n"
    plan = Scenario.parse(text, "x.toml").plan().data
    application = plan["applications"][-1]
    assert application["transport"] == transport
    assert application["work"]["parallel"] == 3
    assert application["client_stack"]["ack_path"] == "fastest"
