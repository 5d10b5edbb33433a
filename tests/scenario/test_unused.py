"""Settings that change nothing, because no application's transport knows them."""

import pytest

from polypath.scenario import Scenario

BEGIN = """
duration = "4 s"
[defaults]
{defaults}
[host.client]
{client}
[host.server]
[host.other]
[router.r]
[link.client]
ends = ["client", "r"]
[link.server]
ends = ["server", "r"]
[link.other]
ends = ["other", "r"]
"""
BULK = """
[[application]]
kind = "bulk"
client = "{client}"
server = "server"
transport = "{over}"
"""


def unused(*applications: tuple[str, str], defaults: str = "", client: str = "") -> list[str]:
    text = BEGIN.format(defaults=defaults, client=client)
    return Scenario.parse(
        text + "".join(BULK.format(client=host, over=over) for host, over in applications), "x"
    ).unused


@pytest.mark.parametrize(
    ("setting", "over", "named"),
    [
        ("sack = false", ["quic"], "QUIC"),
        ("keepalive_probes = 3", ["mpquic", "quic"], "Multipath QUIC (RFC 10069) and QUIC"),
        ("retry = true", ["tcp"], "TCP"),
        ('ack_path = "fastest"', ["quic", "mptcp"], "Multipath TCP and QUIC"),
        ("send_paths = [0]", ["quic"], "QUIC"),
    ],
)
def test_a_setting_that_no_transport_knows(setting: str, over: list[str], named: str) -> None:
    applications = [("client", each) for each in over]
    key = setting.split()[0]
    assert unused(*applications, defaults=setting) == [
        f"'{key}' of [defaults] changes nothing: its applications run over {named}"
    ]
    assert unused(*applications, client=setting) == [
        f"'{key}' of [host.client] changes nothing: its applications run over {named}"
    ]


def test_one_application_that_knows_it_is_enough() -> None:
    assert unused(("client", "quic"), ("client", "tcp"), defaults="sack = false", client="nagle = false") == []
    assert unused(("client", "quic"), ("other", "tcp"), defaults="sack = false") == []
    assert unused(("client", "mpquic"), ("client", "quic"), client='ack_path = "fastest"') == []
    assert unused(("client", "quic"), client='congestion = "reno"') == []


def test_another_hosts_application_does_not_count() -> None:
    (line,) = unused(("client", "quic"), ("other", "tcp"), client="sack = false")
    assert line == "'sack' of [host.client] changes nothing: its applications run over QUIC"


def test_of_a_host_without_applications_nothing_is_said_here() -> None:
    assert unused(("other", "quic"), client="sack = false") == []


def test_a_program_of_the_machine_has_sockets_of_tcp() -> None:
    program = '[[application]]\nkind = "command"\nhost = "other"\ncommand = "true"\n'
    text = BEGIN.format(defaults="sack = false\nretry = true", client="") + program
    (line,) = Scenario.parse(text, "x").unused
    assert line == "'retry' of [defaults] changes nothing: its applications run over Multipath TCP"
    assert Scenario.parse(text + BULK.format(client="client", over="quic"), "x").unused == []
