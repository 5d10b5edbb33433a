"""Path manager `endpoints` over a whole network, as the upstream kernel has it on the same one (`pm_kernel.c`)."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from polypath import Scenario, run, summary
from polypath.scenario import ScenarioError

APART = """
duration = "6 s"
[defaults]
profile = "linux"
[host.client]
path_manager = { kind = "endpoints", flags = "none", subflows = 4, add_addr_accepted = 4 }
interface.eth0.address = "10.1.0.1"
interface.eth1.address = "192.168.1.1"
[host.server]
path_manager = { kind = "endpoints", flags = "signal", subflows = 4, add_addr_accepted = 4 }
interface.eth0.address = "10.1.0.2"
interface.eth1.address = "192.168.1.2"
[link.a]
ends = ["client:eth0", "server:eth0"]
rate = "10 Mbps"
delay = "10 ms"
[link.b]
ends = ["client:eth1", "server:eth1"]
rate = "10 Mbps"
delay = "10 ms"
[[application]]
kind = "bulk"
duration = "4 s"
"""

ROUTED = """
duration = "12 s"
[defaults]
profile = "linux"
[host.client]
path_manager = { kind = "endpoints", flags = "subflow", subflows = 8, add_addr_accepted = 8 }
[host.server]
path_manager = { kind = "endpoints", flags = "none", subflows = 8 }
[router.r]
[link.a]
ends = ["client:eth0", "r"]
rate = "10 Mbps"
delay = "5 ms"
[link.b]
ends = ["client:eth1", "r"]
rate = "10 Mbps"
delay = "5 ms"
[link.c]
ends = ["client:eth2", "r"]
rate = "10 Mbps"
delay = "5 ms"
[link.srv]
ends = ["r", "server"]
[[application]]
kind = "bulk"
duration = "8 s"
"""


class Ran:
    def __init__(self, text: str) -> None:
        recording = run(Scenario.parse(text, "scenario.toml"))
        told = summary(recording)
        self.connection: dict[str, Any] = told["connections"][0]
        self.counters: dict[str, dict[str, int]] = told["counters"]
        self.ends = recording.table("subflow_ends")

    def count(self, side: str, counter: str) -> int:
        return self.counters[side].get(f"MPTcpExt{counter}", 0)

    def established(self) -> list[tuple[str, str]]:
        worked = self.ends.filter(pl.col("established_ns").is_not_null())
        pairs = worked.select("source", "destination").iter_rows()
        return [(str(one).rsplit(":", 1)[0], str(other).rsplit(":", 1)[0]) for one, other in pairs]


def test_a_subflow_to_an_announced_address_leaves_where_routing_says() -> None:
    ran = Ran(APART)
    assert ran.established() == [("10.1.0.1", "10.1.0.2"), ("192.168.1.1", "192.168.1.2")]
    assert ran.connection["goodput_mbps"] == pytest.approx(18.6, rel=0.05)


def limited(most: int) -> str:
    return ROUTED.replace('flags = "none", subflows = 8', f'flags = "none", subflows = {most}')


@pytest.mark.parametrize("most", [0, 1, 2])
def test_the_accepting_side_takes_as_many_joins_as_its_limit_says(most: int) -> None:
    ran = Ran(limited(most))
    assert ran.count("server", "MPJoinRejected") == 2 - most
    assert ran.count("client", "MPRstTx") == 2 - most
    assert ran.connection["goodput_mbps"] == pytest.approx(9.3 * (1 + most), rel=0.05)


@pytest.mark.parametrize("interface", ["eth0", "eth1"])
def test_an_address_that_comes_back_gets_a_subflow(interface: str) -> None:
    event = '[[event]]\nat = "{}"\ninterface = "client:{}"\nup = {}\n'
    ran = Ran(ROUTED + event.format("2 s", interface, "false") + event.format("3 s", interface, "true"))
    sources = [source for source, _ in ran.established()]
    left = {"eth0": "10.0.0.1", "eth1": "10.0.1.1"}[interface]
    assert sources.count(left) == 2
    assert len(sources) == 4


def test_a_backup_on_the_first_interface_is_told_by_mp_prio() -> None:
    text = ROUTED.replace("[host.client]", "[host.client]\ninterface.eth0.backup = true")
    ran = Ran(text.replace('duration = "8 s"', 'duration = "8 s"\nreverse = true'))
    assert ran.count("client", "MPPrioTx") == ran.count("server", "MPPrioRx") == 1
    assert ran.connection["subflows"][0]["share"] < 0.02


SIGNALS = """
duration = "8 s"
[defaults]
profile = "linux"
[host.client]
path_manager = { kind = "endpoints", flags = "none", subflows = 8, add_addr_accepted = 8 }
[host.server]
path_manager = { kind = "endpoints", flags = "signal", subflows = 8 }
[router.r]
[link.c]
ends = ["client", "r"]
delay = "5 ms"
[link.s0]
ends = ["r", "server:eth0"]
rate = "10 Mbps"
[link.s1]
ends = ["r", "server:eth1"]
rate = "10 Mbps"
[link.s2]
ends = ["r", "server:eth2"]
rate = "10 Mbps"
[[application]]
kind = "bulk"
duration = "4 s"
reverse = true
"""


@pytest.mark.parametrize(
    ("flags", "most", "announced"),
    [
        pytest.param("signal", 8, 2, id="each in turn"),
        pytest.param("signal", 0, 1, id="one where the limit of subflows is reached"),
        pytest.param("signal subflow", 8, 1, id="attempts that lead to no listener use up the rest"),
    ],
)
def test_addresses_that_are_announced(flags: str, most: int, announced: int) -> None:
    ran = Ran(SIGNALS.replace('flags = "signal", subflows = 8', f'flags = "{flags}", subflows = {most}'))
    assert ran.count("server", "AddAddrTx") == ran.count("client", "AddAddr") == announced


MESH = """
duration = "6 s"
[defaults]
profile = "linux"
path_manager = "fullmesh"
[host.client]
[host.server]
[router.r]
[link.c0]
ends = ["client:eth0", "r"]
rate = "10 Mbps"
delay = "5 ms"
[link.c1]
ends = ["client:eth1", "r"]
rate = "10 Mbps"
delay = "10 ms"
[link.s]
ends = ["r", "server:eth0"]
delay = "1 ms"
[[application]]
kind = "stream"
rate = "3 Mbps"
block = "10 kB"
duration = "4 s"
[[event]]
at = "2 s"
interface = "server:eth0"
backup = true
"""


@pytest.mark.parametrize(("profile", "told"), [("linux", 1), ("mptcp.org", 2), ("rfc", 2)])
def test_an_interface_that_becomes_a_backup_is_told_on_the_first_of_its_subflows_upstream(
    profile: str, told: int
) -> None:
    ran = Ran(MESH.replace("linux", profile))
    assert ran.count("server", "MPPrioTx") == ran.count("client", "MPPrioRx") == told
    assert [subflow["backup"] for subflow in ran.connection["subflows"]].count(True) == told


def test_a_subflow_of_a_withdrawn_address_ends_without_a_reset_upstream() -> None:
    gone = ROUTED + '[[event]]\nat = "2 s"\ninterface = "client:eth1"\nup = false\n'
    ran = Ran(gone)
    assert ran.count("client", "RmAddrTx") == ran.count("client", "RmSubflow") == ran.count("server", "RmAddr") == 1
    assert ran.count("server", "MPRstTx") == 0
    assert ran.count("client", "MPTCPRetrans") == 0
    others = Ran(gone.replace('profile = "linux"', 'profile = "rfc"'))
    assert others.count("server", "MPRstTx") == 1


def test_nothing_is_told_of_an_address_that_was_not_used_or_announced() -> None:
    unused = ROUTED.replace('flags = "subflow"', 'flags = "none"')
    gone = '[[event]]\nat = "2 s"\ninterface = "client:eth1"\nup = false\n'
    assert Ran(unused + gone).count("client", "RmAddrTx") == 0


def test_an_interface_that_is_down_is_told_of_no_priority() -> None:
    first = '[[event]]\nat = "{}"\ninterface = "client:eth0"\n{}\n'
    ran = Ran(ROUTED + first.format("2 s", "up = false") + first.format("3 s", "backup = true"))
    assert ran.count("client", "MPPrioTx") == 0


LONE = """
duration = "6 s"
[defaults]
profile = "linux"
[host.client]
path_manager = {manager}
[host.server]
[link.c]
ends = ["client", "server"]
rate = "10 Mbps"
delay = "5 ms"
[[application]]
kind = "stream"
rate = "1 Mbps"
block = "10 kB"
duration = "4 s"
[[event]]
at = "1 s"
interface = "client:eth0"
up = false
[[event]]
at = "2 s"
interface = "client:eth0"
up = true
"""


def test_endpoints_leave_with_their_interface_though_no_subflow_remains() -> None:
    """As the kernel does where a network manager deletes them (`mptcp_pm_rm_subflow`)."""
    ran = Ran(LONE.replace("{manager}", '{ kind = "endpoints", flags = "subflow", subflows = 8 }'))
    assert ran.count("client", "RmAddrTx") == ran.count("server", "RmAddr") == ran.count("client", "RmSubflow") == 1
    assert ran.established() == 2 * [("10.0.0.1", "10.0.0.2")]
    assert ran.ends["closed_ns"][0] // 10**6 == 1000
    assert ran.connection["completion_s"] is not None


def test_an_announcement_waits_for_a_subflow_to_leave_on() -> None:
    """It goes with the acknowledgement of a FIN on the one that is left (`mptcp_established_options`), and once."""
    ran = Ran(LONE.replace("{manager}", '{ kind = "endpoints", flags = "signal", subflows = 8 }'))
    assert ran.count("client", "RmAddrTx") == ran.count("client", "AddAddrTx") == 1
    assert ran.count("server", "AddAddr") == 0


def test_a_connection_that_closes_opens_and_announces_nothing() -> None:
    """Its attempt ends as the DATA_FIN leaves (`mptcp_subflow_shutdown`), and what waited for that waits on."""
    third = '[link.d]\nends = ["client:eth2", "server:eth2"]\nrate = "10 Mbps"\ndelay = "10 ms"\n'
    manager = '{ kind = "endpoints", flags = "signal subflow", subflows = 1 }'
    text = APART.replace("[[application]]", f"{third}[[application]]")
    text = text.replace('{ kind = "endpoints", flags = "none", subflows = 4, add_addr_accepted = 4 }', manager)
    text = text.replace('flags = "signal", subflows = 4', 'flags = "none", subflows = 4')
    text = text.replace('interface.eth1.address = "192.168.1.1"\n', "").replace(
        'kind = "bulk"', 'kind = "bulk"\nreverse = true'
    )
    ran = Ran(text.replace('interface.eth1.address = "192.168.1.2"\n', ""))
    assert ran.count("client", "AddAddrTx") == 1
    assert len(ran.ends) == 2


def test_joins_at_a_port_of_its_own_are_counted() -> None:
    announced = APART.replace('flags = "signal"', 'endpoints = ["192.168.1.2 signal port 20000"]')
    assert Ran(announced).count("server", "MPJoinPortSynRx") == 1
    assert Ran(APART).count("server", "MPJoinPortSynRx") == 0


def test_a_connection_that_would_end_with_its_last_subflow_keeps_it() -> None:
    ran = Ran(LONE.replace("{manager}", '{ kind = "endpoints", flags = "subflow" }').replace('"linux"', '"rfc"'))
    assert ran.count("client", "RmAddrTx") == ran.count("client", "RmSubflow") == 0
    assert ran.established() == [("10.0.0.1", "10.0.0.2")]


@pytest.mark.parametrize("manager", ['"default"', '"ndiffports"', '{ kind = "endpoints", flags = "none" }'])
def test_whoever_has_no_endpoints_hears_of_no_interface(manager: str) -> None:
    ran = Ran(LONE.replace("{manager}", manager))
    assert ran.count("client", "RmAddrTx") == ran.count("client", "RmSubflow") == 0
    assert set(ran.established()) == {("10.0.0.1", "10.0.0.2")}
    assert ran.ends["closed_ns"].drop_nulls().to_list() == []


def test_an_endpoint_of_the_first_address_has_its_own_id_until_an_address_is_used() -> None:
    """`mptcp_endp_get_local_id` before `mptcp_mpc_endpoint_setup`: the peer hears of an id that no subflow has."""
    ran = Ran(LONE.replace("{manager}", '{ kind = "endpoints", flags = "subflow", subflows = 0 }'))
    assert ran.count("client", "RmAddrTx") == ran.count("server", "RmAddr") == 1
    assert ran.count("client", "RmSubflow") == 0
    assert ran.established() == [("10.0.0.1", "10.0.0.2")]


@pytest.mark.parametrize(("listed", "told"), [("10.0.0.1", 1), ("10.0.1.1", 0)])
def test_an_address_that_is_no_endpoint_is_no_backup(listed: str, told: int) -> None:
    """`mptcp_pm_nl_set_flags`"""
    manager = f'endpoints = ["{listed} subflow"]'
    event = '[[event]]\nat = "2 s"\ninterface = "client:eth0"\nbackup = true\n'
    assert Ran(ROUTED.replace('flags = "subflow"', manager, 1) + event).count("client", "MPPrioTx") == told


def many(profile: str, addresses: int) -> Scenario:
    links = "".join(
        f'[link.l{number}]\nends = ["client", "r"]\nrate = "1 Mbps"\ndelay = "5 ms"\n' for number in range(addresses)
    )
    return Scenario.parse(
        f"""
