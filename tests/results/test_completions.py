"""Completion times of flows that count together."""

from typing import Any

import pytest

import polypath
from polypath import Recording, Scenario
from polypath.cli import result
from polypath.measures.summary import summary
from polypath.results import completions, metrics

ALONE = """
duration = "4 s"
[defaults]
congestion = "reno"
initial_window = 1000
receive_buffer = "8 MiB"
send_buffer = "8 MiB"
[topology]
kind = "dumbbell"
pairs = 1
rate = "10 Mbps"
delay = "5 ms"
queue = "10000 packets"
overhead = 0
access = { rate = "1 Gbps", delay = "1 ms" }
[[application]]
kind = "bulk"
transport = "tcp"
client = "client0"
server = "server0"
size = "SIZE"
group = "short"
"""


def run(size: str) -> Recording:
    return polypath.run(Scenario.parse(ALONE.replace("SIZE", size), "x"))


def test_a_flow_alone_takes_little_more_than_the_least() -> None:
    """1 MB at 10 Mbps is 0.8 s, and three times 7 ms; headers add 3.6 %."""
    (found,) = completions.of_groups(run("1 MB"))["short"]
    time = found.mean_ns()
    assert time is not None
    assert time / 1e9 == pytest.approx(0.8 * 1500 / 1448 + 0.021, rel=0.01)
    slowdown = found.mean_slowdown()
    assert slowdown == pytest.approx(time / 0.821e9)


def test_an_unfinished_flow_takes_part_in_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    """Six flows of 100 kB and one of 10 MB, which does not end."""
    more = "".join(
        f'[[application]]\nkind = "bulk"\nname = "s{number}"\ntransport = "tcp"\nclient = "client0"\n'
        f'server = "server0"\nsize = "100 kB"\ngroup = "short"\nstart = "{number * 100} ms"\n'
        for number in range(6)
    )
    late = ALONE.replace("SIZE", "10 MB") + 'start = "1 s"\n'
    recording = polypath.run(Scenario.parse(late + more, "x"))
    every, small, large = completions.of_groups(recording)["short"]
    assert (every.sizes, small.sizes, large.sizes) == ("all", "up to 100 kB", "above 1 MB")
    assert (every.flows, every.unfinished, small.flows, small.unfinished, large.unfinished) == (7, 1, 6, 0, 1)
    assert every.mean_ns() is every.mean_slowdown() is every.times.quantile(0.95) is large.times.quantile(0.5) is None
    assert every.times.quantile(0.5) is not None
    assert small.mean_ns() is not None
    groups: list[dict[str, Any]] = summary(recording)["groups"]
    assert groups[0]["completion_s"]["mean"] is groups[0]["completion_s"]["p99"] is None
    assert groups[1]["slowdown"]["p99"] >= groups[1]["slowdown"]["p50"] >= 1
    result.show(recording, "x")
    assert "An unfinished flow is longer than any other" in capsys.readouterr().out


def test_without_groups_nothing_is_added() -> None:
    recording = polypath.run(Scenario.parse(ALONE.replace("SIZE", "10 kB").replace('group = "short"\n', ""), "x"))
    assert completions.of_groups(recording) == {}
    assert "groups" not in summary(recording)


def test_flows_that_arrive_are_a_group() -> None:
    text = (
        'duration = "3 s"\n[topology]\nkind = "fat-tree"\nrate = "100 Mbps"\ndelay = "10 us"\n[[application]]\n'
        'name = "web"\nkind = "bulk"\nmatrix = "all-to-all"\narrivals = 100\n'
        'sizes = { kind = "pareto", mean = "50 kB" }\n'
        'duration = "2 s"\n'
    )
    recording = polypath.run(Scenario.parse(text, "x"))
    every, *by_size = completions.of_groups(recording)["web"]
    assert 140 < every.flows < 260
    assert every.flows == sum(each.flows for each in by_size)
    assert every.unfinished == 0
    assert min(every.slowdowns.answered) > 1


DIRECT = """
duration = "20 s"
[host.client]
[host.server]
[link.a]
ends = ["client", "server"]
forward = { rate = "1 Mbps", delay = "5 ms" }
backward = { rate = "10 Mbps", delay = "20 ms" }
"""
THROUGH_A_HOST = """
duration = "20 s"
[host.client]
[host.server]
[host.relay]
[router.near]
[router.far]
[link.one]
ends = ["client", "near"]
rate = "10 Mbps"
delay = "10 ms"
[link.two]
ends = ["near", "far"]
rate = "10 Mbps"
delay = "10 ms"
[link.three]
ends = ["far", "server"]
rate = "10 Mbps"
delay = "10 ms"
[link.aside]
ends = ["client", "relay"]
[link.besides]
ends = ["relay", "server"]
"""
TWO_PATHS = """
duration = "20 s"
[host.client]
[host.server]
[router.lte]
[router.wifi]
[link.lte]
ends = ["client", "lte"]
rate = "1 Mbps"
delay = "50 ms"
[link.wifi]
ends = ["client", "wifi"]
rate = "100 Mbps"
delay = "5 ms"
[link.lte-server]
ends = ["lte", "server"]
rate = "1 Gbps"
[link.wifi-server]
ends = ["wifi", "server"]
rate = "1 Gbps"
"""
IN_GROUP = '[[application]]\ngroup = "g"\n'


