"""What a host whose stack is noq cannot have is refused with its place."""

import pytest

from polypath.scenario import Scenario, ScenarioError

APPLICATION = """
[[application]]
name = "get"
kind = "fetch"
size = "1 MB"
transport = "mpquic"
"""


def scenario(two_paths: str, client: str = "", application: str = "", defaults: str = "") -> Scenario:
    text = two_paths[: two_paths.index("[[application]]")].replace('scheduler = "roundrobin"\n', "")
    text = text.replace("[host.client]", f"[host.client]\n{client}", 1)
    text = text.replace("[defaults]", f"[defaults]\n{defaults}", 1)
    return Scenario.parse(f"{text}{APPLICATION}{application}\n", "x.toml")


NOQ = 'congestion = "cubic"\nstack = "noq"'


@pytest.mark.parametrize(
    ("client", "application", "message"),
    [
        (
            NOQ,
            '[[application]]\nname = "m"\nkind = "messages"\ntransport = "mpquic"\nsize = "1 kB"\ninterval = "20 ms"',
            "'client' runs noq, which has no datagrams here; take delivery = \"stream\"",
        ),
        (
            f'{NOQ}\nscheduler = "roundrobin"',
            "",
            "'scheduler' cannot be set on 'client', which runs noq: it sends on the open path of lowest id whose window"
            " has room; leave it out",
        ),
        (
            'stack = "noq"\ncongestion = "lia"',
            "",
            "congestion control 'lia' cannot run on 'client', which runs noq: it has none of that name;"
            " there is reno, cubic",
        ),
        (
            'stack = "noq"\ncongestion = { kind = "lia", variant = "rfc" }',
            "",
            "congestion control 'lia' cannot run on 'client', which runs noq: it has none of that name;"
            " there is reno, cubic",
        ),
        (
            f'{NOQ}\npath_manager = "ndiffports"',
            "",
            "path manager 'ndiffports' cannot run on 'client', which runs noq: it has one path between two addresses;"
            " there is default, fullmesh",
        ),
        (
            f'{NOQ}\npath_manager = {{ kind = "fullmesh", num_subflows = 2 }}',
            "",
            "'num_subflows' of fullmesh cannot be set on 'client', which runs noq: it has num_subflows = 1",
        ),
        (
            f"{NOQ}\necn = false",
            "",
            "'ecn' cannot be set on 'client', which runs noq: it always marks its packets; leave it out",
        ),
        (
            f"{NOQ}\nautotuning = true",
            "",
            "'autotuning' cannot be set on 'client', which runs noq: its receive window is fixed; leave it out",
        ),
        (
            NOQ,
            'client_stack = { ack_path = "fastest" }',
            "'ack_path' cannot be set on 'client', which runs noq: acknowledgements leave on the open path of lowest"
            " id; leave it out for 'client'",
        ),
        (
            NOQ,
            'client_stack = { control_path = "fastest" }',
            "'control_path' cannot be set on 'client', which runs noq: control frames leave on the open path of lowest"
            " id; leave it out for 'client'",
        ),
        (
            NOQ,
            "stack = { send_paths = [1] }",
            "'send_paths' cannot be set on 'client', which runs noq: it sends on every open path; leave it out for"
            " 'client'",
        ),
        (
            NOQ,
            "stack = { nagle = false }",
            "'nagle' changes nothing for an application over mpquic; leave it out",
        ),
        (
            'stack = "nok"',
            "",
            "host.client.stack: 'nok' is not polypath, noq, picoquic or aioquic; did you mean 'noq'?",
        ),
    ],
)
def test_refused_on_noq(two_paths: str, client: str, application: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(two_paths, client, application).plan()
    said = str(caught.value)
    assert said.endswith(message)
    assert said.startswith("x.toml:")


def test_a_default_that_noq_cannot_have_is_named_where_it_stands(two_paths: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(two_paths, NOQ, defaults='scheduler = "redundant"').plan()
    assert str(caught.value) == (
        "x.toml:5: 'scheduler' cannot be set on 'client', which runs noq: it sends on the open path of lowest id whose"
        " window has room; leave it out for 'client'"
    )


def test_noq_speaks_quic_alone(two_paths: str) -> None:
    tcp = '[[application]]\nname = "tcp"\nkind = "fetch"\nsize = "1 MB"\ntransport = "mptcp"\n'
    with pytest.raises(ScenarioError) as caught:
        scenario(two_paths, NOQ, tcp).plan()
    assert str(caught.value).endswith(
        "'client' runs noq, which speaks QUIC and nothing else, and the transport is 'mptcp'; take transport = \"quic\""
        ' or "mpquic", or client_stack = { stack = "polypath" }'
    )
    scenario(two_paths, NOQ, f'{tcp}client_stack = {{ stack = "polypath" }}\n').plan()


def test_a_plan_has_what_noq_ships(two_paths: str) -> None:
    plan = scenario(two_paths, NOQ).plan().data
    client, server = (node["stack"] for node in plan["nodes"][:2])
    assert client["stack"] == "noq"
    assert client["receive_buffer"] == [1_250_000] * 3
    assert client["send_buffer"] == [10_000_000] * 3
    assert client["initial_window"] == 10
    assert "stack" not in server
    again = scenario(two_paths, 'stack = "noq"\ncongestion = "reno"\nreceive_buffer = "2 MB"')
    assert again.plan().data["nodes"][0]["stack"]["receive_buffer"] == [2_000_000] * 3


def test_one_path_needs_no_scheduler(two_paths: str) -> None:
    """Over one path nothing is scheduled: what multipath alone has is no fault there."""
    text = two_paths[: two_paths.index("[[application]]")].replace("[host.client]", f"[host.client]\n{NOQ}", 1)
    single = Scenario.parse(text + APPLICATION.replace("mpquic", "quic"), "x.toml").plan().data
    assert single["nodes"][0]["stack"]["scheduler"]["name"] == "roundrobin"


def test_a_plan_knows_whether_an_end_is_noq(two_paths: str) -> None:
    """It writes no qlog."""
    assert scenario(two_paths, NOQ).plan().stacks_by_others == ("noq",)
    mixed = scenario(two_paths, application='server_stack = { stack = "noq", congestion = "cubic" }')
    assert mixed.plan().stacks_by_others == ("noq",)
    assert scenario(two_paths).plan().stacks_by_others == ()