duration = "3 s"
[defaults]
profile = "{profile}"
path_manager = "fullmesh"
[host.client]
[host.server]
[router.r]
{links}
[link.srv]
ends = ["r", "server"]
[[application]]
kind = "bulk"
duration = "2 s"
""",
        "many.toml",
    )


@pytest.mark.parametrize(("profile", "most"), [("mptcp.org", 8), ("rfc", 12)])
def test_as_many_addresses_count_as_the_kernel_of_the_profile_has_bits_for(profile: str, most: int) -> None:
    scenario = many(profile, 12)
    assert len(summary(run(scenario))["connections"][0]["subflows"]) == most
    said = [line for line in scenario.unused if "MPTCP_MAX_ADDR" in line]
    assert len(said) == (most == 8)
    assert not many(profile, 8).unused


def chosen(*endpoints: str) -> str:
    given = ", ".join(f'"{each}"' for each in endpoints)
    return ROUTED.replace('flags = "subflow"', f"endpoints = [{given}]")


def test_an_endpoint_is_what_is_said_of_its_address() -> None:
    ran = Ran(chosen("10.0.2.1 subflow"))
    assert ran.established() == [("10.0.0.1", "10.0.3.2"), ("10.0.2.1", "10.0.3.2")]


def test_joins_are_taken_at_the_port_of_an_announced_address() -> None:
    text = SIGNALS.replace('flags = "signal"', 'endpoints = ["10.0.2.2 signal port 10100"]')
    ran = Ran(text)
    assert ran.count("server", "MPJoinAckRx") == 1
    assert ran.established() == [("10.0.0.1", "10.0.1.2"), ("10.0.0.1", "10.0.2.2")]


def test_a_peer_that_denies_its_first_address_is_joined_at_announced_ones_alone() -> None:
    text = SIGNALS.replace("[host.server]", "[host.server]\nallow_join_initial_addr_port = false")
    opens = text.replace('flags = "none"', 'flags = "subflow"')
    assert Ran(opens).count("server", "MPJoinAckRx") == 2
    silent = opens.replace('flags = "signal"', 'flags = "none"')
    assert Ran(silent).count("server", "MPJoinSynRx") == 0


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("10.0.2.1 signal fullmesh", "not both for signal and for fullmesh"),
        ("10.0.2.1 subflow port 5000", "a port is of an address for signal"),
        ("10.0.2.1 subfow", "'subfow' is none of"),
        ("eth1 subflow", "'eth1' is no IP address"),
    ],
)
def test_an_endpoint_that_the_kernel_would_refuse_is_refused(fault: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        Scenario.parse(chosen(fault), "scenario.toml")


@pytest.mark.parametrize(("side", "reverse"), [("client", "false"), ("server", "true")])
def test_an_application_that_aborts_closes_fast(side: str, reverse: str) -> None:
    ran = Ran(ROUTED.replace('duration = "8 s"', f'duration = "2 s"\nabort = true\nreverse = {reverse}'))
    assert ran.count(side, "MPFastcloseTx") == ran.count(side, "MPRstTx") == 3
    assert ran.connection["bytes"] > 0


def test_an_attempt_that_nobody_on_its_link_answers_counts_until_it_is_given_up() -> None:
    # `ip_route_output_key_hash_rcu`, `arp_error_report`. The kernel's timers round three seconds up to 3.05 to 3.11 s.
    text = ROUTED.replace("subflows = 8, add_addr_accepted = 8", "subflows = 1")
    text = text.replace('ends = ["client:eth1", "r"]', 'ends = ["client:eth1", "other"]')
    ran = Ran(text.replace("[router.r]", "[host.other]\n[router.r]"))
    (_, begun, _), (lost, never, given_up), (other, joined, _) = ran.ends.select(
        "interface", "established_ns", "closed_ns"
    ).rows()
    assert (lost, never, other) == ("eth1", None, "eth2")
    assert 3.0 < (given_up - begun) / 1e9 < 3.1
    assert 0 < joined - given_up < 100e6
    assert ran.count("client", "MPJoinSynTx") == 2


#: The first address leads to one host, and what answers it to the other alone.
ONE_WAY = """
duration = "4 s"
[defaults]
profile = "linux"
[host.client]
path_manager = { kind = "endpoints", flags = "none", subflows = 4, add_addr_accepted = 4 }
interface.eth0.address = "10.1.0.1"
[host.server]
path_manager = { kind = "endpoints", endpoints = ["10.2.0.2 signal"], subflows = 4 }
interface.eth0.address = "10.1.0.2"
interface.eth1.address = "10.2.0.2"
[host.other]
interface.eth0.address = "10.2.0.3"
[link.a]
ends = ["client:eth0", "server:eth0"]
rate = "10 Mbps"
delay = "10 ms"
[link.b]
ends = ["server:eth1", "other:eth0"]
rate = "10 Mbps"
delay = "10 ms"
[[application]]
kind = "bulk"
client = "client"
server = "server"
duration = "3 s"
"""


def test_an_answer_leaves_by_another_interface_where_none_leads_from_its_address() -> None:
    # `ip_route_output_key_hash_rcu`: the main table counts where that of the source knows no way.
    assert Ran(ONE_WAY).established() == [("10.1.0.1", "10.1.0.2"), ("10.1.0.1", "10.2.0.2")]


@pytest.mark.parametrize(("accepted", "told"), [(0, 0), (4, 1)])
def test_an_endpoint_with_a_port_is_told_of_on_subflows_at_that_port_alone(accepted: int, told: int) -> None:
    # `mptcp_pm_mp_prio_send_ack`, `__lookup_addr`: the first subflow is at port 5001, and only a join at 20000.
    text = ONE_WAY.replace("10.2.0.2 signal", "10.1.0.2 signal port 20000")
    text = text.replace("add_addr_accepted = 4", f"add_addr_accepted = {accepted}")
    ran = Ran(f'{text}[[event]]\nat = "1 s"\ninterface = "server:eth0"\nbackup = true\n')
    assert ran.established() == [("10.1.0.1", "10.1.0.2")] * (1 + told)
    assert ran.count("server", "MPPrioTx") == ran.count("client", "MPPrioRx") == told