def grouped(network: str, *works: str) -> list[completions.Completions]:
    text = network + "".join(f"{IN_GROUP}{work.replace('; ', chr(10))}\n" for work in works)
    return completions.of_groups(polypath.run(Scenario.parse(text, "x")))["g"]


@pytest.mark.parametrize(
    ("network", "work", "least_ms"),
    [
        (DIRECT, 'kind = "bulk"; transport = "tcp"; size = "10 kB"', 5 + 20 + 5 + 80),
        (DIRECT, 'kind = "bulk"; transport = "tcp"; size = "10 kB"; reverse = true', 2 * 25 + 8),
        (DIRECT, 'kind = "bulk"; transport = "tcp"; size = "1 kB"; reverse_size = "1 MB"', 2 * 25 + 800),
        (DIRECT, 'kind = "bulk"; transport = "tcp"; size = "100 kB"; reverse_size = "1 kB"', 5 + 20 + 5 + 800),
        (DIRECT, 'kind = "bulk"; transport = "tcp"; size = "10 kB"; first = "1 kB"; pause = "2 s"', 30 + 2000 + 72),
        (DIRECT, 'kind = "fetch"; transport = "tcp"; size = "10 kB"; count = 3', 25 + 3 * (25 + 8)),
        (DIRECT, 'kind = "fetch"; transport = "tcp"; size = "10 kB"; tls = "1.2"', 4 * 25 + 8),
        (DIRECT, 'kind = "fetch"; transport = "tcp"; size = "10 kB"; tls = "1.3"', 3 * 25 + 8),
        (DIRECT, 'kind = "fetch"; transport = "quic"; size = "10 kB"; count = 3; parallel = 2', 25 + 2 * (25 + 8)),
        (DIRECT, 'kind = "fetch"; transport = "quic"; size = "100 kB"; count = 4; parallel = 4', 2 * 25 + 320),
        (THROUGH_A_HOST, 'kind = "bulk"; transport = "tcp"; size = "1 MB"; source = "10.0.0.1"', 90 + 800),
        (TWO_PATHS, 'kind = "bulk"; transport = "tcp"; size = "1 MB"; source = "10.0.1.1"', 15 + 80),
    ],
)
def test_the_least_is_what_the_exchange_needs_on_the_best_path(network: str, work: str, least_ms: float) -> None:
    (every,) = grouped(network, work)
    time, slowdown = every.mean_ns(), every.mean_slowdown()
    assert time is not None
    assert slowdown is not None
    assert time / slowdown / 1e6 == pytest.approx(least_ms)
    assert slowdown > 1


def test_sizes_are_of_all_files_and_both_ways() -> None:
    network = DIRECT.replace("1 Mbps", "100 Mbps")
    fetch = 'kind = "fetch"; transport = "tcp"; size = "60 kB"; count = 2'
    both = 'kind = "bulk"; transport = "tcp"; size = "60 kB"; reverse_size = "2 MB"'
    assert [each.sizes for each in grouped(network, fetch, both)] == ["all", "100 kB to 1 MB", "above 1 MB"]


def test_no_time_has_no_multiple() -> None:
    network = '[host.client]\n[host.server]\n[link.a]\nends = ["client", "server"]\n'
    (every,) = grouped('duration = "1 s"\n' + network, 'kind = "bulk"; transport = "tcp"; size = "10 kB"')
    assert (every.unfinished, every.mean_ns(), every.mean_slowdown(), every.slowdowns.sent) == (0, 0, None, 0)


def test_a_transfer_that_is_cut_short_did_not_finish() -> None:
    (every,) = grouped(DIRECT, 'kind = "bulk"; transport = "tcp"; size = "10 MB"; duration = "2 s"')
    assert (every.flows, every.unfinished) == (1, 1)
    (every,) = grouped(DIRECT, 'kind = "bulk"; transport = "tcp"; size = "10 kB"; duration = "2 s"')
    assert (every.flows, every.unfinished) == (1, 0)


def test_a_flow_without_bytes_ends_with_its_connection() -> None:
    empty = 'kind = "bulk"; transport = "tcp"; size = "0 B"'
    every, small, large = grouped(DIRECT, empty, 'kind = "bulk"; transport = "tcp"; size = "200 kB"')
    assert (every.unfinished, small.sizes, small.flows, large.sizes) == (0, "up to 100 kB", 1, "100 kB to 1 MB")
    assert small.mean_ns() == pytest.approx(50e6, rel=0.05)
    assert (small.mean_slowdown(), every.slowdowns.sent) == (None, 1)


def test_a_flow_without_bytes_that_reaches_nobody_did_not_finish() -> None:
    down = '[[event]]\nat = "0 s"\nlink = "a"\nup = false\n[defaults]\nuser_timeout = "2 s"\n'
    work = 'kind = "bulk"\ntransport = "tcp"\nsize = "0 B"\nstart = "1 s"\n'
    recording = polypath.run(Scenario.parse(DIRECT + down + IN_GROUP + work, "x"))
    (connection,) = metrics.connections(recording)
    assert (connection.failure, connection.finished) == ("unreachable", False)
    assert [flow.time_ns for flow in completions.flows(recording)["g"]] == [None]
